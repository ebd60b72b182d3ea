// Which works a block finds in the arguments of its kernel. README §3.1.
#pragma once

#include "tests/rig/emulated_cuda/kernels/version.h"

namespace weft::nccl_kernels {

// Block b works for the channel of the b-th set bit.
int channel_of_block(std::uint64_t channel_mask, int block);

// The batches lie behind the arguments; a block begins with that of its own index.
const Batch* first_batch(const KernelArguments& arguments, int block);

// Copies the works of a batch out of the arguments, the FIFO or the persistent buffer, behind those already there.
void append_works(const KernelArguments& arguments, const Batch& batch, Works& works);

}  // namespace weft::nccl_kernels
