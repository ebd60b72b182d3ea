#include "net_plugin/setup/address_resolution.h"

#include <fcntl.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/text/format.h"
#include "net_plugin/devices/gid.h"
#include "net_plugin/setup/verbs_hint.h"

namespace weft::setup {
namespace {

// One question to the kernel; the neighbour is asked three times a second apart in that time (neigh/*/mcast_solicit).
constexpr std::chrono::milliseconds kOneTry{3000};
// Between a try that failed and the next.
constexpr std::chrono::milliseconds kPause{250};

std::string text_of(const Gid& gid) {
  devices::GidEntry entry;
  entry.bytes = gid;
  return devices::address_text(entry);
}

sockaddr_storage socket_address(const Gid& gid) {
  sockaddr_storage storage{};
  in6_addr address;
  std::memcpy(&address, gid.data(), sizeof address);
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    auto& out = reinterpret_cast<sockaddr_in&>(storage);
    out.sin_family = AF_INET;
    std::memcpy(&out.sin_addr, gid.data() + 12, sizeof out.sin_addr);
  } else {
    auto& out = reinterpret_cast<sockaddr_in6&>(storage);
    out.sin6_family = AF_INET6;
    out.sin6_addr = address;
  }
  return storage;
}

// What says something about the way to the peer. All else says something about the connection manager only, and the
// queue pair's own resolution decides.
bool about_the_way(int code) {
  switch (code) {
    case ETIMEDOUT:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EADDRNOTAVAIL:
    case ENODEV:
      return true;
    default:
      return false;
  }
}

bool may_answer_later(int code) {
  return code == ETIMEDOUT || code == EHOSTUNREACH || code == EAGAIN;
}

}  // namespace

std::unique_ptr<AddressResolution> AddressResolution::start(verbs::ConnectionManager& manager, ResolutionSetup setup,
                                                            TimePoint now) {
  std::unique_ptr<AddressResolution> made(new AddressResolution(manager, std::move(setup)));
  if (!made->open()) return nullptr;
  const int code = made->begin_address(now);
  return code == 0 || about_the_way(code) ? std::move(made) : nullptr;
}

AddressResolution::~AddressResolution() {
  drop_id();
  if (channel_) manager_.destroy_event_channel(channel_);
}

bool AddressResolution::open() {
  channel_ = manager_.create_event_channel();
  if (!channel_) return false;
  const int flags = fcntl(channel_->fd, F_GETFL);
  return flags >= 0 && fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

void AddressResolution::drop_id() {
  if (id_) manager_.destroy_id(id_);
  id_ = nullptr;
}

// 0, or the errno: the id is gone then, and step() tries again or gives up.
int AddressResolution::begin_address(TimePoint now) {
  drop_id();
  stage_ = Stage::address;
  if (manager_.create_id(channel_, &id_) != 0) {
    id_ = nullptr;
    return errno;
  }
  sockaddr_storage from = socket_address(setup_.from), to = socket_address(setup_.to);
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(setup_.deadline - now);
  const int patience = int(std::clamp(left, std::chrono::milliseconds(1), kOneTry).count());
  if (manager_.resolve_addr(id_, reinterpret_cast<sockaddr*>(&from), reinterpret_cast<sockaddr*>(&to), patience) == 0)
    return 0;
  const int code = errno;
  drop_id();
  return code;
}

std::optional<Result<void>> AddressResolution::step(TimePoint now) {
  if (!id_) {
    if (now < next_try_) return std::nullopt;
    if (const int code = begin_address(now)) return failed(code, now);
  }
  rdma_cm_event* event = nullptr;
  if (manager_.get_cm_event(channel_, &event) != 0) {
    if (errno != EAGAIN && errno != EINTR) return failed(errno, now);
    // The kernel keeps its own time; this is for one that forgets.
    return now > setup_.deadline + kOneTry ? failed(ETIMEDOUT, now) : std::nullopt;
  }
  const rdma_cm_event_type type = event->event;
  const int status = event->status;
  manager_.ack_cm_event(event);
  return handle(type, status, now);
}

std::optional<Result<void>> AddressResolution::handle(rdma_cm_event_type type, int status, TimePoint now) {
  switch (type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED: {
      const char* served_by = id_->verbs && id_->verbs->device ? id_->verbs->device->name : nullptr;
      if (served_by && setup_.device != served_by)
        remark_ = text::format("{} reaches {} through {} instead: {} is an address of that NIC", setup_.device,
                               text_of(setup_.to), served_by, text_of(setup_.from));
      stage_ = Stage::route;
      if (manager_.resolve_route(id_, int(kOneTry.count())) != 0) return failed(errno, now);
      return std::nullopt;
    }
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return Result<void>();
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return failed(status < 0 ? -status : ETIMEDOUT, now);
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return failed(ENODEV, now);
    default:
      return std::nullopt;
  }
}

// The end, or another try.
std::optional<Result<void>> AddressResolution::failed(int code, TimePoint now) {
  if (!about_the_way(code) && !may_answer_later(code)) return Result<void>();
  if (may_answer_later(code) && now + kPause < setup_.deadline) {
    drop_id();
    next_try_ = now + kPause;
    return std::nullopt;
  }
  const std::string from = text_of(setup_.from), to = text_of(setup_.to);
  return Result<void>(
      system_error(text::format("{} of {} from {} failed",
                                stage_ == Stage::address ? "rdma_resolve_addr" : "rdma_resolve_route", to, from),
                   code, setup_.device, ready_to_receive_hint(code, from, to)));
}

}  // namespace weft::setup
