// Which entry of a port's GID table to use. Pure. The numbers F01 … are field reports, told in docs/net-plugin.md
// ("Choosing a GID").
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/result/result.h"

namespace weft::devices {

enum class GidType {
  unknown,  // the type could not be read: an empty slot, or one of another network namespace (F05, F06)
  roce_v1,
  roce_v2,
};

struct GidEntry {
  int index = 0;
  std::array<std::uint8_t, 16> bytes{};
  GidType type = GidType::unknown;
};

struct AddressRange {
  std::array<std::uint8_t, 16> prefix{};  // IPv4 as ::ffff:a.b.c.d
  int length = 0;                         // bits of the 16 bytes
};

struct GidWishes {
  int index = -1;                     // NCCL_IB_GID_INDEX; -1: by content
  bool ipv6 = false;                  // NCCL_IB_ADDR_FAMILY=AF_INET6
  std::optional<AddressRange> range;  // NCCL_IB_ADDR_RANGE
  std::string range_text;
};

// "198.51.100.0/24", "2001:db8::/32".
Result<AddressRange> parse_range(const std::string& text);

bool in_range(const GidEntry& entry, const AddressRange& range);
// `prefix_length`: of an address of the entry's family, 24 for 192.0.2.10/24.
AddressRange subnet_of(const GidEntry& entry, int prefix_length);

// The best entry for RoCE v2: an IPv4 address before a global or unique local IPv6 one (the other way round with
// `ipv6`); link-local addresses never by themselves. `place` is "mlx5_0:1", for the message.
Result<GidEntry> choose_gid(const std::vector<GidEntry>& table, const GidWishes& wishes, const std::string& place);

bool is_zero(const GidEntry& entry);
bool is_ipv4(const GidEntry& entry);
bool is_link_local(const GidEntry& entry);  // fe80::/10 and ::ffff:169.254.0.0/112 (F13)
// "192.0.2.10" for an IPv4-mapped GID, "2001:db8::1" otherwise.
std::string address_text(const GidEntry& entry);
// "GID[3] = 192.0.2.10 (RoCE v2)".
std::string describe(const GidEntry& entry);

}  // namespace weft::devices
