// The RoCE ports of this host that Weft offers to NCCL, in PCI address order, and why others are left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/result/result.h"
#include "net_plugin/devices/file_tree.h"
#include "net_plugin/devices/gid.h"
#include "net_plugin/devices/gpu_memory.h"
#include "net_plugin/devices/port_state.h"
#include "net_plugin/devices/selection.h"
#include "net_plugin/verbs/verbs.h"

namespace weft::devices {

struct Port : PortState {
  std::string device;  // verbs name, "mlx5_0"
  std::string
      name;  // what NCCL is told, unique among the ports: "mlx5_0", or "mlx5_0:2" for the second port of a device
  std::uint8_t port = 1;
  std::string pci_path;  // real path of the PCI function below sysfs; empty where there is none
  std::uint64_t guid = 0;
  std::uint32_t vendor_id = 0;  // of ibv_query_device(3)
  int identity = 1;             // with guid: unique among the listed ports (F28)
  int max_qp = 0;
  int max_qp_wr = 0;
  int max_cqe = 0;
  int max_srq = 0;
  int max_srq_wr = 0;
  bool peer_memory = false;  // a kernel module lets the NIC register GPU memory
  bool dmabuf = false;       // the driver takes dma-buf descriptors
  bool gpu_proven = false;   // both by registering memory of a GPU, not from what sysfs and the driver say
  std::string gpu_trouble;   // why neither works, where that is proven

  bool reaches_device_memory() const { return peer_memory || dmabuf; }
};

struct Wishes {
  Selection selection;
  GidWishes gid;
};

struct Discovery {
  // With a usable port among them, only usable ones. Otherwise all RoCE ports that were asked for, each with the reason
  // why it can't be used: then listen and connect fail with it, instead of the rank moving to another transport alone.
  std::vector<Port> ports;
  std::vector<std::string> warnings;
  std::vector<std::string> remarks;  // one line for each port left out, and surprises of the selection
  std::optional<Error> trouble;      // of the selection as a whole
};

// Opens every device once to ask it, and closes it again. A RoCE port that sysfs shows and that can't be asked (its
// device can't be opened, or libibverbs does not know it) is an unusable port, not an absent one: only a host without
// RoCE NICs has none.
// `trial` may be null.
Discovery discover(verbs::Verbs& verbs, const Wishes& wishes, const FileTree& sysfs = {"/sys"},
                   const GpuTrial* trial = nullptr);
// Where libibverbs can't be loaded: the RoCE ports that sysfs shows, each unusable for this reason.
Discovery discover_without_verbs(const Error& reason, const Wishes& wishes, const FileTree& sysfs = {"/sys"});

// "dma-buf", "peer memory (not proven)", "no: …".
std::string describe_gpu_memory(const Port& port);

}  // namespace weft::devices
