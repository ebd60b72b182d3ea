// What is particular to NCCL 2.22.3.
#include <bit>

#include "tests/rig/emulated_cuda/kernels/version.h"

namespace weft::nccl_kernels {

// The host waits for this word where the FIFO is full, so it must be told of the last work that was read.
void release_fifo(const Block& block, const KernelArguments& arguments, const Batch& batch) {
  if (arguments.work_storage != kInFifo || batch.offset_set == 0 || batch.next_extends()) return;
  const auto works = std::uint32_t(std::bit_width(batch.offset_set));
  const auto used = batch.offset_base + works * std::uint32_t(kWorkBytes[batch.work_kind()]);
  __atomic_store_n(&block.communicator->work_consumed[block.channel_index], used, __ATOMIC_RELEASE);
}

void works_started(const Block&, const Works&) {}
void works_completed(const Block&, const Works&) {}

// Channels take the parts in bit-reversed order.
int send_receive_part(const WorkSendReceive& work, int channel) {
  const auto channels = unsigned(work.channels);
  const unsigned place = unsigned(channel - work.channel_base) & (channels - 1);
  unsigned part = 0;
  for (unsigned bit = 1; bit < channels; bit <<= 1)
    part = part << 1 | unsigned((place & bit) != 0);
  return int(part);
}

bool is_peer_registered(const WorkSendReceive&, bool) {
  return false;
}

// The bit in the work alone decides.
bool is_nic_direct(const ConnectionInfo&) {
  return true;
}

MessageSteps registered_message_steps(const Block& block, std::size_t chunk_bytes) {
  return {chunk_bytes, std::size_t(block.communicator->send_receive_chunk_bytes), true};
}

void run_gathered_broadcasts(const Block&, const Function&, const Works&) {
  not_emulated("gathered broadcasts, which this version does not have");
}

}  // namespace weft::nccl_kernels
