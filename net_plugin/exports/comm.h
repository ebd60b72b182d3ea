// What NCCL holds as listenComm, sendComm and recvComm.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net_plugin/setup/runtime.h"

namespace weft::exports {

struct Comm {
  enum class Kind { listen, send, receive };
  explicit Comm(Kind what) : kind(what) {}
  Kind kind;
};

struct ListenComm : Comm {
  ListenComm() : Comm(Kind::listen) {}
  std::shared_ptr<setup::Control> control;
  std::shared_ptr<setup::Listener> listener;  // null where this side cannot listen
  std::optional<Error> trouble;               // why it cannot; what accept reports
  setup::TimePoint give_up{};                 // set by the first accept
};

// Members go in reverse order: the engine with its verbs objects first, the control thread last.
struct ConnectedComm : Comm {
  using Comm::Comm;
  std::shared_ptr<setup::Control> control;
  std::shared_ptr<setup::Session> session;
  std::vector<std::shared_ptr<setup::OpenDevice>> devices;
  setup::Engine engine;
  bool reported = false;  // the failure has been logged and the peer told

  // After the engine has been set.
  void adopt();
  transfer::Link& link() { return engine.sender ? engine.sender->link() : engine.receiver->link(); }
};

}  // namespace weft::exports
