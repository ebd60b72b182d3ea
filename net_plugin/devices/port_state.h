// What of a port may change while a job runs: its GID, its speed, whether it can be used.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/result/result.h"
#include "net_plugin/devices/gid.h"
#include "net_plugin/devices/sysfs.h"
#include "net_plugin/verbs/verbs.h"

namespace weft::devices {

struct PortState {
  int speed_mbps = 0;
  ibv_mtu path_mtu = IBV_MTU_1024;
  GidEntry gid;
  int prefix_length = 0;  // of the GID's address in its subnet; 0: not known
  std::optional<Error> unusable;
};

// Of a port that has just been queried; reads its GID table. `warnings`: gets a line where its speed is not known.
PortState port_state(verbs::Verbs& verbs, ibv_context* context, const verbs::PortAttributes& attributes,
                     const Sysfs& sysfs, int port, const GidWishes& wishes, std::vector<std::string>& warnings);

// What new connections have to expect of it, for the log: nothing where they find what they found before. `place`:
// "mlx5_0:1".
std::optional<std::string> describe_change(const std::string& place, const PortState& before, const PortState& after);

// Mbit/s of ibv_query_port(3)'s codes; 0 where a code is not known.
int speed_mbps(std::uint32_t speed_code, std::uint8_t active_width);

}  // namespace weft::devices
