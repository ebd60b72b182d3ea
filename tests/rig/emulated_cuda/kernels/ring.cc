// The collectives on the ring of a channel. README §7.1.
#include <algorithm>

#include "tests/rig/emulated_cuda/kernels/collectives.h"
#include "tests/rig/emulated_cuda/kernels/primitives.h"

namespace weft::nccl_kernels {
namespace {

// Two slices of two steps a chunk for the collectives that use every rank's link in every step, one of one for those
// that pass data along.
constexpr int kWide = 2, kNarrow = 1;

// Chunk and step of a NIC that moves whole blocks by itself.
constexpr std::ptrdiff_t kOffloadElements = std::ptrdiff_t(1) << 30;

PrimitivesSetup ring_setup(const CollectiveJob& job, int width, bool registered = false) {
  const Ring& ring = job.block.channel->ring;
  PrimitivesSetup setup;
  setup.protocol = job.function.protocol;
  setup.slices_per_chunk = setup.steps_per_slice = width;
  setup.receive_from = {ring.previous};
  setup.send_to = {ring.next};
  setup.registered = registered && setup.protocol == kSimple;
  return setup;
}

// Calls `chunk(begin, count)` for each chunk of the part.
template <class Chunk>
void for_each_chunk(const Part& part, Chunk chunk) {
  for (std::ptrdiff_t done = 0; done < part.count; done += part.chunk)
    chunk(part.begin + done, std::min(part.chunk, part.count - done));
}

std::ptrdiff_t round_up(std::ptrdiff_t value, std::ptrdiff_t unit) {
  return (value + unit - 1) / unit * unit;
}

// One round of the all-reduce: a chunk for each rank, beginning at element `begin`.
class AllReduceRound {
 public:
  AllReduceRound(const CollectiveJob& job, Primitives& primitives, std::ptrdiff_t begin, std::ptrdiff_t left)
      : job_(job), primitives_(primitives), begin_(begin), left_(left), chunk_(job.part.chunk) {
    const std::ptrdiff_t ranks = job.block.communicator->ranks;
    // The last round is spread evenly, in units of 16 bytes.
    if (left < ranks * chunk_)
      chunk_ = round_up((left + ranks - 1) / ranks, 16 / std::ptrdiff_t(job.reduction.element_bytes()));
  }

  void run() {
    const int ranks = job_.block.communicator->ranks, index = job_.block.channel->ring.index;
    at(index + ranks - 1);
    primitives_.send(job_.input(offset_), count_, job_.output(offset_));
    for (int distance = 2; distance < ranks; distance++) {
      at(index + ranks - distance);
      primitives_.recv_reduce_send(job_.input(offset_), count_, job_.output(offset_));
    }
    at(index);
    primitives_.recv_reduce_copy_send(job_.input(offset_), job_.output(offset_), count_, job_.output(offset_));
    for (int distance = 1; distance < ranks - 1; distance++) {
      at(index + ranks - distance);
      primitives_.recv_copy_send(job_.output(offset_), count_, job_.output(offset_));
    }
    at(index + 1);
    primitives_.recv(job_.output(offset_), count_, job_.output(offset_));
  }

 private:
  // The chunk of the rank at this place of the ring; at the end of the data it may be short, empty or negative.
  void at(int place) {
    const std::ptrdiff_t chunk = place % job_.block.communicator->ranks;
    offset_ = begin_ + chunk * chunk_;
    count_ = std::min(chunk_, left_ - chunk * chunk_);
  }

  const CollectiveJob& job_;
  Primitives& primitives_;
  std::ptrdiff_t begin_, left_, chunk_;
  std::ptrdiff_t offset_ = 0, count_ = 0;
};

}  // namespace

void run_ring_all_reduce(const CollectiveJob& job) {
  Primitives primitives(job.block, ring_setup(job, kWide, job.work.nic_registered()), job.reduction);
  const std::ptrdiff_t round = job.part.chunk * job.block.communicator->ranks;
  for (std::ptrdiff_t done = 0; done < job.part.count; done += round)
    AllReduceRound(job, primitives, job.part.begin + done, job.part.count - done).run();
}

void run_ring_all_gather(const CollectiveJob& job) {
  PrimitivesSetup setup = ring_setup(job, kWide, job.work.nic_registered());
  Part part = job.part;
  if (setup.registered && job.work.one_rank_per_node()) {
    setup.slices_per_chunk = setup.steps_per_slice = kNarrow;
    setup.step_bytes = std::size_t(kOffloadElements);
    part.chunk = kOffloadElements;
  }
  Primitives primitives(job.block, setup, job.reduction);
  const int ranks = job.block.communicator->ranks;
  const int* user_ranks = job.block.channel->ring.user_ranks;
  for_each_chunk(part, [&](std::ptrdiff_t begin, std::ptrdiff_t count) {
    const auto output = [&](int place) { return job.output(user_ranks[place] * part.total + begin); };
    if (job.input(begin) == output(0))  // in place
      primitives.send(job.input(begin), count, output(0));
    else
      primitives.copy_send(job.input(begin), output(0), count, output(0));
    for (int distance = 1; distance < ranks - 1; distance++)
      primitives.recv_copy_send(output(ranks - distance), count, output(ranks - distance));
    primitives.recv(output(1), count, output(1));
  });
}

void run_ring_reduce_scatter(const CollectiveJob& job) {
  Primitives primitives(job.block, ring_setup(job, kWide), job.reduction);
  const int ranks = job.block.communicator->ranks;
  const int* user_ranks = job.block.channel->ring.user_ranks;
  for_each_chunk(job.part, [&](std::ptrdiff_t begin, std::ptrdiff_t count) {
    const auto input = [&](int place) { return job.input(user_ranks[place] * job.part.total + begin); };
    primitives.send(input(ranks - 1), count);
    for (int distance = 2; distance < ranks; distance++)
      primitives.recv_reduce_send(input(ranks - distance), count);
    primitives.recv_reduce_copy(input(0), job.output(begin), count);
  });
}

void run_ring_broadcast(const CollectiveJob& job) {
  Primitives primitives(job.block, ring_setup(job, kNarrow, job.work.nic_registered()), job.reduction);
  const int root = int(job.work.root);
  const int* user_ranks = job.block.channel->ring.user_ranks;
  for_each_chunk(job.part, [&](std::ptrdiff_t begin, std::ptrdiff_t count) {
    const char* input = job.input(begin);
    char* output = job.output(begin);
    if (user_ranks[0] == root && input == output)
      primitives.send(input, count, output);
    else if (user_ranks[0] == root)
      primitives.copy_send(input, output, count, output);
    else if (user_ranks[1] == root)
      primitives.recv(output, count, output);
    else
      primitives.recv_copy_send(output, count, output);
  });
}

void run_ring_reduce(const CollectiveJob& job) {
  Primitives primitives(job.block, ring_setup(job, kNarrow), job.reduction);
  const int root = int(job.work.root);
  const int* user_ranks = job.block.channel->ring.user_ranks;
  const int previous = user_ranks[job.block.communicator->ranks - 1];
  for_each_chunk(job.part, [&](std::ptrdiff_t begin, std::ptrdiff_t count) {
    if (previous == root)
      primitives.send(job.input(begin), count);
    else if (user_ranks[0] == root)
      primitives.recv_reduce_copy(job.input(begin), job.output(begin), count);
    else
      primitives.recv_reduce_send(job.input(begin), count);
  });
}

}  // namespace weft::nccl_kernels
