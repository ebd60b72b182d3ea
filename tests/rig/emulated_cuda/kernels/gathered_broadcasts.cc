// Several broadcasts of one group call, which share the ring. NCCL 2.29.7; README §7.4.
#include <algorithm>
#include <cstring>

#include "tests/rig/emulated_cuda/kernels/primitives.h"
#include "tests/rig/emulated_cuda/kernels/version.h"

namespace weft::nccl_kernels {
namespace {

// One chunk of one of the broadcasts.
void run_chunk(Primitives& primitives, WorkGatheredBroadcast& work, std::size_t bytes, int ranks) {
  const char* source = work.send_buffer + work.bytes_done;
  char* destination = work.receive_buffer + work.bytes_done;
  const auto elements = std::ptrdiff_t(bytes);
  if (work.ring_depth == 0 && source == destination)
    primitives.send(source, elements);
  else if (work.ring_depth == 0)
    primitives.copy_send(source, destination, elements);
  else if (work.ring_depth == ranks - 1)
    primitives.recv(destination, elements);
  else
    primitives.recv_copy_send(destination, elements);
  work.bytes -= bytes;
  work.bytes_done += bytes;
}

}  // namespace

void run_gathered_broadcasts(const Block& block, const Function& function, const Works& works) {
  std::vector<WorkGatheredBroadcast> broadcasts(std::size_t(works.count));
  std::memcpy(static_cast<void*>(broadcasts.data()), works.records.data(), works.records.size());
  PrimitivesSetup setup;
  setup.protocol = function.protocol;
  setup.receive_from = {block.channel->ring.previous};
  setup.send_to = {block.channel->ring.next};
  Primitives primitives(block, setup, Reduction::none());
  bool left = true;
  while (left) {
    left = false;
    for (WorkGatheredBroadcast& work : broadcasts) {
      const std::size_t bytes = std::min(work.bytes, std::size_t(work.chunk_bytes));
      if (bytes > 0) run_chunk(primitives, work, bytes, block.communicator->ranks);
      left |= work.bytes > 0;
    }
  }
}

}  // namespace weft::nccl_kernels
