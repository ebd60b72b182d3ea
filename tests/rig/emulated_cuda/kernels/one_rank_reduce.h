// The kernel of a communicator with one rank: a pre-multiplied sum of one input.
#pragma once

#include <cstddef>

namespace weft::nccl_kernels {

bool is_one_rank_reduce(const char* kernel);
std::size_t one_rank_reduce_argument_sizes(const std::size_t** sizes);
// The element type is in the kernel's name.
void run_one_rank_reduce(const char* kernel, const void* arguments);

}  // namespace weft::nccl_kernels
