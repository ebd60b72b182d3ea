// The emulated host this process runs on, from the file that the environment variable RIG_HOST_FILE names: its NICs and
// what of its GPUs matters to them. tests/rig/README.md documents the file; it is read strictly.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/result/result.h"

namespace weft::soft_rnic {

struct DeviceCapabilities {
  std::uint32_t max_queue_pairs = 65535;
  std::uint32_t max_shared_receive_queues = 1024;  // 0: the device has none
  std::uint32_t max_inline = 512;                  // bytes granted to every queue pair
  bool ece = false;                                // whether query_ece and set_ece answer (with zeros)
  bool modify_udp_sport = true;                    // whether mlx5dv_modify_qp_udp_sport works
};

struct DeviceGid {
  ibv_gid gid{};
  ibv_gid_type type = IBV_GID_TYPE_ROCE_V2;
};

struct DeviceDescription {
  std::string name;           // "mlx5_0"
  std::string netdev;         // "rail0"
  std::uint32_t address = 0;  // IPv4, network byte order
  std::string pci;            // "0000:11:00.0"
  std::uint64_t guid = 0;     // network byte order
  std::uint32_t speed_mbps = 100000;
  ibv_mtu mtu = IBV_MTU_4096;
  std::vector<DeviceGid> gids;
  DeviceCapabilities capabilities;
  std::uint32_t window_bytes = 262144;  // payload in flight that one queue pair may have
  bool late_gpu_writes = false;         // payload for GPU memory stays invisible until a READ by this NIC
};

struct Defects {
  bool never_retransmit = false;
  bool corrupt_payload = false;
};

struct HostDescription {
  std::string host;
  std::vector<DeviceDescription> devices;
  bool gpu_direct = false;  // some GPU lets a NIC register its memory
  bool gpu_dmabuf = false;  // some GPU exports its memory as dma-buf
  Defects defects;
  std::string control_file;       // faults that change during the run; empty: none
  std::string statistics_folder;  // empty: none are written
};

Result<HostDescription> read_host_description(const std::string& path);
// The same from text, for tests; `name` is what messages call it.
Result<HostDescription> parse_host_description(std::string_view text, const std::string& name);

}  // namespace weft::soft_rnic
