// A NIC port in use: its context and protection domain, shared by all connections of the process on it, closed with the
// last.
#pragma once

#include <atomic>
#include <memory>

#include "common/result/result.h"
#include "net_plugin/devices/discovery.h"
#include "net_plugin/setup/port_watch.h"
#include "net_plugin/setup/registered_memory.h"
#include "net_plugin/verbs/handles.h"

namespace weft::setup {

class OpenDevice : public std::enable_shared_from_this<OpenDevice> {
 public:
  static Result<std::shared_ptr<OpenDevice>> open(verbs::Verbs& verbs, const devices::Port& port,
                                                  std::shared_ptr<PortWatch> watch);

  verbs::Verbs& verbs() const { return verbs_; }
  ibv_context* context() const { return context_.get(); }
  ibv_pd* protection_domain() const { return protection_domain_.get(); }
  // As it was found when the plugin was initialised.
  const devices::Port& port() const { return port_; }
  // As it is now.
  devices::PortState state() const { return watch_->now(); }
  std::optional<std::string> refresh() const { return watch_->refresh(verbs_, context_.get()); }
  // "mlx5_0:1"
  std::string name() const;

  // The fatal asynchronous event of this device (ibv_get_async_event(3)): its type plus one, 0 for none. Set by the
  // control thread, read by the data path.
  void set_fatal_event(ibv_event_type type);
  int fatal_event() const { return fatal_event_.load(std::memory_order_relaxed); }
  // Of any device of this process, ever: while there was none nobody needs to look at the devices.
  static bool any_fatal_event() { return any_fatal_event_.load(std::memory_order_relaxed); }

  // Bytes that receives on offer to peers may bring in through this device, all connections together (incast limit).
  std::atomic<std::size_t> granted_bytes{0};

  // Registers memory for local and remote access. `relaxed`: let the NIC reorder writes within the region (PCIe relaxed
  // ordering); never for memory that a reader polls.
  Result<verbs::MemoryRegion> register_memory(void* address, std::size_t length, bool relaxed) const;

  // The same for user memory, shared by all who register the same range.
  Result<std::shared_ptr<const RegisteredMemory>> register_user(const UserMemory& memory, bool relaxed) const;
  const RegistrationCache& registrations() const { return registrations_; }

 private:
  OpenDevice(verbs::Verbs& verbs, const devices::Port& port, std::shared_ptr<PortWatch> watch)
      : verbs_(verbs), port_(port), watch_(std::move(watch)) {}

  verbs::Verbs& verbs_;
  devices::Port port_;
  std::shared_ptr<PortWatch> watch_;
  verbs::Context context_;
  verbs::ProtectionDomain protection_domain_;
  mutable RegistrationCache registrations_;
  std::atomic<int> fatal_event_{0};
  static std::atomic<bool> any_fatal_event_;
};

}  // namespace weft::setup
