// A listening socket and the sessions that came through it. A task of the control thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "net_plugin/setup/session.h"

namespace weft::setup {

class Listener final : public Task {
 public:
  // So many may be under way: NCCL makes one connection through a listener, and whoever knocks more often is no peer.
  static constexpr std::size_t kMostSessions = 64;

  // `start`: gives a new session to the control thread.
  using Start = std::function<void(std::shared_ptr<Session>)>;

  Listener(SessionSetup setup, FileDescriptor socket, Start start)
      : setup_(std::move(setup)), socket_(std::move(socket)), start_(std::move(start)) {}

  // The sessions that have come so far; the caller polls them. NCCL's service thread.
  std::vector<std::shared_ptr<Session>> sessions() const;
  // A session that came to nothing and was no peer's.
  void forget(const std::shared_ptr<Session>& session);
  const SessionSetup& setup() const { return setup_; }

  Wanted wanted() override;
  bool step(short events, TimePoint now) override;

 private:
  SessionSetup setup_;
  FileDescriptor socket_;
  Start start_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Session>> sessions_;
};

}  // namespace weft::setup
