#include "tests/unit/soft_rnic/simulation.h"

#include <algorithm>
#include <cstring>

namespace weft::soft_rnic::test {
namespace {

constexpr std::uint32_t kLeft = 0x11;
constexpr std::uint32_t kRight = 0x000112;
constexpr std::uint32_t kFirstPsn = 0xfffff0;  // so that every test crosses the wrap of the 24 bits
constexpr std::size_t kQueueDepth = 64;
constexpr Nanoseconds kRefusedFor = 100 * kMicrosecond;

}  // namespace

std::uint8_t* HostMemory::find(std::uint32_t key, std::uint64_t address, std::uint64_t length, int access) {
  const bool inside = address >= kAddress && address - kAddress <= bytes.size() && length <= bytes.size() &&
                      address - kAddress + length <= bytes.size();
  return key == kKey && inside && (granted & access) == access ? bytes.data() + (address - kAddress) : nullptr;
}

void HostMemory::store(std::uint8_t* destination, std::span<const std::uint8_t> payload) {
  std::memcpy(destination, payload.data(), payload.size());
  stored += payload.size();
}

End::End(std::uint32_t queue_pair, std::size_t memory_size, std::size_t queue_depth)
    : number(queue_pair),
      memory(memory_size),
      receives(queue_depth),
      requester(sent, queue_pair, queue_depth, false),
      responder(memory, receives, received, queue_pair) {}

Simulation::Simulation(std::uint32_t seed, const Weather& weather, const RequesterSettings& settings,
                       std::size_t memory_size)
    : random_(seed), weather_(weather) {
  ends_[0] = std::make_unique<End>(kLeft, memory_size, kQueueDepth);
  ends_[1] = std::make_unique<End>(kRight, memory_size, kQueueDepth);
  for (std::size_t index = 0; index < 2; ++index) {
    const std::uint32_t peer = ends_[1 - index]->number;
    RequesterSettings requester = settings;
    requester.destination_queue_pair = peer;
    ends_[index]->requester.settings() = requester;
    ends_[index]->requester.start_at(kFirstPsn);
    ResponderSettings responder;
    responder.source_queue_pair = peer;
    responder.mtu = settings.mtu;
    responder.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    ends_[index]->responder.configure(responder);
    ends_[index]->responder.start_at(kFirstPsn);
  }
}

void Simulation::put_on_wire(const OutgoingPacket& packet, std::size_t to) {
  ++packets_;
  std::vector<std::uint8_t> bytes(packet.header.begin(),
                                  packet.header.begin() + static_cast<std::ptrdiff_t>(packet.header_size));
  for (std::uint32_t index = 0; index < packet.payload.count; ++index) {
    const Piece& piece = packet.payload.pieces[index];
    bytes.insert(bytes.end(), piece.data, piece.data + piece.size);
  }
  bytes.insert(bytes.end(), packet.pad() + kIcrcSize, 0);
  malformed_ |= !parse_packet(bytes) || bytes.size() != packet.udp_payload_size();
  if (happens(weather_.lose)) return;
  const int copies = happens(weather_.duplicate) ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    const bool late = happens(weather_.overtake) || copy > 0;
    const Nanoseconds extra = late ? 1 + static_cast<Nanoseconds>(random_() % weather_.overtake_by) : 0;
    wire_.push_back({now_ + weather_.latency + extra, packets_, to, bytes});
  }
}

void Simulation::pull(PacketSource& source, std::size_t from) {
  std::vector<OutgoingPacket> batch;
  for (OutgoingPacket packet; batch.size() < 32 && source.take(packet);)
    batch.push_back(packet);
  std::size_t accepted = batch.size();
  if (!batch.empty() && happens(weather_.refuse)) {
    accepted = random_() % batch.size();
    refused_until_ = now_ + kRefusedFor;
  }
  for (std::size_t index = 0; index < accepted; ++index)
    put_on_wire(batch[index], 1 - from);
  source.commit(accepted, now_);
  if (accepted == 32) pull(source, from);
}

void Simulation::send_all() {
  if (now_ < refused_until_) return;
  for (std::size_t index = 0; index < 2; ++index) {
    pull(ends_[index]->responder.answers(), index);
    if (!ends_[index]->requester.failure()) pull(ends_[index]->requester, index);
  }
}

void Simulation::deliver(const InFlight& in_flight) {
  End& end = *ends_[in_flight.to];
  const auto packet = parse_packet(in_flight.bytes);
  if (!packet) return;
  if (packet->layout.request()) {
    end.responder.on_request(*packet, in_flight.bytes, now_);
  } else if (packet->layout.operation == Operation::read_response) {
    end.requester.on_read_response(*packet, now_);
  } else if (packet->layout.operation == Operation::atomic_response) {
    end.requester.on_atomic_response(*packet, now_);
  } else {
    end.requester.on_acknowledge(packet->base.psn, packet->acknowledge, now_);
  }
}

Nanoseconds Simulation::next_event() const {
  Nanoseconds next = kNever;
  for (const InFlight& packet : wire_)
    next = std::min(next, packet.due);
  for (const auto& end : ends_)
    next = std::min({next, end->requester.deadline(), end->responder.deadline()});
  if (now_ < refused_until_) next = std::min(next, refused_until_);
  return next;
}

void Simulation::run(Nanoseconds at_most) {
  const Nanoseconds end = now_ + at_most;
  for (send_all(); next_event() <= end; send_all()) {
    now_ = std::max(now_, next_event());
    const auto due =
        std::stable_partition(wire_.begin(), wire_.end(), [&](const InFlight& packet) { return packet.due > now_; });
    std::vector<InFlight> arriving(due, wire_.end());
    wire_.erase(due, wire_.end());
    std::sort(arriving.begin(), arriving.end(), [](const InFlight& a, const InFlight& b) {
      return std::pair(a.due, a.order) < std::pair(b.due, b.order);
    });
    for (const InFlight& packet : arriving)
      deliver(packet);
    for (const auto& host : ends_) {
      if (now_ >= host->responder.deadline()) host->responder.on_time(now_);
      if (now_ >= host->requester.deadline()) host->requester.on_time(now_);
    }
  }
  if (next_event() != kNever) now_ = end;
}

SendRequest& prepare(End& end, ibv_wr_opcode opcode, std::uint64_t id, std::size_t offset, std::uint32_t length) {
  SendRequest& request = end.requester.prepare();
  request = {};
  request.id = id;
  request.opcode = opcode;
  request.signaled = true;
  request.remote_address = HostMemory::kAddress + offset;
  request.remote_key = HostMemory::kKey;
  request.length = length;
  request.memory.count = length > 0 ? 1 : 0;
  request.memory.pieces[0] = {end.memory.bytes.data() + offset, length};
  return request;
}

void post_receive(End& end, std::uint64_t id, std::size_t offset, std::uint32_t length) {
  ReceiveRequest receive;
  receive.id = id;
  receive.memory.count = length > 0 ? 1 : 0;
  receive.memory.pieces[0] = {end.memory.bytes.data() + offset, length};
  end.receives.post(receive);
}

}  // namespace weft::soft_rnic::test
