#include "tests/rig/emulated_cuda/kernels/collectives.h"

#include <cstring>
#include <string>

namespace weft::nccl_kernels {
namespace {

// Chunk sizes are given in grains of this many bytes.
constexpr std::ptrdiff_t kGrainBytes[kProtocols] = {16, 1920, 512};

// The n-th of the three 21-bit counts.
std::ptrdiff_t grains(std::uint64_t packed, int n) {
  return std::ptrdiff_t(packed >> (21 * n) & 0x1fffff);
}

bool counts_bytes(Collective collective) {
  return collective == Collective::all_gather || collective == Collective::broadcast;
}

std::uint64_t argument_of(const WorkCollective& work, int type) {
  if (!work.argument_is_pointer()) return work.reduction_argument;
  std::uint64_t argument = 0;
  std::memcpy(&argument, reinterpret_cast<const void*>(work.reduction_argument), element_bytes(type));
  return argument;
}

}  // namespace

Part part_of(const WorkCollective& work, int channel, Protocol protocol, std::size_t element_bytes) {
  const std::ptrdiff_t grain = kGrainBytes[protocol] / std::ptrdiff_t(element_bytes);
  const std::ptrdiff_t middles = std::ptrdiff_t(work.last_channel) - work.first_channel - 1;
  const auto first = std::ptrdiff_t(work.count_first), middle = std::ptrdiff_t(work.count_middle),
             last = std::ptrdiff_t(work.count_last);
  const std::ptrdiff_t total = first + middle * middles + last;
  if (channel == work.first_channel) return {total, 0, first, grains(work.chunk_grains, 0) * grain};
  if (channel == work.last_channel)
    return {total, first + middle * middles, last, grains(work.chunk_grains, 2) * grain};
  return {total, first + (channel - work.first_channel - 1) * middle, middle, grains(work.chunk_grains, 1) * grain};
}

void run_collective(const Block& block, const Function& function, const WorkCollective& work) {
  if (work.peer_registered()) not_emulated("a collective on buffers registered between GPUs");
  const int type = counts_bytes(function.collective) ? kUint8 : function.type;
  const Reduction reduction(function.operation, type, argument_of(work, type));
  const CollectiveJob job{block, function, work, reduction,
                          part_of(work, block.channel_index, function.protocol, reduction.element_bytes())};
  if (function.algorithm == kTree && function.collective == Collective::all_reduce) return run_tree_all_reduce(job);
  if (function.algorithm != kRing) not_emulated("algorithm " + std::to_string(function.algorithm));
  switch (function.collective) {
    case Collective::all_reduce:
      return run_ring_all_reduce(job);
    case Collective::all_gather:
      return run_ring_all_gather(job);
    case Collective::reduce_scatter:
      return run_ring_reduce_scatter(job);
    case Collective::broadcast:
      return run_ring_broadcast(job);
    case Collective::reduce:
      return run_ring_reduce(job);
    default:
      not_emulated("collective " + std::to_string(int(function.collective)) + " as a single work");
  }
}

}  // namespace weft::nccl_kernels
