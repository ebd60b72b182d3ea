#include "net_plugin/devices/gid.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "common/text/format.h"
#include "common/text/nearest.h"

namespace weft::devices {
namespace {

constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr int kMappedBits = 96;

// Larger is better; 0: not usable.
int rank(const GidEntry& entry, const GidWishes& wishes) {
  if (is_zero(entry) || entry.type != GidType::roce_v2 || is_link_local(entry)) return 0;
  if (wishes.range && !in_range(entry, *wishes.range)) return 0;
  return is_ipv4(entry) != wishes.ipv6 ? 2 : 1;
}

std::string list(const std::vector<GidEntry>& table) {
  std::vector<std::string> entries;
  for (const GidEntry& entry : table) {
    if (!is_zero(entry)) entries.push_back(describe(entry));
  }
  return entries.empty() ? "none" : text::join(entries);
}

Error none_usable(const std::vector<GidEntry>& table, const GidWishes& wishes, const std::string& place) {
  const auto used = std::count_if(table.begin(), table.end(), [](const GidEntry& entry) { return !is_zero(entry); });
  if (wishes.range) {
    return Error{text::format("NCCL_IB_ADDR_RANGE={} matches no RoCE v2 GID", wishes.range_text), place, 0,
                 "have: " + list(table)};
  }
  const bool only_link_local = used > 0 && std::all_of(table.begin(), table.end(), [](const GidEntry& entry) {
                                 return is_zero(entry) || is_link_local(entry);
                               });
  return Error{text::format("has no usable RoCE v2 GID ({} slots: {} used, {} empty)", table.size(), used,
                            table.size() - std::size_t(used)),
               place, 0,
               text::format("have: {}; {}", list(table),
                            only_link_local
                                ? "link-local addresses work inside one segment only: give the interface an IP address"
                                : "give its interface an IP address in this network namespace")};
}

Result<GidEntry> forced(const std::vector<GidEntry>& table, int index, const std::string& place) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const GidEntry& entry) { return entry.index == index; });
  if (found == table.end()) {
    return Error{text::format("GID index {} out of range (table has {} entries)", index, table.size()), place, 0,
                 "NCCL_IB_GID_INDEX=-1 chooses by content"};
  }
  if (is_zero(*found)) {
    return Error{text::format("GID index {} is empty here", index), place, 0,
                 text::format("have: {}; NCCL_IB_GID_INDEX=-1 chooses by content", list(table))};
  }
  if (found->type == GidType::roce_v1) {
    return Error{text::format("GID index {} is RoCE v1, which switches do not route", index), place, 0,
                 text::format("have: {}; NCCL_IB_GID_INDEX=-1 chooses by content", list(table))};
  }
  return *found;
}

}  // namespace

bool is_zero(const GidEntry& entry) {
  return std::all_of(entry.bytes.begin(), entry.bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

bool is_ipv4(const GidEntry& entry) {
  return std::equal(kMapped.begin(), kMapped.end(), entry.bytes.begin());
}

bool is_link_local(const GidEntry& entry) {
  if (is_ipv4(entry)) return entry.bytes[12] == 169 && entry.bytes[13] == 254;
  return entry.bytes[0] == 0xfe && (entry.bytes[1] & 0xc0) == 0x80;
}

std::string address_text(const GidEntry& entry) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (is_ipv4(entry))
    inet_ntop(AF_INET, entry.bytes.data() + kMapped.size(), text, sizeof text);
  else
    inet_ntop(AF_INET6, entry.bytes.data(), text, sizeof text);
  return text;
}

std::string describe(const GidEntry& entry) {
  const char* type = entry.type == GidType::roce_v2   ? "RoCE v2"
                     : entry.type == GidType::roce_v1 ? "RoCE v1"
                                                      : "type unreadable";
  return text::format("GID[{}] = {} ({})", entry.index, address_text(entry), type);
}

bool in_range(const GidEntry& entry, const AddressRange& range) {
  for (int bit = 0; bit < range.length; bit += 8) {
    const int bits = std::min(8, range.length - bit);
    const auto mask = std::uint8_t(0xff << (8 - bits));
    const auto at = std::size_t(bit / 8);
    if ((entry.bytes[at] & mask) != (range.prefix[at] & mask)) return false;
  }
  return true;
}

AddressRange subnet_of(const GidEntry& entry, int prefix_length) {
  return {entry.bytes, prefix_length + (is_ipv4(entry) ? kMappedBits : 0)};
}

Result<AddressRange> parse_range(const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::string address = text.substr(0, slash);
  AddressRange range;
  std::array<std::uint8_t, 4> ipv4{};
  const bool is_v4 = inet_pton(AF_INET, address.c_str(), ipv4.data()) == 1;
  if (is_v4) {
    std::copy(kMapped.begin(), kMapped.end(), range.prefix.begin());
    std::copy(ipv4.begin(), ipv4.end(), range.prefix.begin() + kMapped.size());
  } else if (inet_pton(AF_INET6, address.c_str(), range.prefix.data()) != 1) {
    return Error{text::format("\"{}\": not an IPv4 or IPv6 address", text), "NCCL_IB_ADDR_RANGE", 0,
                 "form: 198.51.100.0/24 or 2001:db8::/32"};
  }
  const int longest = is_v4 ? 32 : 128;
  range.length = longest;
  if (slash != std::string::npos) {
    const char* end = text.data() + text.size();
    const auto [stopped, problem] = std::from_chars(text.data() + slash + 1, end, range.length);
    if (problem != std::errc() || stopped != end || range.length < 0 || range.length > longest) {
      return Error{text::format("\"{}\": prefix length must be 0-{}", text, longest), "NCCL_IB_ADDR_RANGE", 0, {}};
    }
  }
  if (is_v4) range.length += kMappedBits;
  return range;
}

Result<GidEntry> choose_gid(const std::vector<GidEntry>& table, const GidWishes& wishes, const std::string& place) {
  if (wishes.index >= 0) return forced(table, wishes.index, place);
  const GidEntry* best = nullptr;
  int best_rank = 0;
  for (const GidEntry& entry : table) {
    const int here = rank(entry, wishes);
    if (here > best_rank) {
      best = &entry;
      best_rank = here;
    }
  }
  if (!best) return none_usable(table, wishes, place);
  return *best;
}

}  // namespace weft::devices
