#include "net_plugin/setup/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include "net_plugin/setup/socket_address.h"

namespace weft::setup {

std::vector<std::shared_ptr<Session>> Listener::sessions() const {
  std::lock_guard lock(mutex_);
  return sessions_;
}

void Listener::forget(const std::shared_ptr<Session>& session) {
  std::lock_guard lock(mutex_);
  std::erase(sessions_, session);
}

Task::Wanted Listener::wanted() {
  return {socket_.get(), POLLIN, std::nullopt};
}

bool Listener::step(short, TimePoint) {
  while (true) {
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    FileDescriptor socket(
        accept4(socket_.get(), reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    // Nothing more to accept, or a peer that has gone again: either way there is nothing to do for the listener.
    if (!socket.valid()) return true;
    // Closing it is all that a flood costs.
    if (sessions().size() >= kMostSessions) continue;
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    auto session = Session::accept(setup_, std::move(socket), address_text(from));
    {
      std::lock_guard lock(mutex_);
      sessions_.push_back(session);
    }
    start_(std::move(session));
  }
}

}  // namespace weft::setup
