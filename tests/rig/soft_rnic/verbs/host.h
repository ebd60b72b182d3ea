// This process's view of its emulated host: the devices of RIG_HOST_FILE and the NICs that are open. One per process,
// never destroyed: engine threads may run until the very end.
#pragma once

#include <infiniband/verbs.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/rig/soft_rnic/device/host_description.h"
#include "tests/rig/soft_rnic/engine/nic.h"

namespace weft::soft_rnic {

struct DeviceHandle : ibv_device {
  const DeviceDescription* description = nullptr;
  int index = 0;
};

// Thread-safe.
class Host {
 public:
  // The devices, or why there are none. Read once, at the first call; without RIG_HOST_FILE there are no devices.
  static Host& instance();

  // Null devices() means that the host file was wrong; a line on stderr has said why.
  const std::vector<std::unique_ptr<DeviceHandle>>* devices() const { return valid_ ? &devices_ : nullptr; }
  const HostDescription& description() const { return description_; }

  // The NIC behind a device; contexts of one device share it, and it closes with the last of them.
  Result<std::shared_ptr<Nic>> open(const DeviceDescription& device);

  // Brings the statistics file up to date with all open NICs. Not from an engine thread (see Nic::open).
  void publish_statistics();

 private:
  Host();

  bool valid_ = true;
  HostDescription description_;
  std::vector<std::unique_ptr<DeviceHandle>> devices_;

  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Nic>> nics_;

  void keep_statistics_of_closed(const std::string& nic);
  // With statistics_mutex_ held.
  void write_statistics_file();

  std::mutex statistics_mutex_;
  std::map<std::string, NicStatistics> current_statistics_;  // of the NICs opened last under each name
  std::map<std::string, NicStatistics> closed_statistics_;   // sums over those opened and closed before
  std::string published_;
};

}  // namespace weft::soft_rnic
