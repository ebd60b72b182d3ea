#include "net_plugin/setup/session.h"

#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>

#include "common/text/format.h"
#include "net_plugin/setup/socket_address.h"
#include "net_plugin/version.h"

namespace weft::setup {
namespace {

// While first writes are under way the completion queue is looked at so often.
constexpr std::chrono::milliseconds kProofInterval{1};

}  // namespace

Session::Session(SessionSetup setup, Role role) : setup_(std::move(setup)), role_(role) {
  deadline_ = std::chrono::steady_clock::now() + setup_.options.connect_timeout;
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
  if (state_ == State::over) return {-1, 0, std::chrono::steady_clock::now()};
  Wanted wanted{socket_.get(), POLLIN, std::nullopt};
  if (state_ == State::connecting) wanted.events = POLLOUT;
  if (!output_.empty()) wanted.events |= POLLOUT;
  if (state_ == State::proving && proven_ < int(endpoint_->link->paths.size())) {
    wanted.wake = std::chrono::steady_clock::now() + kProofInterval;
  } else if (state_ != State::watching) {
    wanted.wake = deadline_;
  }
  return wanted;
}

bool Session::step(short events, TimePoint now) {
  return advance(events, now) && state_ != State::over;
}

// Every step returns false when the session is over; the reason has been stored by then.
bool Session::advance(short events, TimePoint now) {
  if (state_ == State::over) return false;
  if (state_ != State::watching && now > deadline_) {
    return fail(system_error(text::format("no answer from {} within {} ms ({})", peer_name(),
                                          setup_.options.connect_timeout.count(), step_name()),
                             0, setup_.device->name(), "is the peer alive? WEFT_CONNECT_TIMEOUT_MS sets the time"));
  }
  if (state_ == State::connecting) return events == 0 || finish_connect();
  if ((events & POLLOUT) != 0 && !flush_output()) return false;
  if ((events & (POLLIN | POLLHUP | POLLERR)) != 0 && !receive(now)) return false;
  return state_ != State::proving || prove();
}

const char* Session::step_name() const {
  switch (state_) {
    case State::connecting:
      return "TCP connect";
    case State::hello:
      return "waiting for its hello";
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
  return text::format("{} {} (process {}, {})", peer_hello_->host, peer_hello_->device, peer_hello_->process,
                      peer_address_);
}

bool Session::finish_connect() {
  int code = 0;
  socklen_t size = sizeof code;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &code, &size) != 0) code = errno;
  if (code != 0) {
    return fail(system_error("cannot reach the listener at " + peer_address_, code, setup_.device->name(),
                             "is the interface of NCCL_SOCKET_IFNAME routed between the hosts?"));
  }
  if (!create_queue_pairs()) return false;
  state_ = State::hello;
  return send(encode_hello(my_hello()));
}

bool Session::create_queue_pairs() {
  auto endpoint = create_endpoint(setup_.device, role_, setup_.options, setup_.choose_ports(peer_address_), peer_);
  if (!endpoint) return fail(endpoint.take_error());
  endpoint_.emplace(endpoint.take());
  if (role_ == Role::sender) {
    auto ring = transfer::ClearToSendRing::create(*setup_.device);
    if (!ring) return fail(ring.take_error());
    ring_.emplace(ring.take());
  }
  return true;
}

Hello Session::my_hello() const {
  const devices::Port& port = setup_.device->port();
  Hello hello;
  hello.plugin_version = kVersion;
  hello.listener = setup_.listener;
  hello.host = setup_.host;
  hello.process = std::uint32_t(getpid());
  hello.device = setup_.device->name();
  hello.link_layer = IBV_LINK_LAYER_ETHERNET;
  hello.gid = port.gid.bytes;
  hello.gid_version = 2;
  hello.path_mtu = std::uint8_t(port.path_mtu);
  hello.traffic_class = setup_.options.traffic_class;
  hello.settings_digest = setup_.settings_digest;
  if (ring_) {
    hello.ring_address = ring_->address();
    hello.ring_key = ring_->remote_key();
  }
  if (endpoint_) {
    hello.proof_address = reinterpret_cast<std::uint64_t>(endpoint_->proof.get());
    hello.proof_key = endpoint_->proof_region->rkey;
    for (std::size_t i = 0; i < endpoint_->link->paths.size(); i++) {
      const transfer::DataPath& path = endpoint_->link->paths[i];
      hello.paths.push_back({path.qp->qp_num, endpoint_->first_psns[i], path.port});
    }
  }
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
    if (peer_->word() != transfer::PeerState::Word::closed) peer_->set_lost(why);
    state_ = State::over;
    return false;
  }
  return fail(Error{text::format("{} went away during the handshake ({}): {}", peer_name(), step_name(), why),
                    setup_.device->name(), 0, "the peer's log says why"});
}

bool Session::handle_frame(const Frame& frame) {
  switch (frame.type) {
    case MessageType::hello:
      return handle_hello(frame);
    case MessageType::refuse:
      note_meant_us();
      return fail(Error{text::format("{} refuses: {}", peer_name(), decode_text(frame)), setup_.device->name(), 0, {}});
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
  }
  return fail(Error{
      text::format("an unknown message ({}) from {}", int(frame.type), peer_name()), setup_.device->name(), 0, {}});
}

bool Session::handle_hello(const Frame& frame) {
  if (state_ != State::hello) return fail(Error{"a second hello from " + peer_name(), setup_.device->name(), 0, {}});
  auto hello = decode_hello(frame);
  if (!hello) return refuse(hello.error().text());
  peer_hello_.emplace(hello.take());
  if (role_ == Role::receiver) {
    if (peer_hello_->listener != setup_.listener) return refuse("this connection is for another listener");
    note_meant_us();
    if (!create_queue_pairs()) return false;
  }
  if (peer_hello_->settings_digest != setup_.settings_digest && setup_.settings_differ)
    setup_.settings_differ(peer_name());
  if (const auto why = objection(my_hello(), *peer_hello_)) return refuse(*why);
  transfer::Link& link = *endpoint_->link;
  link.description = text::format("{} {} -> {} {}", setup_.device->name(),
                                  devices::address_text(setup_.device->port().gid), peer_hello_->host, peer_name());
  if (auto connected = connect_paths(*endpoint_, role_, setup_.options, *peer_hello_); !connected) {
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
  if (auto started = start_proof(*endpoint_, *peer_hello_); !started) return fail(started.take_error());
  return true;
}

bool Session::prove() {
  const int paths = int(endpoint_->link->paths.size());
  if (proven_ < paths) {
    if (auto going = continue_proof(*endpoint_, &proven_); !going) return fail(going.take_error());
    if (proven_ < paths) return true;
    if (role_ == Role::receiver && setup_.options.flush && setup_.device->port().reaches_device_memory()) {
      auto flush = create_flush_path(*setup_.device, *endpoint_->link, setup_.options);
      if (!flush) return fail(flush.take_error());
      flush_.emplace(flush.take());
    }
    if (!send(encode_text(MessageType::proven, ""))) return false;
  }
  return !peer_proven_ || hand_over();
}

bool Session::hand_over() {
  const transfer::PieceLimits limits{setup_.options.piece_bytes, int(endpoint_->link->paths.size()),
                                     setup_.device->port().speed_mbps};
  Engine engine;
  if (role_ == Role::sender) {
    engine.sender = std::make_unique<transfer::Sender>(std::move(endpoint_->link), std::move(*ring_), limits);
  } else {
    auto receiver =
        transfer::Receiver::create(std::move(endpoint_->link), {peer_hello_->ring_address, peer_hello_->ring_key},
                                   limits, endpoint_->receives, std::move(flush_));
    if (!receiver) return fail(receiver.take_error());
    engine.receiver = receiver.take();
  }
  state_ = State::watching;
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
  if (state_ == State::watching) send(encode_text(MessageType::closing, ""));
}

void Session::say_failed(const std::string& why) {
  if (state_ == State::watching) send(encode_text(MessageType::failed, why));
}

// This side will not have the connection: the peer hears why before the socket closes.
bool Session::refuse(const std::string& why) {
  output_.clear();
  const std::vector<std::byte> message = encode_text(MessageType::refuse, why);
  (void)!::send(socket_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return fail(Error{text::format("no connection with {}: {}", peer_name(), why), setup_.device->name(), 0, {}});
}

bool Session::fail(Error error) {
  if (state_ == State::watching) peer_->set_lost(error.text());
  state_ = State::over;
  socket_.reset();  // the peer notices at once
  std::lock_guard lock(mutex_);
  if (!finished_) outcome_.emplace(std::move(error));
  finished_ = true;
  return false;
}

}  // namespace weft::setup
