// The devices that NCCL is told of: physical ports, and several ports as one. Pure, but for the lock.
//
// Threads: any; what a pointer leads to stays as it is.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "common/result/result.h"
#include "net_plugin/devices/discovery.h"

namespace weft::setup {

struct NetDevice {
  std::string name;                // "mlx5_0", "mlx5_0+mlx5_1"
  std::vector<std::size_t> ports;  // indices of the physical ports, in their order
  std::string pci_path;            // of the first
  std::uint64_t guid = 0;          // of the first, with identity
  int identity = 1;
  int speed_mbps = 0;  // of all together
  int max_qp = 0;      // of the smallest
  bool peer_memory = false;
  bool dmabuf = false;
};

class NetDevices {
 public:
  // `merge_cards`: the ports of one card are one device from the start, for versions of NCCL that don't merge devices
  // themselves. As NCCL's own transport counts, ports belong to one card where their PCI addresses differ in the
  // function alone.
  NetDevices(const std::vector<devices::Port>& ports, bool merge_cards);

  std::size_t count() const;
  // Null where there is none.
  const NetDevice* find(int index) const;
  // Several devices as one; yields the new device's index. An error where a member does not exist, is itself several,
  // or occurs twice.
  Result<int> merge(const std::vector<devices::Port>& ports, const std::vector<int>& members);

 private:
  void add(const std::vector<devices::Port>& ports, std::vector<std::size_t> members);

  mutable std::mutex mutex_;
  std::deque<NetDevice> devices_;
};

}  // namespace weft::setup
