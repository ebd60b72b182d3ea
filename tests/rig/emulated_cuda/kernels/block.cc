#include "tests/rig/emulated_cuda/kernels/block.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace weft::nccl_kernels {
namespace {

// Rounds without a look at the abort flag and without sleep. A round of yielding takes about a microsecond where nobody
// else wants the CPU, and a time slice of the others where they do.
constexpr unsigned kYieldRounds = 64;
// Then it sleeps a part of what it has waited already: what it waits for is found out that much later at most. Dozens
// of blocks wait for slow links at the same time, and waking often would take the CPU from the NICs that they wait for.
constexpr unsigned kPart = 16, kShortestSleepMicroseconds = 20, kLongestSleepMicroseconds = 2000;
// What the kernel adds to a sleep (timer slack).
constexpr unsigned kSlackMicroseconds = 50;

}  // namespace

bool Block::aborted() const {
  // The flag is in host memory that NCCL maps for the device; older contents are harmless, so no ordering.
  return communicator->abort_flag && __atomic_load_n(communicator->abort_flag, __ATOMIC_RELAXED) != 0;
}

void not_emulated(const std::string& what) {
  std::fprintf(stderr, "emulated CUDA: NCCL %d: not emulated: %s\n", kNcclVersion, what.c_str());
  std::abort();
}

std::uint64_t load_acquire(const std::uint64_t* word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

void store_release(std::uint64_t* word, std::uint64_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

bool Patience::pause() {
  if (++rounds_ <= kYieldRounds) {
    sched_yield();
  } else {
    if (block_.aborted()) return false;
    const unsigned sleep = std::clamp(waited_us_ / kPart, kShortestSleepMicroseconds, kLongestSleepMicroseconds);
    usleep(sleep);
    waited_us_ += sleep + kSlackMicroseconds;
  }
  return true;
}

}  // namespace weft::nccl_kernels
