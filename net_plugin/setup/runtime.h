// What the plugin has once in a process: libraries, devices, the control thread while it is needed, the source ports in
// use.
//
// Threads: calls may come from several NCCL service threads at once.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/settings/settings.h"
#include "net_plugin/devices/discovery.h"
#include "net_plugin/paths/source_port.h"
#include "net_plugin/setup/control.h"
#include "net_plugin/setup/listener.h"
#include "net_plugin/setup/net_devices.h"
#include "net_plugin/setup/open_device.h"
#include "net_plugin/setup/session.h"

namespace weft::setup {

enum class LogLevel { warn, info };
using Log = std::function<void(LogLevel, const std::string&)>;

// What a test replaces.
struct Surroundings {
  devices::FileTree sysfs{"/sys"};
  std::unique_ptr<verbs::ConnectionManager> manager;  // null where librdmacm is not there
  // The CUDA driver that the process uses, null where it uses none; may be empty.
  std::function<std::unique_ptr<devices::CudaDriver>()> find_driver;
  ListInterfaces interfaces = devices::list_interfaces;
};

class Runtime {
 public:
  // Finds the devices. A bad setting or an unusable NIC is not an error here: it is one of listen() and connect(), see
  // trouble(). Nor is it one that libibverbs can't be loaded: on a host without RDMA that is normal, and where sysfs
  // shows RoCE ports they are listed as unusable.
  // `merge_cards`: see NetDevices; NCCL_IB_MERGE_NICS=0 turns it off.
  static std::unique_ptr<Runtime> create(Result<std::unique_ptr<verbs::Verbs>> verbs,
                                         const settings::Settings& settings, std::optional<Error> settings_error,
                                         bool merge_cards, Log log, Surroundings around);

  const std::vector<devices::Port>& ports() const { return ports_; }
  // What NCCL is told of; indices of listen() and connect() are theirs.
  const NetDevices& devices() const { return *devices_; }
  Result<int> merge(const std::vector<int>& members);
  // What makes every listen and connect fail, whatever the device.
  const std::optional<Error>& trouble() const { return trouble_; }

  struct Connecting {
    std::shared_ptr<Control> control;
    std::shared_ptr<Session> session;
  };
  struct Listening {
    std::shared_ptr<Control> control;
    std::shared_ptr<Listener> listener;
  };
  // Fills the handle in (128 bytes).
  Result<Listening> listen(int device, void* handle);
  Result<Connecting> connect(int device, const void* handle, int traffic_class);

  // On one device of a connection. Where it is a GPU's and can't be registered, the error says how much was before and
  // how much can be at all.
  Result<std::shared_ptr<const RegisteredMemory>> register_user(const OpenDevice& device,
                                                                const UserMemory& memory) const;

  std::chrono::milliseconds connect_timeout() const { return options_.connect_timeout; }
  const Log& log() const { return log_; }

 private:
  explicit Runtime(Log log) : log_(std::move(log)) {}

  Result<void> usable(int device) const;
  Result<std::shared_ptr<Control>> control();
  Result<std::shared_ptr<OpenDevice>> open(std::size_t port, const std::shared_ptr<Control>& control);
  Result<SessionSetup> session_setup(int device, const std::shared_ptr<Control>& control);
  std::vector<std::uint16_t> choose_ports(const Gid& own, const Gid& peer, std::size_t count);
  std::shared_ptr<paths::PathBudget> budget(const NetDevice& device);
  void remark(LogLevel level, const std::string& line);
  std::unique_ptr<AddressResolution> resolve(const std::string& device, const Gid& from, const Gid& to, TimePoint now);

  Log log_;
  std::unique_ptr<verbs::Verbs> verbs_;
  std::unique_ptr<verbs::ConnectionManager> manager_;
  std::function<std::unique_ptr<devices::CudaDriver>()> find_driver_;
  std::string sysfs_;
  ListInterfaces interfaces_;
  settings::Settings settings_;
  Options options_;
  std::optional<Error> trouble_;  // makes every listen and connect fail
  std::vector<devices::Port> ports_;
  std::vector<std::shared_ptr<PortWatch>> watches_;  // of ports_
  std::unique_ptr<NetDevices> devices_;
  std::string host_;
  pid_t process_ = 0;

  std::mutex mutex_;
  std::weak_ptr<Control> control_;
  std::vector<std::weak_ptr<OpenDevice>> open_;
  std::map<std::uint64_t, paths::PortSequence> source_ports_;          // by the key of a NIC pair
  std::map<std::size_t, std::shared_ptr<paths::PathBudget>> budgets_;  // by a device's first port
  std::uint64_t next_listener_ = 0;
  std::map<std::pair<Gid, Gid>, TimePoint> resolved_;  // from and to: when it was found that the way is there
  std::set<std::string> remarks_;                      // each is made once
};

}  // namespace weft::setup
