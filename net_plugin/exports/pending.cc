#include "net_plugin/exports/pending.h"

#include <cstring>
#include <utility>
#include <vector>

#include "common/nccl_abi/net_types.h"

namespace weft::exports {
namespace {

struct Mark {
  std::uint64_t magic;
  std::uint64_t number;
};
constexpr std::uint64_t kMagic = 0x70656e64696e6721;
constexpr std::size_t kOffset = NCCL_NET_HANDLE_MAXSIZE - sizeof(Mark);

}  // namespace

std::uint64_t PendingConnects::add(std::unique_ptr<ConnectedComm> comm, const void* context, setup::TimePoint now) {
  std::lock_guard lock(mutex_);
  entries_[next_] = {std::move(comm), context, now};
  return next_++;
}

ConnectedComm* PendingConnects::find(std::uint64_t number, setup::TimePoint now) {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(number);
  if (found == entries_.end()) return nullptr;
  found->second.asked = now;
  return found->second.comm.get();
}

std::unique_ptr<ConnectedComm> PendingConnects::take(std::uint64_t number) {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(number);
  if (found == entries_.end()) return nullptr;
  std::unique_ptr<ConnectedComm> comm = std::move(found->second.comm);
  entries_.erase(found);
  return comm;
}

template <class Condition>
void PendingConnects::drop(Condition condition) {
  std::vector<std::unique_ptr<ConnectedComm>> dropped;
  {
    std::lock_guard lock(mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      if (condition(entry->second)) {
        dropped.push_back(std::move(entry->second.comm));
        entry = entries_.erase(entry);
      } else {
        ++entry;
      }
    }
  }
  // Not under the lock: the last one ends the control thread.
  for (const auto& comm : dropped)
    comm->control->remove(comm->session);
}

void PendingConnects::drop_forgotten(setup::TimePoint now) {
  drop([&](const Entry& entry) { return now - entry.asked > kForgotten; });
}

void PendingConnects::drop_of(const void* context) {
  drop([&](const Entry& entry) { return entry.context == context; });
}

std::uint64_t pending_number(const void* handle) {
  Mark mark{};
  std::memcpy(&mark, static_cast<const char*>(handle) + kOffset, sizeof mark);
  return mark.magic == kMagic ? mark.number : 0;
}

void set_pending_number(void* handle, std::uint64_t number) {
  const Mark mark{number != 0 ? kMagic : 0, number};
  std::memcpy(static_cast<char*>(handle) + kOffset, &mark, sizeof mark);
}

}  // namespace weft::exports
