#include "tests/rig/soft_rnic/broker/broker.h"

#include <linux/filter.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace weft::soft_rnic {
namespace {

// Queue pair numbers of a new loan begin this far behind those of the slot's last one, so that late packets for a
// process that has ended find nobody.
constexpr std::uint32_t kNumbersPerLoan = 4099;

// Where a slot's numbers begin: differs between NICs, as on real devices, and is the same in every run, so that source
// ports made of queue pair numbers are reproducible.
std::uint32_t first_number(const DeviceDescription& device) {
  std::uint64_t mixed = be64toh(device.guid) * 0x9e3779b97f4a7c15;
  mixed ^= mixed >> 29;
  return 17 + static_cast<std::uint32_t>(mixed % 16384);
}

// Packets go to the socket whose number is the fifth byte of the UDP payload: the top byte of the destination queue
// pair.
Result<void> steer_by_queue_pair(int socket) {
  sock_filter program[] = {{BPF_LD | BPF_B | BPF_ABS, 0, 0, 5}, {BPF_RET | BPF_A, 0, 0, 0}};
  const sock_fprog filter = {2, program};
  if (setsockopt(socket, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &filter, sizeof filter) != 0) {
    return system_error("cannot attach the filter that shares port 4791", errno);
  }
  return {};
}

void drain(int socket) {
  char bytes[1];
  while (recv(socket, bytes, sizeof bytes, MSG_DONTWAIT) >= 0) {
  }
}

}  // namespace

Result<NicBroker> NicBroker::open(const DeviceDescription& device) {
  NicBroker broker;
  for (std::uint32_t index = 0; index < kSlots; ++index) {
    auto socket = open_receive_socket(device.address, true);
    if (!socket) return socket.take_error();
    Slot slot;
    slot.socket = socket.take();
    slot.next_queue_pair = first_number(device);
    // One program serves the whole group, later members included.
    if (index == 0) {
      if (auto steered = steer_by_queue_pair(slot.socket.get()); !steered) return steered.take_error();
    }
    broker.slots_.push_back(std::move(slot));
  }
  broker.listener_ = FileDescriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const UnixAddress address = broker_address(device.address);
  if (!broker.listener_.valid() ||
      bind(broker.listener_.get(), reinterpret_cast<const sockaddr*>(&address.name), address.size) != 0 ||
      listen(broker.listener_.get(), static_cast<int>(kSlots)) != 0) {
    return system_error("cannot listen for processes", errno, {}, "is a second broker running on this host?");
  }
  return broker;
}

void NicBroker::append_sources(std::vector<pollfd>& sources) const {
  sources.push_back({listener_.get(), POLLIN, 0});
  // poll() ignores negative descriptors, so free slots keep their place.
  for (const Slot& slot : slots_)
    sources.push_back({slot.client.get(), POLLIN, 0});
}

std::size_t NicBroker::handle(const pollfd* sources) {
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    // Clients never speak: anything that happens on the connection is its end.
    if (sources[1 + index].revents != 0) take_back(slots_[index]);
  }
  if (sources[0].revents != 0) {
    FileDescriptor client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (client.valid()) lend(std::move(client));
  }
  return 1 + slots_.size();
}

void NicBroker::lend(FileDescriptor client) {
  const auto free = std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return !slot.client.valid(); });
  if (free == slots_.end()) return;  // closing the connection tells the client
  const LoanMessage terms{static_cast<std::uint32_t>(free - slots_.begin()), free->next_queue_pair};
  if (!send_loan(client.get(), terms, free->socket.get())) return;
  free->client = std::move(client);
}

void NicBroker::take_back(Slot& slot) {
  slot.client = FileDescriptor();
  slot.next_queue_pair = (slot.next_queue_pair + kNumbersPerLoan) % kQueuePairsPerSlot;
  drain(slot.socket.get());
}

}  // namespace weft::soft_rnic
