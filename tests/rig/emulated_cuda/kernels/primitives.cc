#include "tests/rig/emulated_cuda/kernels/primitives.h"

#include <algorithm>
#include <utility>

#include "tests/rig/emulated_cuda/kernels/version.h"

namespace weft::nccl_kernels {

Primitives::Primitives(const Block& block, PrimitivesSetup setup, const Reduction& reduction)
    : block_(block),
      setup_(std::move(setup)),
      reduction_(reduction),
      slices_per_chunk_(setup_.protocol == kSimple ? setup_.slices_per_chunk : 1),
      steps_per_slice_(setup_.protocol == kSimple ? setup_.steps_per_slice : 1) {
  const std::size_t slot_bytes = std::size_t(block.communicator->buffer_bytes[kSimple]) / kSteps;
  const std::size_t step_bytes = setup_.step_bytes ? setup_.step_bytes : slot_bytes;
  step_elements_ = std::ptrdiff_t(step_bytes / reduction.element_bytes());
  receivers_ = connections(setup_.receive_from, true);
  senders_ = connections(setup_.send_to, false);
}

std::vector<Connection> Primitives::connections(const std::vector<int>& ranks, bool receiving) {
  std::vector<Connection> result;
  const auto chunk_steps = std::uint64_t(slices_per_chunk_) * std::uint64_t(steps_per_slice_);
  for (const int rank : ranks) {
    if (rank < 0) continue;
    ChannelPeer* peer = block_.channel->peers[rank];
    ConnectionInfo* info = receiving ? &peer->receive[setup_.connection] : &peer->send[setup_.connection];
    // A chunk begins at a multiple of its steps, whatever protocol the work before had.
    Connection connection{info, (info->step + chunk_steps - 1) / chunk_steps * chunk_steps};
    if (receiving && setup_.protocol == kSimple) store_release(info->head, connection.step);
    if (receiving && is_nic_direct(connection))
      __atomic_store_n(&info->fifo[connection.step % kSteps].size, ssize_t(0), __ATOMIC_RELEASE);
    result.push_back(connection);
  }
  return result;
}

Primitives::~Primitives() {
  for (Connection& sender : senders_) {
    if (!is_nic_direct(sender)) continue;
    // The NIC reads the user's buffer: it must not change before the proxy says that the last step has left.
    const ssize_t* size = &sender.info->fifo[(sender.step - std::uint64_t(steps_per_slice_)) % kSteps].size;
    aborted_ |= !wait_until(block_, [size] { return __atomic_load_n(size, __ATOMIC_ACQUIRE) == -1; });
  }
  for (const Connection& receiver : receivers_)
    receiver.info->step = receiver.step;
  for (const Connection& sender : senders_)
    sender.info->step = sender.step;
}

void Primitives::step(Step step) {
  if (aborted_) return;
  step.elements = std::max<std::ptrdiff_t>(step.elements, 0);
  switch (setup_.protocol) {
    case kLL:
      return step_ll(step);
    case kLL128:
      return step_ll128(step);
    case kSimple:
      return step_simple(step);
  }
}

bool Primitives::wait_for_slot(Connection& connection, ssize_t bytes) {
  const std::uint64_t* head = connection.info->head;
  const std::uint64_t needed = connection.step + std::uint64_t(steps_per_slice_);
  if (!wait_until(block_, [=] { return load_acquire(head) + kSteps >= needed; })) {
    aborted_ = true;
    return false;
  }
  if (connection.info->fifo)
    __atomic_store_n(&connection.info->fifo[connection.step % kSteps].size, bytes, __ATOMIC_RELEASE);
  return true;
}

bool Primitives::is_nic_direct(const Connection& connection) const {
  return setup_.registered && connection.info->fifo && nccl_kernels::is_nic_direct(*connection.info);
}

}  // namespace weft::nccl_kernels
