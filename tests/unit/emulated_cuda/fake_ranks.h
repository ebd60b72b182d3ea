// Ranks of a made-up communicator in one process, with one channel whose FIFOs join them directly: enough to run the
// collectives without NCCL.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tests/rig/emulated_cuda/kernels/block.h"

namespace weft::nccl_kernels::testing {

class FakeRanks {
 public:
  explicit FakeRanks(int ranks);
  ~FakeRanks();

  int size() const { return ranks_; }
  Block block(int rank);
  // Runs `work` for every rank at the same time.
  void run(const std::function<void(const Block& block, int rank)>& work);
  // Makes all waiting loops leave.
  void abort() { __atomic_store_n(&abort_flag_, 1, __ATOMIC_RELAXED); }
  // Lets the next work begin with this step, for what happens when counters wrap around.
  void set_step(std::uint64_t step);

 private:
  struct Rank;
  struct Fifo;
  int ranks_;
  std::uint32_t abort_flag_ = 0;
  std::vector<std::unique_ptr<Fifo>> fifos_;
  std::vector<std::unique_ptr<Rank>> members_;
};

}  // namespace weft::nccl_kernels::testing
