#include "tests/unit/net_plugin/fake/fake_connection_manager.h"

#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace weft::fake {
namespace {

std::string text(const sockaddr* address) {
  char out[INET6_ADDRSTRLEN] = "?";
  if (address->sa_family == AF_INET)
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, out, sizeof out);
  else
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, out, sizeof out);
  return out;
}

}  // namespace

Attempt reached() {
  return {0, {{RDMA_CM_EVENT_ADDR_RESOLVED}, {RDMA_CM_EVENT_ROUTE_RESOLVED}}};
}

Attempt silent_neighbour() {
  return {0, {{RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT}}};
}

FakeConnectionManager::FakeConnectionManager(std::deque<Attempt> attempts) : attempts_(std::move(attempts)) {
  context_.device = &device_;
}

FakeConnectionManager::~FakeConnectionManager() = default;

rdma_event_channel* FakeConnectionManager::create_event_channel() {
  if (!has_device_node) {
    errno = ENOENT;
    return nullptr;
  }
  open_++;
  return new rdma_event_channel{eventfd(0, EFD_CLOEXEC)};
}

void FakeConnectionManager::destroy_event_channel(rdma_event_channel* channel) {
  open_--;
  close(channel->fd);
  delete channel;
}

int FakeConnectionManager::create_id(rdma_event_channel* channel, rdma_cm_id** id) {
  open_++;
  *id = new rdma_cm_id{};
  (*id)->channel = channel;
  return 0;
}

int FakeConnectionManager::destroy_id(rdma_cm_id* id) {
  open_--;
  waiting_.clear();
  delete id;
  return 0;
}

int FakeConnectionManager::resolve_addr(rdma_cm_id* id, sockaddr* source, sockaddr* destination, int) {
  made_++;
  last_source = text(source);
  last_destination = text(destination);
  current_ = attempts_.front();
  if (attempts_.size() > 1) attempts_.pop_front();
  if (current_.refused != 0) {
    errno = current_.refused;
    return -1;
  }
  if (current_.events.empty()) return 0;
  if (current_.events.front().type == RDMA_CM_EVENT_ADDR_RESOLVED) {
    std::snprintf(device_.name, sizeof device_.name, "%s", served_by.c_str());
    id->verbs = &context_;
  }
  waiting_.push_back(current_.events.front());
  return 0;
}

int FakeConnectionManager::resolve_route(rdma_cm_id*, int) {
  if (current_.events.size() > 1) waiting_.push_back(current_.events[1]);
  return 0;
}

int FakeConnectionManager::get_cm_event(rdma_event_channel*, rdma_cm_event** event) {
  if (waiting_.empty()) {
    errno = EAGAIN;
    return -1;
  }
  open_++;
  *event = new rdma_cm_event{};
  (*event)->event = waiting_.front().type;
  (*event)->status = waiting_.front().status;
  waiting_.pop_front();
  return 0;
}

int FakeConnectionManager::ack_cm_event(rdma_cm_event* event) {
  open_--;
  delete event;
  return 0;
}

}  // namespace weft::fake
