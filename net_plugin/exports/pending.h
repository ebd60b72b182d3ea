// Connections that NCCL has asked for and that are not up yet. connect() is called again with the same handle until it
// yields one; what is under way is kept here under a number that is written into the handle. NCCL has no call for
// giving up: where a communicator is aborted in between, nobody asks again, and the attempt goes with its context or
// some time later.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "net_plugin/exports/comm.h"

namespace weft::exports {

class PendingConnects {
 public:
  // `context`: the communicator's, null in versions without one.
  std::uint64_t add(std::unique_ptr<ConnectedComm> comm, const void* context, setup::TimePoint now);
  // Null where there is none (any more). The caller may use the object until it takes it or stays away for kForgotten.
  ConnectedComm* find(std::uint64_t number, setup::TimePoint now);
  std::unique_ptr<ConnectedComm> take(std::uint64_t number);

  // Ends what nobody has asked for since kForgotten.
  void drop_forgotten(setup::TimePoint now);
  void drop_of(const void* context);

  // NCCL asks again within milliseconds, as long as it asks at all.
  static constexpr std::chrono::seconds kForgotten{30};

 private:
  struct Entry {
    std::unique_ptr<ConnectedComm> comm;
    const void* context = nullptr;
    setup::TimePoint asked;
  };
  template <class Condition>
  void drop(Condition condition);

  std::mutex mutex_;
  std::map<std::uint64_t, Entry> entries_;
  std::uint64_t next_ = 1;
};

// Reads and writes the number in the last bytes of a handle, which are free (setup/messages.h); 0: none.
std::uint64_t pending_number(const void* handle);
void set_pending_number(void* handle, std::uint64_t number);

}  // namespace weft::exports
