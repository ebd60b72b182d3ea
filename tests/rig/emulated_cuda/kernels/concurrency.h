// Runs what the blocks and halves of a kernel do at the same time. They wait for each other, so each needs a thread of
// its own; threads are kept for the next kernel.
#pragma once

#include <functional>
#include <vector>

namespace weft::nccl_kernels {

// Runs all jobs at the same time, the first one on the calling thread; returns when all have ended. Thread-safe.
void run_at_once(const std::vector<std::function<void()>>& jobs);

}  // namespace weft::nccl_kernels
