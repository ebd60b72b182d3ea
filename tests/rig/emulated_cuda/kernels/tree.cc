// All-reduce on the tree of a channel: sums go up, the result comes down. README §7.2.
#include <algorithm>

#include "tests/rig/emulated_cuda/kernels/collectives.h"
#include "tests/rig/emulated_cuda/kernels/concurrency.h"
#include "tests/rig/emulated_cuda/kernels/primitives.h"

namespace weft::nccl_kernels {
namespace {

PrimitivesSetup tree_setup(const CollectiveJob& job, std::vector<int> receive_from, std::vector<int> send_to) {
  PrimitivesSetup setup;
  setup.protocol = job.function.protocol;
  setup.receive_from = std::move(receive_from);
  setup.send_to = std::move(send_to);
  return setup;
}

template <class Chunk>
void for_each_chunk(const Part& part, Chunk chunk) {
  for (std::ptrdiff_t done = 0; done < part.count; done += part.chunk)
    chunk(part.begin + done, std::min(part.chunk, part.count - done));
}

void run_root(const CollectiveJob& job, const std::vector<int>& children) {
  Primitives primitives(job.block, tree_setup(job, children, children), job.reduction);
  for_each_chunk(job.part, [&](std::ptrdiff_t begin, std::ptrdiff_t count) {
    primitives.recv_reduce_copy_send(job.input(begin), job.output(begin), count);
  });
}

void run_up(const CollectiveJob& job, const std::vector<int>& children, int parent) {
  Primitives primitives(job.block, tree_setup(job, children, {parent}), job.reduction);
  const bool leaf = children.empty();
  for_each_chunk(job.part, [&](std::ptrdiff_t begin, std::ptrdiff_t count) {
    if (leaf)
      primitives.send(job.input(begin), count);
    else
      primitives.recv_reduce_send(job.input(begin), count);
  });
}

void run_down(const CollectiveJob& job, const std::vector<int>& children, int parent) {
  Primitives primitives(job.block, tree_setup(job, {parent}, children), job.reduction);
  const bool leaf = children.empty();
  for_each_chunk(job.part, [&](std::ptrdiff_t begin, std::ptrdiff_t count) {
    if (leaf)
      primitives.recv(job.output(begin), count);
    else
      primitives.recv_copy_send(job.output(begin), count);
  });
}

}  // namespace

void run_tree_all_reduce(const CollectiveJob& job) {
  const Tree& tree = job.block.channel->tree;
  std::vector<int> children;
  for (const int child : tree.down)
    if (child >= 0) children.push_back(child);
  if (tree.up < 0) return run_root(job, children);
  // Both directions at the same time, as the two halves of a GPU's block do.
  run_at_once({[&] { run_up(job, children, tree.up); }, [&] { run_down(job, children, tree.up); }});
}

}  // namespace weft::nccl_kernels
