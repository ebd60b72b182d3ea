#include "tests/rig/soft_rnic/engine/nic.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "tests/rig/soft_rnic/wire/source_port.h"

namespace weft::soft_rnic {
namespace {

// After the network refused a packet (a full socket): when to try again.
constexpr Nanoseconds kRetrySend = 100 * kMicrosecond;
// The kernel charges a received packet with more than its bytes (buffer and bookkeeping, up to about twice a 1 KiB
// packet), and several senders may send at once. A window is at most this part of the receive buffer that the kernel
// reports.
constexpr std::uint32_t kWindowsPerReceiveBuffer = 4;
constexpr std::uint32_t kMinWindowPackets = 4;
// The core of Linux replaces a hop limit of 0 or 1 by that of the route, usually 64; ibv_rc_pingpong relies on it.
constexpr std::uint8_t kDefaultHopLimit = 64;

constexpr std::array<std::uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

Nanoseconds monotonic_now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * Nanoseconds{1'000'000'000} + time.tv_nsec;
}

Result<std::shared_ptr<Nic>> Nic::open(const DeviceDescription& device, const HostDescription& host,
                                       StatisticsSink publish_statistics) {
  auto loan = borrow_receive_socket(device.address);
  if (!loan) {
    Error error = loan.take_error();
    error.where = device.name;
    return error;
  }
  std::shared_ptr<Nic> nic(new Nic(device, host, loan.take(), std::move(publish_statistics)));
  if (!nic->wake_.valid()) return system_error("cannot create an eventfd", errno, device.name);
  nic->thread_ = std::thread(&Nic::run, nic.get());
  return nic;
}

Nic::Nic(const DeviceDescription& device, const HostDescription& host, Loan loan, StatisticsSink publish_statistics)
    : device_(device),
      never_retransmit_(host.defects.never_retransmit),
      loan_(std::move(loan)),
      regions_({device.late_gpu_writes, host.defects.corrupt_payload}),
      next_queue_pair_(loan_.terms.first_queue_pair),
      send_sockets_(device.address),
      random_(static_cast<std::uint32_t>(getpid()) ^ device.address),
      control_file_(host.control_file),
      publish_statistics_(std::move(publish_statistics)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  socklen_t size = sizeof receive_buffer_;
  getsockopt(loan_.socket.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer_, &size);
  control_file_.refresh();
  apply_faults(control_file_.faults_of(device_.name));
}

Nic::~Nic() {
  stop_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

void Nic::add_listener(AsyncEvents* events) {
  const std::lock_guard lock(listeners_mutex_);
  listeners_.push_back(events);
}

void Nic::remove_listener(AsyncEvents* events) {
  const std::lock_guard lock(listeners_mutex_);
  listeners_.erase(std::remove(listeners_.begin(), listeners_.end(), events), listeners_.end());
}

void Nic::apply_faults(const Faults& faults) {
  bool changed = false;
  {
    const std::lock_guard lock(mutex_);
    changed = faults_.port_up != faults.port_up;
    faults_ = faults;
    port_up_ = faults.port_up;
  }
  if (!changed) return;
  ibv_async_event event{};
  event.event_type = faults.port_up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR;
  event.element.port_num = 1;
  const std::lock_guard lock(listeners_mutex_);
  for (AsyncEvents* listener : listeners_)
    listener->add(event);
}

std::optional<NicStatistics> Nic::statistics() {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock.owns_lock()) return statistics_;
    usleep(1000);
  }
  return std::nullopt;
}

// ---- queue pairs

Result<QueuePair*> Nic::create_queue_pair(QueuePairParts parts) {
  if (queue_pairs_.size() >= device_.capabilities.max_queue_pairs) {
    return system_error("no queue pair left", ENOMEM, device_.name);
  }
  // Numbers 0 and 1 are the management queue pairs of every device.
  do {
    parts.number = loan_.terms.slot * kQueuePairsPerSlot + next_queue_pair_++ % kQueuePairsPerSlot;
  } while (parts.number < 2 || queue_pairs_.count(parts.number) != 0);
  auto queue_pair = std::make_unique<QueuePair>(parts, regions_);
  QueuePair* result = queue_pair.get();
  queue_pairs_.emplace(parts.number, std::move(queue_pair));
  return result;
}

void Nic::destroy_queue_pair(QueuePair& queue_pair) {
  active_.erase(std::remove(active_.begin(), active_.end(), &queue_pair), active_.end());
  queue_pair.parts().send_completions->forget(queue_pair.number());
  queue_pair.parts().receive_completions->forget(queue_pair.number());
  queue_pairs_.erase(queue_pair.number());
}

void Nic::deregister(std::uint32_t key) {
  const MemoryRange range = regions_.remove(key);
  for (auto& [number, queue_pair] : queue_pairs_) {
    queue_pair->requester().revoke(range);
    queue_pair->responder().revoke(range);
    queue_pair->receives().revoke(range);
    settle(*queue_pair);
  }
}

bool Nic::uses(const SharedReceives& receives) const {
  return std::any_of(queue_pairs_.begin(), queue_pairs_.end(),
                     [&](const auto& entry) { return entry.second->parts().shared_receives == &receives; });
}

std::uint32_t Nic::window_packets(std::uint32_t mtu) const {
  const std::uint32_t bytes = std::min(device_.window_bytes, receive_buffer_ / kWindowsPerReceiveBuffer);
  return std::max(bytes / mtu, kMinWindowPackets);
}

Result<void> Nic::set_path(QueuePair& queue_pair, const ibv_ah_attr& address) {
  const std::uint8_t* gid = address.grh.dgid.raw;
  const bool source_known = address.is_global && address.grh.sgid_index < device_.gids.size();
  if (!source_known || !std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), gid)) {
    return system_error("not an IPv4-mapped GID, or a wrong source GID index", EINVAL, device_.name);
  }
  Path path;
  path.flow.source_address = device_.address;
  std::memcpy(&path.flow.destination_address, gid + kMappedPrefix.size(), sizeof path.flow.destination_address);
  path.flow.destination_port = kRoceUdpPort;
  path.flow.source_port =
      source_port_of(address.grh.flow_label & 0xfffff, queue_pair.number(), queue_pair.attributes().dest_qp_num);
  path.traffic_class = address.grh.traffic_class;
  path.hop_limit = address.grh.hop_limit > 1 ? address.grh.hop_limit : kDefaultHopLimit;
  if (auto route = send_sockets_.check_route(path.flow.destination_address); !route) return route;
  return adopt_path(queue_pair, path);
}

Result<void> Nic::set_source_port(QueuePair& queue_pair, std::uint16_t source_port) {
  Path path = queue_pair.path();
  path.flow.source_port = source_port;
  return adopt_path(queue_pair, path);
}

Result<void> Nic::adopt_path(QueuePair& queue_pair, Path path) {
  auto socket = send_sockets_.open(path.flow.source_port);
  if (!socket) return socket.take_error();
  path.socket = (*socket)->get();
  queue_pair.set_path(path, socket.take(), statistics_.of(path.flow.source_port, path.flow.destination_address));
  return {};
}

// ---- sending

bool Nic::transmit_from(QueuePair& queue_pair, PacketSource& source) {
  const Path& path = queue_pair.path();
  for (;;) {
    batch_.clear();
    while (!batch_.full() && source.take(batch_.next()))
      batch_.keep();
    if (batch_.size() == 0) return true;
    // What a port sends that is down is lost, as on a wire.
    const std::size_t sent = port_up_ ? batch_.send(path) : batch_.size();
    source.commit(sent, monotonic_now());
    PortStatistics& statistics = *queue_pair.statistics();
    for (std::size_t index = 0; index < sent; ++index) {
      statistics.bytes += batch_[index].udp_payload_size();
      statistics.retransmitted += batch_[index].retransmitted ? 1 : 0;
    }
    statistics.packets += sent;
    if (sent < batch_.size()) return false;
    if (!batch_.full()) return true;
  }
}

void Nic::transmit(QueuePair& queue_pair) {
  if (queue_pair.path().socket < 0) return;
  queue_pair.retry_send_at = kNever;
  bool all = transmit_from(queue_pair, queue_pair.responder().answers());
  if (all && queue_pair.sends_requests()) all = transmit_from(queue_pair, queue_pair.requester());
  if (!all) queue_pair.retry_send_at = monotonic_now() + kRetrySend;
}

void Nic::settle(QueuePair& queue_pair) {
  if (queue_pair.state() == IBV_QPS_ERR) return;
  transmit(queue_pair);  // first of all the answer that tells the peer of a failure
  const auto broken = queue_pair.responder().failure();
  if (broken || queue_pair.requester().failure()) {
    queue_pair.enter_error_state();
    if (broken) queue_pair.raise(*broken);
    return;
  }
  if (queue_pair.drain_event_due && queue_pair.requester().drained()) {
    queue_pair.drain_event_due = false;
    queue_pair.raise(IBV_EVENT_SQ_DRAINED);
  }
  need_service_at(queue_pair.deadline());
}

void Nic::need_service_at(Nanoseconds time) {
  if (time >= service_due_) return;
  service_due_ = time;
  if (time >= thread_wakes_at_) return;  // also while the thread is awake, when this is 0
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
}

// ---- receiving

bool Nic::receive(Nanoseconds now) {
  if (receiver_.read(loan_.socket.get()) == 0) return false;
  receiver_.for_each([&](const Arrival& arrival) { on_arrival(arrival, now); });
  return true;
}

void Nic::on_arrival(const Arrival& arrival, Nanoseconds now) {
  if (!faults_.port_up) return;
  if (faults_.drop_per_million > 0 && random_() % 1'000'000 < faults_.drop_per_million) return;
  if (faults_.delay > 0 || delay_line_.deadline() != kNever) {
    delay_line_.add(arrival, now + faults_.delay);
    need_service_at(delay_line_.deadline());
    return;
  }
  deliver(arrival, now);
}

// Packets that are damaged, for nobody or from a stranger vanish without an answer, as on a device.
void Nic::deliver(const Arrival& arrival, Nanoseconds now) {
  const auto number = destination_queue_pair_of(arrival.udp_payload);
  if (!number) return;
  const auto found = queue_pairs_.find(*number);
  if (found == queue_pairs_.end()) return;
  QueuePair& queue_pair = *found->second;
  const Path& path = queue_pair.path();
  if (arrival.source_address != path.flow.destination_address) return;
  const Flow flow{arrival.source_address, device_.address, arrival.source_port, kRoceUdpPort};
  if (!icrc_right(flow, arrival.index, arrival.udp_payload)) return;
  const auto packet = parse_packet(arrival.udp_payload);
  if (!packet) return;

  if (packet->layout.request()) {
    if (!queue_pair.answers_requests()) return;
    queue_pair.responder().on_request(*packet, arrival.udp_payload, now);
  } else {
    if (!queue_pair.sends_requests()) return;
    switch (packet->layout.operation) {
      case Operation::read_response:
        queue_pair.requester().on_read_response(*packet, now);
        break;
      case Operation::atomic_response:
        queue_pair.requester().on_atomic_response(*packet, now);
        break;
      default:
        queue_pair.requester().on_acknowledge(packet->base.psn, packet->acknowledge, now);
    }
  }
  if (!queue_pair.in_active_list) {
    queue_pair.in_active_list = true;
    active_.push_back(&queue_pair);
  }
}

void Nic::settle_active() {
  for (QueuePair* queue_pair : active_) {
    queue_pair->in_active_list = false;
    settle(*queue_pair);
    SharedReceives* shared = queue_pair->parts().shared_receives;
    if (shared != nullptr && shared->queue.take_limit_event()) {
      ibv_async_event event{};
      event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
      event.element.srq = shared->handle;
      shared->events->add(event);
    }
    if (queue_pair->parts().receive_completions->take_overrun()) {
      ibv_async_event event{};
      event.event_type = IBV_EVENT_CQ_ERR;
      event.element.cq = queue_pair->parts().receive_completions->handle();
      queue_pair->parts().events->add(event);
    }
  }
  active_.clear();
}

void Nic::run_timers(Nanoseconds now) {
  if (now < service_due_) return;
  service_due_ = kNever;
  delay_line_.release(now, [&](const Arrival& arrival) { deliver(arrival, now); });
  settle_active();
  need_service_at(delay_line_.deadline());
  for (auto& [number, queue_pair] : queue_pairs_) {
    if (queue_pair->deadline() > now) {
      need_service_at(queue_pair->deadline());
      continue;
    }
    queue_pair->responder().on_time(now);
    queue_pair->requester().on_time(now);
    settle(*queue_pair);
  }
}

void Nic::progress() {
  // Bounded, so that a poll returns to its caller also while packets keep coming.
  for (int round = 0; round < 4 && receive(monotonic_now()); ++round) {
    settle_active();
    if (!receiver_.more_likely()) break;
  }
  run_timers(monotonic_now());
}

void Nic::poll() {
  last_poll_.store(monotonic_now(), std::memory_order_relaxed);
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) progress();
}

}  // namespace weft::soft_rnic
