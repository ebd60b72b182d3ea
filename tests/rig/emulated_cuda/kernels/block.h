// A block of a kernel: it works for one channel of the communicator.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "tests/rig/emulated_cuda/kernels/layout.h"

namespace weft::nccl_kernels {

struct Block {
  Communicator* communicator;
  Channel* channel;
  int channel_index;

  // The host wants the kernel to leave (ncclCommAbort).
  bool aborted() const;
};

// Ends the process: NCCL asks for something that is not carried out here.
[[noreturn]] void not_emulated(const std::string& what);

std::uint64_t load_acquire(const std::uint64_t* word);
void store_release(std::uint64_t* word, std::uint64_t value);

// Paces a loop that waits for another thread or process: gives the CPU away at once, because the proxies that it waits
// for need it too, and sleeps once the wait is long.
class Patience {
 public:
  explicit Patience(const Block& block) : block_(block) {}
  // False once the kernel has to leave.
  bool pause();

 private:
  const Block& block_;
  unsigned rounds_ = 0;
  unsigned waited_us_ = 0;
};

// Waits for the condition. False when the kernel has to leave before it holds.
template <class Condition>
bool wait_until(const Block& block, Condition condition) {
  Patience patience(block);
  while (!condition())
    if (!patience.pause()) return false;
  return true;
}

}  // namespace weft::nccl_kernels
