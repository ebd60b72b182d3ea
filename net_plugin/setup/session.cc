#include "net_plugin/setup/session.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/text/format.h"
#include "net_plugin/paths/source_port.h"
#include "net_plugin/setup/socket_address.h"
#include "net_plugin/version.h"

namespace weft::setup {
namespace {

// While first writes are under way the completion queue is looked at so often.
constexpr std::chrono::microseconds kProofInterval{50};
// While addresses are resolved their event channels are looked at so often.
constexpr std::chrono::milliseconds kResolveInterval{1};
// A peer may begin with so many paths whatever its settings are.
constexpr std::size_t kMostFirstPaths = 256;

bool same(const Secret& left, const Secret& right) {
  std::uint8_t difference = 0;  // in the same time wherever they differ
  for (std::size_t i = 0; i < left.size(); i++)
    difference |= std::uint8_t(left[i] ^ right[i]);
  return difference == 0;
}

}  // namespace

Session::Session(SessionSetup setup, Role role) : setup_(std::move(setup)), role_(role) {
  deadline_ = std::chrono::steady_clock::now() + setup_.options.connect_timeout;
  for (const auto& device : setup_.devices)
    here_.push_back(device->state());
}

// Paths under way report to queues of the link, which is in an outcome that nobody has asked for.
Session::~Session() {
  growth_.reset();
}

std::shared_ptr<Session> Session::connect(SessionSetup setup, const Handle& handle) {
  std::shared_ptr<Session> session(new Session(std::move(setup), Role::sender));
  session->begin_connect(handle);
  return session;
}

std::shared_ptr<Session> Session::accept(SessionSetup setup, FileDescriptor socket, std::string peer_address) {
  std::shared_ptr<Session> session(new Session(std::move(setup), Role::receiver));
  session->socket_ = std::move(socket);
  session->peer_address_ = std::move(peer_address);
  return session;
}

void Session::begin_connect(const Handle& handle) {
  peer_address_ = address_text(handle.address);
  listener_address_ = handle.address;
  state_ = State::connecting;
  auto socket = connect_socket(handle.address);
  if (!socket) {
    fail(socket.take_error());
    return;
  }
  socket_ = socket.take();
}

std::optional<Result<Engine>> Session::poll() {
  std::lock_guard lock(mutex_);
  auto outcome = std::move(outcome_);
  outcome_.reset();
  return outcome;
}

bool Session::finished() const {
  std::lock_guard lock(mutex_);
  return finished_;
}

bool Session::was_for_this_listener() const {
  std::lock_guard lock(mutex_);
  return meant_us_;
}

void Session::note_meant_us() {
  std::lock_guard lock(mutex_);
  meant_us_ = true;
}

Task::Wanted Session::wanted() {
  const TimePoint now = std::chrono::steady_clock::now();
  if (state_ == State::over) return {-1, 0, now};
  Wanted wanted{socket_.get(), POLLIN, std::nullopt};
  if (state_ == State::connecting) wanted.events = POLLOUT;
  if (!output_.empty()) wanted.events |= POLLOUT;
  if ((state_ == State::proving && !proven_) || (growth_ && growth_->proving())) {
    wanted.wake = now + kProofInterval;
  } else if (state_ == State::resolving) {
    wanted.wake = now + kResolveInterval;
  } else if (state_ != State::watching) {
    wanted.wake = deadline_;
  } else if (growth_) {
    wanted.wake = deadline_;
  } else if (role_ == Role::sender && !grown_) {
    wanted.wake = next_look_;
  }
  return wanted;
}

// The outcome of one that has failed may wait for long, or for ever: its descriptor need not.
void Session::let_go() {
  if (state_ == State::over) socket_.reset();
}

bool Session::step(short events, TimePoint now) {
  return advance(events, now) && state_ != State::over;
}

// Every step returns false when the session is over; the reason has been stored by then.
bool Session::advance(short events, TimePoint now) {
  if (state_ == State::over) return false;
  if (state_ == State::connecting && now > deadline_) return fail(not_reached(ETIMEDOUT));
  if (state_ != State::watching && now > deadline_) {
    const std::string between = peer_hello_ ? "; " + rails(0) : "";
    return fail(system_error(text::format("no answer from {} within {} ms ({})", peer_name(),
                                          setup_.options.connect_timeout.count(), step_name()),
                             0, setup_.device_name,
                             "is the peer alive? WEFT_CONNECT_TIMEOUT_MS sets the time" + between));
  }
  if (state_ == State::connecting) return events == 0 || finish_connect();
  if ((events & POLLOUT) != 0 && !flush_output()) return false;
  if ((events & (POLLIN | POLLHUP | POLLERR)) != 0 && !receive(now)) return false;
  if (state_ == State::resolving) return resolve(now);
  if (state_ == State::proving) return prove();
  if (state_ != State::watching) return true;
  if (growth_ && growth_->proving() && !advance_growth(growth_->continue_proof())) return false;
  if (growth_ && now > deadline_) stop_growth("the peer did not answer in time", true);
  look_at_need(now);
  return state_ != State::over;
}

const char* Session::step_name() const {
  switch (state_) {
    case State::connecting:
      return "TCP connect";
    case State::hello:
      return "waiting for its hello";
    case State::resolving:
      return "resolving its addresses";
    case State::ready:
      return "waiting for its queue pairs";
    case State::proving:
      return "first writes";
    default:
      return "connected";
  }
}

std::string Session::peer_name() const {
  if (!peer_hello_) return peer_address_;
  std::string names;
  for (const PeerDevice& device : peer_hello_->devices) {
    devices::GidEntry gid;
    gid.bytes = device.gid;
    names += text::format("{}{} {}", names.empty() ? "" : "+", device.name, devices::address_text(gid));
  }
  return text::format("{} {} (process {}, {})", peer_hello_->host, names, peer_hello_->process, peer_address_);
}

std::string Session::rails(std::size_t pair) const {
  const PathPlace place = path_place(pair, setup_.devices.size(), peer_hello_->devices.size());
  return rails_of(*setup_.devices[place.device], here_[place.device], peer_hello_->devices[place.peer_device]);
}

// The cause is mostly between the hosts, and then neither side's log has more than this.
Error Session::not_reached(int code) const {
  const std::string there = address_with_port(listener_address_);
  const std::string firewall =
      "is the port open in the firewall between the hosts (WEFT_PORT_RANGE on the listening host keeps to open ones), "
      "and the interface of NCCL_SOCKET_IFNAME routed?";
  if (code == ETIMEDOUT) {
    return Error{text::format("TCP connect to {} timed out after {} ms", there, setup_.options.connect_timeout.count()),
                 setup_.device_name, 0, firewall};
  }
  const std::string loopback =
      "the listener has its host's loopback address: if that is another host, name an interface with "
      "NCCL_SOCKET_IFNAME there";
  return system_error(text::format("TCP connect to {} failed", there), code, setup_.device_name,
                      is_loopback(listener_address_) ? loopback : firewall);
}

bool Session::finish_connect() {
  int code = 0;
  socklen_t size = sizeof code;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &code, &size) != 0) code = errno;
  if (code != 0) return fail(not_reached(code));
  share_.emplace(setup_.budget, paths::hash_bytes(0, setup_.peer_gid.data(), setup_.peer_gid.size()));
  std::size_t sets = 1;
  if (setup_.options.grow_after == 0) {
    sets += std::size_t(share_->grow());
    grown_ = true;
  }
  if (!create_queue_pairs(sets * pairs(), setup_.peer_devices)) return false;
  auto ring = transfer::ClearToSendRing::create(link_->devices);
  if (!ring) return fail(ring.take_error());
  ring_.emplace(ring.take());
  state_ = State::hello;
  return send(encode_hello(my_hello()));
}

// Pairs of a local and a remote device, each with its paths.
std::size_t Session::pairs() const {
  const std::size_t peers = peer_hello_ ? peer_hello_->devices.size() : setup_.peer_devices;
  return std::max(setup_.devices.size(), peers);
}

bool Session::create_queue_pairs(std::size_t paths, std::size_t peer_devices) {
  const std::size_t most =
      std::max(std::size_t(setup_.options.paths) * std::max(setup_.devices.size(), peer_devices), paths);
  ports_ = setup_.choose_ports(here_.front().gid.bytes,
                               peer_hello_ ? peer_hello_->devices.front().gid : setup_.peer_gid, most);
  link_ = std::make_unique<transfer::Link>(setup_.devices, setup_.device_name, peer_, most);
  if (role_ == Role::receiver) {
    auto plan = plan_receive_queues(setup_.devices);
    if (!plan) return fail(plan.take_error());
    receive_queues_ = *plan;
    if (auto made = create_shared_queues(*link_, receive_queues_); !made) return fail(made.take_error());
  }
  auto batch = Batch::create(*link_, role_, setup_.options, {ports_.begin(), ports_.begin() + std::ptrdiff_t(paths)}, 0,
                             peer_devices, receive_queues_);
  if (!batch) return fail(batch.take_error());
  batch_.emplace(batch.take());
  paths_ = paths;
  return true;
}

Hello Session::my_hello() const {
  Hello hello;
  hello.plugin_version = kVersion;
  hello.listener = setup_.listener;
  if (role_ == Role::sender) hello.secret = setup_.secret;
  hello.host = setup_.host;
  hello.process = std::uint32_t(getpid());
  hello.traffic_class = setup_.options.traffic_class;
  hello.settings_digest = setup_.settings_digest;
  if (ring_) hello.ring_address = ring_->address();
  for (std::size_t i = 0; i < setup_.devices.size(); i++) {
    const devices::PortState& port = here_[i];
    hello.devices.push_back({setup_.devices[i]->name(), IBV_LINK_LAYER_ETHERNET, port.gid.bytes, 2,
                             std::uint8_t(port.path_mtu), std::uint32_t(port.speed_mbps),
                             ring_ ? ring_->remote_key(i) : 0, std::uint8_t(port.prefix_length)});
  }
  if (batch_) hello.offers = batch_->offers();
  return hello;
}

bool Session::receive(TimePoint) {
  std::byte buffer[4096];
  while (true) {
    const ssize_t got = recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got <= 0) {
      return lost(got == 0 ? "its process has ended or closed the connection" : errno_name(errno));
    }
    input_.insert(input_.end(), buffer, buffer + got);
    while (true) {
      auto frame = take_frame(input_);
      if (!frame) {
        if (is_another_transport_of_nccl(input_, setup_.listener)) note_meant_us();
        return fail(frame.take_error());
      }
      if (!*frame) break;
      if (!handle_frame(**frame)) return false;
    }
  }
  return true;
}

bool Session::lost(const std::string& why) {
  if (state_ == State::watching) {
    // After an orderly end there is nothing left to lose.
    if (!peer_->closed()) peer_->set_lost(why);
    growth_.reset();
    state_ = State::over;
    return false;
  }
  return fail(Error{text::format("{} went away during the handshake ({}): {}", peer_name(), step_name(), why),
                    setup_.device_name, 0, "the peer's log says why"});
}

bool Session::handle_frame(const Frame& frame) {
  switch (frame.type) {
    case MessageType::hello:
      return handle_hello(frame);
    case MessageType::refuse:
      note_meant_us();
      return fail(Error{text::format("{} refuses: {}", peer_name(), decode_text(frame)), setup_.device_name, 0, {}});
    case MessageType::ready:
      return state_ != State::ready || begin_proof();
    case MessageType::proven:
      peer_proven_ = true;
      return state_ != State::proving || prove();
    case MessageType::failed:
      peer_->set_lost(decode_text(frame));
      return true;
    case MessageType::closing:
      peer_->set_closed();
      return true;
    case MessageType::grow:
    case MessageType::grown:
    case MessageType::grow_ready:
    case MessageType::grow_proven:
    case MessageType::grow_stop:
      return handle_growth(frame);
  }
  return fail(
      Error{text::format("an unknown message ({}) from {}", int(frame.type), peer_name()), setup_.device_name, 0, {}});
}

bool Session::handle_hello(const Frame& frame) {
  if (state_ != State::hello) return fail(Error{"a second hello from " + peer_name(), setup_.device_name, 0, {}});
  auto hello = decode_hello(frame, setup_.devices.size());
  if (!hello) return refuse(hello.error().text());
  if (role_ == Role::receiver) {
    if (hello->listener != setup_.listener || !same(hello->secret, setup_.secret))
      return refuse("this connection is for another listener");
    note_meant_us();
    for (const devices::PortState& port : here_)
      if (port.unusable) return refuse(port.unusable->text());
  }
  peer_hello_.emplace(hello.take());
  if (role_ == Role::sender && peer_hello_->devices.size() != setup_.peer_devices)
    return refuse("the listener has other devices than its handle says");
  if (role_ == Role::receiver) {
    const std::size_t most = std::size_t(setup_.options.paths) * pairs();
    if (peer_hello_->offers.paths.size() > std::max(most, kMostFirstPaths))
      return refuse(text::format("{} paths at once are too many", peer_hello_->offers.paths.size()));
    if (!create_queue_pairs(peer_hello_->offers.paths.size(), peer_hello_->devices.size())) return false;
  }
  for (const std::string& line : remarks(my_hello(), *peer_hello_))
    if (setup_.remark) setup_.remark(line);
  if (const auto why = objection(my_hello(), *peer_hello_)) return refuse(*why);
  if (peer_hello_->offers.paths.size() != batch_->size()) return refuse("not as many paths as were offered");
  link_->description =
      text::format("{} {} -> {}", setup_.device_name, devices::address_text(here_.front().gid), peer_name());
  const TimePoint now = std::chrono::steady_clock::now();
  for (std::size_t i = 0; setup_.resolve && i < pairs(); i++) {
    const PathPlace place = path_place(i, setup_.devices.size(), peer_hello_->devices.size());
    auto resolution =
        setup_.resolve(place.device, here_[place.device].gid.bytes, peer_hello_->devices[place.peer_device].gid, now);
    if (resolution) resolutions_.push_back({std::move(resolution), rails(i)});
  }
  state_ = State::resolving;
  return resolve(now);
}

// Until the peer's addresses are known to be reached.
bool Session::resolve(TimePoint now) {
  for (auto one = resolutions_.begin(); one != resolutions_.end();) {
    const auto done = one->way->step(now);
    if (!done) {
      ++one;
      continue;
    }
    if (!*done) return refuse(text::format("{}; {}", done->error().text(), one->rails));
    if (setup_.remark && !one->way->remark().empty()) setup_.remark(one->way->remark());
    setup_.resolved(one->way->from(), one->way->to());
    one = resolutions_.erase(one);
  }
  return !resolutions_.empty() || connect_queue_pairs();
}

bool Session::connect_queue_pairs() {
  if (const std::string why = moved(); !why.empty()) return refuse(why);
  batch_->take_extensions(peer_hello_->offers);
  if (auto connected = batch_->connect(setup_.options, here_, peer_hello_->devices, peer_hello_->offers); !connected) {
    Error error = connected.take_error();
    error.what += " (peer: " + peer_name() + ")";
    return refuse(error.text());
  }
  if (role_ == Role::sender) return send(encode_text(MessageType::ready, "")) && begin_proof();
  state_ = State::ready;
  return send(encode_hello(my_hello()));
}

bool Session::begin_proof() {
  state_ = State::proving;
  if (auto started = batch_->start_proof(peer_hello_->offers); !started) return fail(started.take_error());
  return true;
}

bool Session::prove() {
  if (!proven_) {
    auto done = batch_->continue_proof();
    if (!done) {
      Error error = done.take_error();
      error.where = link_->description;
      return fail(std::move(error));
    }
    if (!*done) return true;
    proven_ = true;
    if (!send(encode_text(MessageType::proven, ""))) return false;
  }
  return !peer_proven_ || hand_over();
}

Result<std::vector<transfer::FlushPath>> Session::create_flush_paths() const {
  std::vector<transfer::FlushPath> all;
  const bool needed = std::any_of(setup_.devices.begin(), setup_.devices.end(),
                                  [](const auto& device) { return device->port().reaches_device_memory(); });
  if (!setup_.options.flush || !needed) return all;
  for (std::size_t i = 0; i < setup_.devices.size(); i++) {
    auto flush = batch_->create_flush_path(i, setup_.options, here_[i]);
    if (!flush) return flush.take_error();
    all.push_back(flush.take());
  }
  return all;
}

bool Session::hand_over() {
  // Pieces are cut for the paths that there will be: messages under way when they come were cut before.
  const std::size_t expected = share_ ? std::max(paths_, std::size_t(share_->possible()) * pairs()) : ports_.size();
  const transfer::PieceLimits pieces{setup_.options.piece_bytes, int(expected), here_.front().speed_mbps};
  Engine engine;
  handed_ = link_.get();
  if (role_ == Role::sender) {
    link_->add(*batch_->take());
    engine.sender = std::make_unique<transfer::Sender>(std::move(link_), std::move(*ring_), pieces);
  } else {
    auto flush = create_flush_paths();
    if (!flush) return fail(flush.take_error());
    link_->add(*batch_->take());
    transfer::RemoteRing ring;
    ring.address = peer_hello_->ring_address;
    for (std::size_t i = 0; i < peer_hello_->devices.size(); i++)
      ring.keys[i] = peer_hello_->devices[i].ring_key;
    auto receiver = transfer::Receiver::create(
        std::move(link_), ring, {pieces, receive_queues_.receives, setup_.options.incast_bytes}, flush.take());
    if (!receiver) return fail(receiver.take_error());
    engine.receiver = receiver.take();
  }
  batch_.reset();
  state_ = State::watching;
  next_look_ = std::chrono::steady_clock::now();
  std::lock_guard lock(mutex_);
  outcome_.emplace(std::move(engine));
  finished_ = true;
  return true;
}

bool Session::send(const std::vector<std::byte>& bytes) {
  output_.insert(output_.end(), bytes.begin(), bytes.end());
  return flush_output();
}

bool Session::flush_output() {
  while (!output_.empty()) {
    const ssize_t sent = ::send(socket_.get(), output_.data(), output_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (sent < 0) return lost(errno_name(errno));
    output_.erase(output_.begin(), output_.begin() + sent);
  }
  return true;
}

void Session::say_closing() {
  // The link goes next; paths under way report to its queues.
  growth_.reset();
  grown_ = true;
  if (state_ == State::watching) send(encode_text(MessageType::closing, ""));
  handed_ = nullptr;
}

void Session::say_failed(const std::string& why) {
  if (state_ == State::watching) send(encode_text(MessageType::failed, why));
}

// This side will not have the connection: the peer hears why before the socket closes.
bool Session::refuse(const std::string& why) {
  output_.clear();
  const std::vector<std::byte> message = encode_text(MessageType::refuse, why);
  (void)!::send(socket_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return fail(Error{text::format("no connection with {}: {}", peer_name(), why), setup_.device_name, 0, {}});
}

bool Session::fail(Error error) {
  if (state_ == State::watching) peer_->set_lost(error.text());
  growth_.reset();
  resolutions_.clear();
  // Whoever asked for the connection may never come back for the outcome: what the NIC has few of goes now.
  batch_.reset();
  ring_.reset();
  link_.reset();
  state_ = State::over;
  if (socket_.valid()) shutdown(socket_.get(), SHUT_RDWR);  // the peer notices at once
  std::lock_guard lock(mutex_);
  if (!finished_) outcome_.emplace(std::move(error));
  finished_ = true;
  return false;
}

}  // namespace weft::setup
