// What is particular to NCCL 2.29.7.
#include <chrono>
#include <cstring>

#include "tests/rig/emulated_cuda/kernels/version.h"

namespace weft::nccl_kernels {
namespace {

constexpr std::size_t kRegisteredBytes = std::size_t(1) << 30;

bool is_profiled(int kind, const char* record) {
  if (kind == kWorkBroadcast) return false;
  if (kind == kWorkSendReceive) {
    WorkSendReceive work;
    std::memcpy(static_cast<void*>(&work), record, sizeof work);
    return (work.flags >> 6 & 1) != 0;
  }
  WorkCollective work;
  std::memcpy(static_cast<void*>(&work), record, sizeof work);
  return work.profiled();
}

void note_time(const Block& block, const Works& works, ProfilerSlots* channels) {
  if (!channels) return;
  using std::chrono::system_clock;
  auto& entries = channels[block.channel_index].entries;
  for (int i = 0; i < works.count; i++) {
    if (!is_profiled(works.kind, works.records.data() + std::size_t(i) * kWorkBytes[works.kind])) continue;
    const std::uint64_t counter = block.channel->work_counter + 1 + std::uint64_t(i);
    auto& entry = entries[counter % std::size(entries)];
    entry.timestamp = std::uint64_t(
        std::chrono::duration_cast<std::chrono::nanoseconds>(system_clock::now().time_since_epoch()).count());
    store_release(&entry.counter, counter);
  }
}

}  // namespace

// The host learns by events which works are done.
void release_fifo(const Block&, const KernelArguments&, const Batch&) {}

void works_started(const Block& block, const Works& works) {
  note_time(block, works, block.communicator->work_started);
}

void works_completed(const Block& block, const Works& works) {
  note_time(block, works, block.communicator->work_completed);
  block.channel->work_counter += std::uint64_t(works.count);
}

int send_receive_part(const WorkSendReceive& work, int channel) {
  return (channel - work.channel_base) & (work.channels - 1);
}

bool is_peer_registered(const WorkSendReceive& work, bool sending) {
  return (work.flags >> (sending ? 4 : 5) & 1) != 0;
}

bool is_nic_direct(const ConnectionInfo& connection) {
  return (connection.flags & kNicDirect) != 0;
}

MessageSteps registered_message_steps(const Block&, std::size_t) {
  return {kRegisteredBytes, kRegisteredBytes, false};
}

}  // namespace weft::nccl_kernels
