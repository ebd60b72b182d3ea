// The collectives, each as one block carries out its channel's part. README §7.
#pragma once

#include "tests/rig/emulated_cuda/kernels/block.h"
#include "tests/rig/emulated_cuda/kernels/function_table.h"
#include "tests/rig/emulated_cuda/kernels/reduction.h"

namespace weft::nccl_kernels {

// A channel's part of a collective, in elements.
struct Part {
  std::ptrdiff_t total;  // of the whole collective
  std::ptrdiff_t begin, count;
  std::ptrdiff_t chunk;
};
Part part_of(const WorkCollective& work, int channel, Protocol protocol, std::size_t element_bytes);

// A collective of one work, made ready.
struct CollectiveJob {
  const Block& block;
  const Function& function;
  const WorkCollective& work;
  Reduction reduction;
  Part part;

  std::ptrdiff_t bytes(std::ptrdiff_t elements) const { return elements * std::ptrdiff_t(reduction.element_bytes()); }
  const char* input(std::ptrdiff_t element) const { return work.send_buffer + bytes(element); }
  char* output(std::ptrdiff_t element) const { return work.receive_buffer + bytes(element); }
};

// Ends the process for an algorithm that is not emulated.
void run_collective(const Block& block, const Function& function, const WorkCollective& work);

void run_ring_all_reduce(const CollectiveJob& job);
void run_ring_all_gather(const CollectiveJob& job);
void run_ring_reduce_scatter(const CollectiveJob& job);
void run_ring_broadcast(const CollectiveJob& job);
void run_ring_reduce(const CollectiveJob& job);
void run_tree_all_reduce(const CollectiveJob& job);

// All sends and receives of a batch, at the same time.
void run_send_receive(const Block& block, const std::vector<WorkSendReceive>& works);

// The one-element float format in which a work carries chunk sizes: 5 bits of exponent, 3 of fraction.
std::size_t chunk_bytes(std::uint8_t code);

}  // namespace weft::nccl_kernels
