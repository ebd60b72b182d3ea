// One connection from its first byte over TCP to its end: handshake, queue pairs, first writes, hand-over to NCCL's
// thread, then watching the peer until the connection is closed. A task of the control thread.
//
//   connecting side                      accepting side
//   TCP connect ───────────────────────► accept
//   hello (queue pairs in INIT) ───────► check; queue pairs to RTS
//   check; queue pairs to RTS ◄───────── hello, or refuse
//   ready ─────────────────────────────► (its writes may start)
//   first write on each path             first write on each path
//   proven ────────────────────────────► ◄──────────────── proven
//   handed over                          handed over
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "net_plugin/setup/control.h"
#include "net_plugin/setup/messages.h"
#include "net_plugin/setup/queue_pairs.h"
#include "net_plugin/transfer/receiver.h"
#include "net_plugin/transfer/sender.h"

namespace weft::setup {

// What a session yields: one of the two engines.
struct Engine {
  std::unique_ptr<transfer::Sender> sender;
  std::unique_ptr<transfer::Receiver> receiver;
};

// Chooses source ports for a new connection to a peer, see Runtime.
using PortChoice = std::function<std::vector<std::uint16_t>(const std::string& peer_address)>;

struct SessionSetup {
  std::shared_ptr<OpenDevice> device;
  Options options;
  PortChoice choose_ports;
  std::uint64_t listener = 0;         // connecting: from the handle; accepting: this listener's
  std::string host;                   // this host's name, for messages of the peer
  std::uint64_t settings_digest = 0;  // settings::job_wide_digest
  std::function<void(const std::string& peer)>
      settings_differ;  // told where the peer's digest is another; control thread
};

class Session final : public Task {
 public:
  // Connecting side.
  static std::shared_ptr<Session> connect(SessionSetup setup, const Handle& handle);
  // Accepting side, on a socket that accept(2) gave.
  static std::shared_ptr<Session> accept(SessionSetup setup, FileDescriptor socket, std::string peer_address);

  // Nothing: not finished. NCCL's service thread.
  std::optional<Result<Engine>> poll();
  bool finished() const;
  // Accepting side, after poll() has yielded an error: whether whoever connected meant this listener. Somebody who said
  // nothing that makes sense, or named another listener, did not.
  bool was_for_this_listener() const;

  // Tells the peer that this side ends in order. Control thread (Control::call).
  void say_closing();
  // Tells the peer why this side has failed. Control thread.
  void say_failed(const std::string& why);

  Wanted wanted() override;
  bool step(short events, TimePoint now) override;

 private:
  enum class State { connecting, hello, ready, proving, watching, over };

  Session(SessionSetup setup, Role role);
  void begin_connect(const Handle& handle);
  bool advance(short events, TimePoint now);
  bool finish_connect();
  bool receive(TimePoint now);
  bool handle_frame(const Frame& frame);
  bool handle_hello(const Frame& frame);
  bool create_queue_pairs();
  bool begin_proof();
  bool prove();
  bool hand_over();
  bool send(const std::vector<std::byte>& bytes);
  bool flush_output();
  void note_meant_us();
  bool lost(const std::string& why);
  bool refuse(const std::string& why);
  bool fail(Error error);
  Hello my_hello() const;
  std::string peer_name() const;
  const char* step_name() const;

  SessionSetup setup_;
  Role role_;
  State state_ = State::hello;
  FileDescriptor socket_;
  std::string peer_address_;
  TimePoint deadline_;
  std::vector<std::byte> input_, output_;
  std::shared_ptr<transfer::PeerState> peer_ = std::make_shared<transfer::PeerState>();
  std::optional<Endpoint> endpoint_;
  std::optional<transfer::ClearToSendRing> ring_;
  std::optional<transfer::FlushPath> flush_;
  std::optional<Hello> peer_hello_;
  int proven_ = 0;
  bool peer_proven_ = false;

  mutable std::mutex mutex_;  // of what follows: handed from the control thread to NCCL's
  std::optional<Result<Engine>> outcome_;
  bool finished_ = false;
  bool meant_us_ = false;
};

}  // namespace weft::setup
