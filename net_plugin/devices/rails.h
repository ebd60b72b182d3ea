// The two ends of a connection as parts of a fabric: NICs whose addresses are in one subnet are on one rail, and rails
// are often not routed to each other (field reports F26, F27, F35). Pure.
#pragma once

#include <string>

#include "net_plugin/devices/gid.h"

namespace weft::devices {

struct RailEnd {
  std::string device;  // "mlx5_0:1"
  GidEntry gid;
  int prefix_length = 0;  // of its address in the subnet; 0: not known
};

bool in_different_subnets(const RailEnd& left, const RailEnd& right);

// "mlx5_0:1 192.0.2.10/24 and mlx5_3:1 198.51.100.7/24 are in different subnets, so on different rails; …".
std::string describe_rails(const RailEnd& own, const RailEnd& peer);

}  // namespace weft::devices
