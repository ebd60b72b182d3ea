// The data movement of one step, the same in every protocol: some inputs are reduced to one value, which goes to some
// outputs.
#pragma once

#include <array>
#include <cstddef>

#include "tests/rig/emulated_cuda/kernels/layout.h"
#include "tests/rig/emulated_cuda/kernels/reduction.h"

namespace weft::nccl_kernels {

// The most connections a step uses in one direction.
constexpr int kMaxConnections = kTreeChildren;

struct Inputs {
  const char* own = nullptr;                            // the rank's own data; null: none
  std::array<const char*, kMaxConnections> received{};  // in the order in which they are reduced
  int received_count = 0;
};

struct Outputs {
  std::array<char*, kMaxConnections + 1> to{};
  int count = 0;
  void add(char* output) { to[std::size_t(count++)] = output; }
};

// outputs = complete(prepare(own) (+) received[0] (+) …), `complete` where `last`. There is at least one input. Outputs
// may be the same as `own`, and otherwise do not overlap with inputs.
void merge(const Reduction& reduction, const Inputs& inputs, const Outputs& outputs, std::size_t elements, bool last);

}  // namespace weft::nccl_kernels
