// Sends and receives between two ranks. README §7.3.
#include <algorithm>
#include <cstring>
#include <functional>

#include "tests/rig/emulated_cuda/kernels/collectives.h"
#include "tests/rig/emulated_cuda/kernels/concurrency.h"
#include "tests/rig/emulated_cuda/kernels/primitives.h"
#include "tests/rig/emulated_cuda/kernels/version.h"

namespace weft::nccl_kernels {
namespace {

// Parts of a message begin at multiples of this.
constexpr std::size_t kPartUnitBytes = 4096;

// One direction of a work.
struct Half {
  bool sending;
  int peer;
  char* address;  // of this channel's part
  std::size_t bytes;
  std::size_t chunk_bytes;
  bool ll, registered;
};

// The channel's part of one direction; false where the channel has none.
bool half_of(const Block& block, const WorkSendReceive& work, bool sending, Half& half) {
  const std::size_t whole = sending ? work.send_bytes : work.receive_bytes;
  const auto parts = std::size_t(sending ? work.send_channels : work.receive_channels);
  const auto part = std::size_t(send_receive_part(work, block.channel_index));
  if (part >= parts) return false;
  const std::size_t part_bytes = ((whole + parts - 1) / parts + kPartUnitBytes - 1) / kPartUnitBytes * kPartUnitBytes;
  const std::size_t begin = std::min(part * part_bytes, whole), end = std::min((part + 1) * part_bytes, whole);
  half = {sending,
          sending ? work.send_rank : work.receive_rank,
          (sending ? work.send_address : work.receive_address) + begin,
          end - begin,
          chunk_bytes(sending ? work.send_chunk : work.receive_chunk),
          sending ? work.send_ll() : work.receive_ll(),
          sending ? work.send_registered() : work.receive_registered()};
  return true;
}

void run_half(const Block& block, const Half& half) {
  MessageSteps steps{half.chunk_bytes, std::size_t(block.communicator->send_receive_chunk_bytes), false};
  if (half.registered) steps = registered_message_steps(block, half.chunk_bytes);
  PrimitivesSetup setup;
  setup.protocol = half.ll ? kLL : kSimple;
  (half.sending ? setup.send_to : setup.receive_from) = {half.peer};
  setup.connection = kSendReceiveConnection;
  setup.step_bytes = steps.step_bytes;
  setup.registered = setup.handshake_only = half.registered;
  Primitives primitives(block, setup, Reduction::none());
  std::size_t done = 0;
  // An empty message is one empty chunk.
  do {
    const std::size_t bytes = std::min(steps.chunk_bytes, half.bytes - done);
    char* address = half.address + done;
    if (half.sending)
      primitives.send(address, std::ptrdiff_t(bytes), address);
    else
      primitives.recv(address, std::ptrdiff_t(bytes), address);
    done += bytes;
  } while (done < half.bytes && !steps.one_handshake);
}

}  // namespace

std::size_t chunk_bytes(std::uint8_t code) {
  const unsigned exponent = code >> 3, fraction = code & 7;
  return exponent == 0 ? fraction : std::size_t(fraction | 8) << (exponent - 1);
}

void run_send_receive(const Block& block, const std::vector<WorkSendReceive>& works) {
  std::vector<std::function<void()>> jobs;
  for (const WorkSendReceive& work : works) {
    const bool to_self = work.send_rank == block.communicator->rank;
    for (const bool sending : {false, true}) {
      Half half;
      if (!half_of(block, work, sending, half)) continue;
      if (!to_self) {
        if (is_peer_registered(work, sending)) not_emulated("a message on buffers registered between GPUs");
        jobs.push_back([&block, half] { run_half(block, half); });
      } else if (sending) {
        const std::ptrdiff_t begin = half.address - work.send_address;
        std::memmove(work.receive_address + begin, half.address, half.bytes);
      }
    }
  }
  run_at_once(jobs);
}

}  // namespace weft::nccl_kernels
