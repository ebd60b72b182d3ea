// Simple: data lies in the slots as it is; counters tell how many slots are filled (tail) and free (head). README §6.1.
#include <algorithm>

#include "tests/rig/emulated_cuda/kernels/merge.h"
#include "tests/rig/emulated_cuda/kernels/primitives.h"

namespace weft::nccl_kernels {

char* Primitives::simple_slot(const Connection& connection) const {
  const ConnectionInfo& info = *connection.info;
  const std::size_t slot = connection.step % kSteps;
  if (info.fifo && __atomic_load_n(&info.fifo[slot].mode, __ATOMIC_RELAXED) == kUseOffset)
    return info.buffers[kSimple] + __atomic_load_n(&info.fifo[slot].offset, __ATOMIC_ACQUIRE);
  return info.buffers[kSimple] + slot * std::size_t(info.step_bytes);
}

// A part of a chunk, moved at a time.
struct Primitives::Slice {
  std::ptrdiff_t elements;
  std::ptrdiff_t offset;  // bytes, from the step's pointers
  Inputs inputs{};
  Outputs outputs{};
  bool handshake_only = false;
};

bool Primitives::wait_for_inputs(const Step& step, Slice& slice) {
  if (step.source) slice.inputs.own = step.source + slice.offset;
  if (!step.receive) return true;
  for (const Connection& receiver : receivers_) {
    const std::uint64_t* tail = receiver.info->tail;
    const std::uint64_t needed = receiver.step + std::uint64_t(steps_per_slice_);
    if (!wait_until(block_, [=] { return load_acquire(tail) >= needed; })) {
      aborted_ = true;
      return false;
    }
    const bool direct = is_nic_direct(receiver);
    slice.handshake_only |= direct && setup_.handshake_only;
    slice.inputs.received[std::size_t(slice.inputs.received_count++)] =
        direct ? step.place + slice.offset : simple_slot(receiver);
  }
  return true;
}

bool Primitives::wait_for_outputs(const Step& step, Slice& slice) {
  if (step.destination) slice.outputs.add(step.destination + slice.offset);
  if (!step.send) return true;
  for (Connection& sender : senders_) {
    if (!wait_for_slot(sender, slice.elements * std::ptrdiff_t(reduction_.element_bytes()))) return false;
    const bool direct = is_nic_direct(sender);
    slice.handshake_only |= direct && setup_.handshake_only;
    // A NIC that works on user buffers fetches what is forwarded from the receive buffer, and a first send from the
    // send buffer, where it is already.
    if (!direct)
      slice.outputs.add(simple_slot(sender));
    else if (step.receive)
      slice.outputs.add(step.place + slice.offset);
  }
  return true;
}

void Primitives::advance(const Step& step) {
  const auto steps = std::uint64_t(steps_per_slice_);
  if (step.receive)
    for (Connection& receiver : receivers_)
      store_release(receiver.info->head, receiver.step += steps);
  if (step.send)
    for (Connection& sender : senders_)
      store_release(sender.info->tail, sender.step += steps);
}

void Primitives::step_simple(const Step& step) {
  const std::ptrdiff_t unit = 16 * slices_per_chunk_;
  const std::ptrdiff_t slice_elements =
      std::max((step.elements + unit - 1) / unit * 16, step_elements_ * steps_per_slice_ / 32);
  std::ptrdiff_t done = 0;
  // Every slice of the chunk takes part in the handshake, empty ones too.
  for (int i = 0; i < slices_per_chunk_; i++) {
    Slice slice{std::min(slice_elements, step.elements - done), done * std::ptrdiff_t(reduction_.element_bytes())};
    if (!wait_for_inputs(step, slice) || !wait_for_outputs(step, slice)) return;
    if (!slice.handshake_only)
      merge(reduction_, slice.inputs, slice.outputs, std::size_t(slice.elements), step.last_reduction);
    advance(step);
    done += slice.elements;
  }
}

}  // namespace weft::nccl_kernels
