// The entry of NCCL's kernels: finds the works of each block and carries them out, batch by batch.
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/rig/emulated_cuda/emulated_cuda.h"
#include "tests/rig/emulated_cuda/kernels/collectives.h"
#include "tests/rig/emulated_cuda/kernels/concurrency.h"
#include "tests/rig/emulated_cuda/kernels/one_rank_reduce.h"
#include "tests/rig/emulated_cuda/kernels/version.h"
#include "tests/rig/emulated_cuda/kernels/works.h"

// Public, and in the same library.
extern "C" int ncclGetVersion(int* version);

namespace weft::nccl_kernels {
namespace {

void run_works(const Block& block, const Function& function, const Works& works) {
  if (works.kind == kWorkSendReceive) {
    std::vector<WorkSendReceive> records(std::size_t(works.count));
    std::memcpy(static_cast<void*>(records.data()), works.records.data(), works.records.size());
    return run_send_receive(block, records);
  }
  if (works.kind == kWorkBroadcast) return run_gathered_broadcasts(block, function, works);
  for (int i = 0; i < works.count; i++) {
    // A registered work is a plain one with addresses of peers behind it, which are for paths that are refused.
    WorkCollective work;
    const char* record = works.records.data() + std::size_t(i) * kWorkBytes[works.kind];
    std::memcpy(static_cast<void*>(&work), record, sizeof work);
    run_collective(block, function, work);
  }
}

void run_block(const KernelArguments& arguments, int index) {
  const int channel = channel_of_block(arguments.channel_mask, index);
  const Block block{arguments.communicator, &arguments.communicator->channels[channel], channel};
  const Batch* batch = first_batch(arguments, index);
  while (true) {
    Works works;
    append_works(arguments, *batch, works);
    release_fifo(block, arguments, *batch);
    while (batch->next_extends()) {
      batch += batch->next_jump();
      append_works(arguments, *batch, works);
      release_fifo(block, arguments, *batch);
    }
    works_started(block, works);
    run_works(block, function_of(batch->function_id()), works);
    works_completed(block, works);
    if (batch->next_jump() == 0) return;
    batch += batch->next_jump();
  }
}

bool is_collective_kernel(const char* kernel) {
  return std::strstr(kernel, "ncclDevKernel_") != nullptr;
}

bool implements(const char* kernel) {
  return is_collective_kernel(kernel) || is_one_rank_reduce(kernel);
}

std::size_t argument_sizes(const char* kernel, const std::size_t** sizes) {
  return is_one_rank_reduce(kernel) ? one_rank_reduce_argument_sizes(sizes) : 0;
}

void run(const emulated_cuda_launch* launch) {
  if (is_one_rank_reduce(launch->kernel)) return run_one_rank_reduce(launch->kernel, launch->arguments);
  const auto& arguments = *static_cast<const KernelArguments*>(launch->arguments);
  std::vector<std::function<void()>> blocks;
  for (int i = 0; i < int(launch->blocks); i++)
    blocks.push_back([&arguments, i] { run_block(arguments, i); });
  run_at_once(blocks);
}

// The layouts must be those of the NCCL that this is linked with.
bool implements_this_version(const char* kernel) {
  static const int version = [] {
    int value = 0;
    ncclGetVersion(&value);
    if (value != kNcclVersion) not_emulated("the layouts of NCCL " + std::to_string(value));
    return value;
  }();
  return version == kNcclVersion && implements(kernel);
}

constexpr emulated_cuda_kernels kKernels{implements_this_version, argument_sizes, run};

__attribute__((constructor)) void provide() {
  emulated_cuda_provide_kernels(&kKernels);
}

}  // namespace
}  // namespace weft::nccl_kernels
