// One connection from its first byte over TCP to its end: handshake, queue pairs, first writes, hand-over to NCCL's
// thread, then watching the peer until the connection is closed. A task of the control thread.
//
//   connecting side                      accepting side
//   TCP connect ───────────────────────► accept
//   hello (queue pairs in INIT) ───────► check; address resolved; queue pairs to RTS
//   the same ◄────────────────────────── hello, or refuse
//   ready ─────────────────────────────► (its writes may start)
//   first write on each path             first write on each path
//   proven ────────────────────────────► ◄──────────────── proven
//   handed over                          handed over
//
// A connection begins with one path for each pair of devices; where bytes justify it the sending side asks for more
// (growth.h).
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "net_plugin/paths/path_budget.h"
#include "net_plugin/setup/address_resolution.h"
#include "net_plugin/setup/control.h"
#include "net_plugin/setup/growth.h"
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

// Source ports for a connection to a peer, `count` of them, distinct from other connections'; see Runtime.
using PortChoice = std::function<std::vector<std::uint16_t>(const Gid& own, const Gid& peer, std::size_t count)>;

struct SessionSetup {
  std::vector<std::shared_ptr<OpenDevice>> devices;
  std::string device_name;  // of all of them: "mlx5_0:1", "mlx5_0:1+mlx5_1:1"
  Options options;
  PortChoice choose_ports;
  std::shared_ptr<paths::PathBudget> budget;  // connecting side
  std::uint64_t listener = 0;                 // connecting: from the handle; accepting: this listener's
  Secret secret{};                            // the same
  std::size_t peer_devices = 1;               // connecting: from the handle
  Gid peer_gid{};                             // the same; of its first device
  std::string host;                           // this host's name, for messages of the peer
  std::uint64_t settings_digest = 0;          // settings::job_wide_digest
  // The way from a device to a peer's address; null where nothing can or needs to be found out. With `resolved` it is
  // remembered for the next connection. Control thread.
  std::function<std::unique_ptr<AddressResolution>(std::size_t device, const Gid& from, const Gid& to, TimePoint now)>
      resolve;
  std::function<void(const Gid& from, const Gid& to)> resolved;
  // One line that is worth a look and no error. Control thread.
  std::function<void(const std::string& line)> remark;
};

class Session final : public Task {
 public:
  ~Session() override;

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
  void let_go() override;

 private:
  struct Resolving {
    std::unique_ptr<AddressResolution> way;
    std::string rails;
  };
  enum class State { connecting, hello, resolving, ready, proving, watching, over };

  Session(SessionSetup setup, Role role);
  void begin_connect(const Handle& handle);
  bool advance(short events, TimePoint now);
  bool finish_connect();
  bool receive(TimePoint now);
  bool handle_frame(const Frame& frame);
  bool handle_hello(const Frame& frame);
  bool create_queue_pairs(std::size_t paths, std::size_t peer_devices);
  bool resolve(TimePoint now);
  bool connect_queue_pairs();
  bool begin_proof();
  bool prove();
  bool hand_over();
  Result<std::vector<transfer::FlushPath>> create_flush_paths() const;
  std::size_t pairs() const;
  void look_at_need(TimePoint now);
  bool handle_growth(const Frame& frame);
  std::string moved() const;
  bool advance_growth(Growth::Reply reply);
  void stop_growth(const std::string& why, bool tell);
  GrowthSetup growth_setup(std::size_t paths) const;
  bool send(const std::vector<std::byte>& bytes);
  bool flush_output();
  void note_meant_us();
  bool lost(const std::string& why);
  bool refuse(const std::string& why);
  bool fail(Error error);
  Hello my_hello() const;
  std::string peer_name() const;
  std::string rails(std::size_t pair) const;
  const char* step_name() const;
  Error not_reached(int code) const;

  SessionSetup setup_;
  PortStates here_;  // of its devices, when it began
  Role role_;
  State state_ = State::hello;
  FileDescriptor socket_;
  std::string peer_address_;
  sockaddr_storage listener_address_{};  // connecting side
  TimePoint deadline_;
  std::vector<std::byte> input_, output_;
  std::shared_ptr<transfer::PeerState> peer_ = std::make_shared<transfer::PeerState>();
  std::unique_ptr<transfer::Link> link_;    // until it is handed over
  const transfer::Link* handed_ = nullptr;  // since then; gone when this side has closed
  ReceiveQueues receive_queues_;
  std::vector<std::uint16_t> ports_;  // for all paths that the connection may get
  std::optional<Batch> batch_;
  std::optional<transfer::ClearToSendRing> ring_;
  std::optional<Hello> peer_hello_;
  std::vector<Resolving> resolutions_;  // that have not finished
  bool proven_ = false;
  bool peer_proven_ = false;
  std::optional<paths::PathShare> share_;  // connecting side
  std::size_t paths_ = 0;                  // of this connection so far
  std::optional<Growth> growth_;
  bool grown_ = false;  // nothing more to come
  TimePoint next_look_{};
  std::chrono::milliseconds look_interval_{10};
  std::uint64_t sent_before_ = 0;

  mutable std::mutex mutex_;  // of what follows: handed from the control thread to NCCL's
  std::optional<Result<Engine>> outcome_;
  bool finished_ = false;
  bool meant_us_ = false;
};

}  // namespace weft::setup
