// One scenario: what is emulated, what runs on it, what goes wrong and when. tests/rig/README.md documents the file.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/result/result.h"
#include "tests/rig/fabric/topology.h"
#include "tests/rig/rank/rank_file.h"

namespace weft::rig {

struct NicModel {
  std::string name_prefix = "mlx5_";  // NIC on rail 2: "mlx5_2"
  int speed_mbps = 0;                 // what the driver reports; 0: the link's rate
  int mtu = 4096;                     // RoCE path MTU, bytes
  int window_bytes = 262144;          // payload in flight that a queue pair may have
  int max_qp = 65535;
  int max_srq = 1024;
  int max_inline = 512;
  bool ece = false;
  bool modify_udp_sport = true;
  bool late_gpu_writes = false;
  std::string gids = "link_local,ipv4";  // what the GID table holds, in order
};

enum class FaultKind { spine_down, spine_up, spine_drop, spine_restore, nic_down, nic_up, nic_loss, kill };

// As the scenario file writes it.
std::string fault_name(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::spine_down;
  double at_s = 0;          // seconds after the moment
  bool after_start = true;  // moment: the first operation; else the start of the job
  int target = 0;           // spine, or rank
  std::string host;         // of a NIC
  std::string nic;
  int drop_ppm = 0;  // nic_loss: of received packets
};

struct Scenario {
  std::string name;
  fabric::Topology topology;
  int gpus_per_host = 1;
  bool gpudirect = false;
  bool dmabuf = false;
  std::string compute_capability = "8.0";
  NicModel nic;
  std::string unusable_host;  // all GIDs of its NICs are empty
  std::string nccl = "2.29.7";
  std::string net = "weft";    // weft, ib, socket
  std::string tuner = "none";  // weft, none
  std::map<std::string, std::string> environment;
  std::vector<int> host_order;  // hosts of ranks 0 …, one entry for each host; ranks of a host follow each other
  std::vector<rank::Operation> operations;
  std::vector<Fault> faults;
  std::vector<std::string> defects;
  int time_limit_s = 60;

  int ranks() const { return topology.hosts * gpus_per_host; }
  int host_of_rank(int rank) const { return host_order[std::size_t(rank / gpus_per_host)]; }
  int gpu_of_rank(int rank) const { return rank % gpus_per_host; }
  std::string nic_name(int rail) const { return nic.name_prefix + std::to_string(rail); }
};

// `overrides`: "fabric.hash_seed=7", applied to the document before it is read; the value is JSON or a bare word.
Result<Scenario> read_scenario(const std::string& path, const std::vector<std::string>& overrides = {});
Result<Scenario> parse_scenario(const std::string& text, const std::string& name,
                                const std::vector<std::string>& overrides = {});

}  // namespace weft::rig
