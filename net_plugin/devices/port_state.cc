#include "net_plugin/devices/port_state.h"

#include <cstring>

#include "common/text/format.h"
#include "common/text/nearest.h"

namespace weft::devices {
namespace {

std::vector<GidEntry> read_gids(verbs::Verbs& verbs, ibv_context* context, const Sysfs& sysfs, int port, int length) {
  std::vector<GidEntry> table;
  const bool typed = sysfs.knows_gid_types(port);
  for (int index = 0; index < length; index++) {
    GidEntry entry;
    entry.index = index;
    ibv_gid gid{};
    if (verbs.query_gid(context, std::uint8_t(port), index, &gid) == 0) {
      std::memcpy(entry.bytes.data(), gid.raw, entry.bytes.size());
    }
    // The type of an empty slot is not asked for: there may be hundreds (F10, F14).
    if (!is_zero(entry)) entry.type = typed ? sysfs.gid_type(port, index) : GidType::roce_v2;
    table.push_back(entry);
  }
  return table;
}

Result<GidEntry> find_gid(verbs::Verbs& verbs, ibv_context* context, const verbs::PortAttributes& attributes,
                          const Sysfs& sysfs, int port, const GidWishes& wishes) {
  const std::string place = text::format("{}:{}", sysfs.device(), port);
  if (attributes.state != IBV_PORT_ACTIVE)
    return Error{"the port is not active", place, 0, "look at the link: ip link, ibv_devinfo"};
  auto gid = choose_gid(read_gids(verbs, context, sysfs, port, attributes.gid_tbl_len), wishes, place);
  if (!gid && sysfs.interface_is_elsewhere()) {
    return Error{"no network interface in this namespace", place, 0,
                 "pass the NIC's interface into the container, or leave the NIC out with NCCL_IB_HCA"};
  }
  return gid;
}

// The kernel has a name for every speed, while the code may be one that the library or we don't know yet, and one of
// more than 8 bits is cut off where only 8 are passed on (F65).
int find_speed(const verbs::PortAttributes& attributes, const Sysfs& sysfs, int port,
               std::vector<std::string>& warnings) {
  const int known = speed_mbps(attributes.speed_code(), attributes.active_width);
  if (known != 0 || attributes.state != IBV_PORT_ACTIVE) return known;
  const auto rate = sysfs.rate_mbps(port);
  warnings.push_back(text::format("{}:{}: unknown speed code {} (width code {}); {}", sysfs.device(), port,
                                  attributes.speed_code(), attributes.active_width,
                                  rate ? text::format("using sysfs rate {} Mbit/s", *rate)
                                       : "sysfs has no rate either, the port counts as one without a speed"));
  return rate.value_or(0);
}

std::string index_and_address(const GidEntry& gid) {
  return text::format("index {} {}", gid.index, address_text(gid));
}

}  // namespace

PortState port_state(verbs::Verbs& verbs, ibv_context* context, const verbs::PortAttributes& attributes,
                     const Sysfs& sysfs, int port, const GidWishes& wishes, std::vector<std::string>& warnings) {
  PortState state;
  state.speed_mbps = find_speed(attributes, sysfs, port, warnings);
  state.path_mtu = attributes.active_mtu;
  auto gid = find_gid(verbs, context, attributes, sysfs, port, wishes);
  if (gid)
    state.gid = gid.take();
  else
    state.unusable = gid.take_error();
  return state;
}

std::optional<std::string> describe_change(const std::string& place, const PortState& before, const PortState& after) {
  std::vector<std::string> changes;
  const std::string old = before.unusable ? "none" : index_and_address(before.gid);
  const bool other_index = before.unusable || before.gid.index != after.gid.index;
  if (after.unusable) {
    if (!before.unusable) changes.push_back(text::format("GID table changed: {} is gone", old));
  } else if (before.unusable || other_index || before.gid.bytes != after.gid.bytes) {
    changes.push_back(text::format("GID table changed: {} -> {}", old,
                                   other_index ? index_and_address(after.gid) : address_text(after.gid)));
  }
  if (before.speed_mbps != after.speed_mbps)
    changes.push_back(text::format("speed changed: {} -> {} Mbit/s", before.speed_mbps, after.speed_mbps));
  if (before.path_mtu != after.path_mtu)
    changes.push_back(text::format("path MTU changed: {} -> {}", 128 << before.path_mtu, 128 << after.path_mtu));
  if (changes.empty()) return std::nullopt;
  return text::format("{} {}; new connections will {}", place, text::join(changes),
                      after.unusable ? "fail: " + after.unusable->text() : "use it");
}

int speed_mbps(std::uint32_t speed_code, std::uint8_t active_width) {
  int lane = 0, lanes = 0;
  switch (speed_code) {
    case 1:
      lane = 2'500;
      break;
    case 2:
      lane = 5'000;
      break;
    case 4:
    case 8:
      lane = 10'000;
      break;
    case 16:
      lane = 14'000;
      break;
    case 32:
      lane = 25'000;
      break;
    case 64:
      lane = 50'000;
      break;
    case 128:
      lane = 100'000;
      break;
    case 256:
      lane = 200'000;
      break;
    default:
      break;
  }
  switch (active_width) {
    case 1:
      lanes = 1;
      break;
    case 2:
      lanes = 4;
      break;
    case 4:
      lanes = 8;
      break;
    case 8:
      lanes = 12;
      break;
    case 16:
      lanes = 2;
      break;
    default:
      break;
  }
  return lane * lanes;
}

}  // namespace weft::devices
