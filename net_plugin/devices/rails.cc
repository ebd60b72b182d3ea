#include "net_plugin/devices/rails.h"

#include "common/text/format.h"

namespace weft::devices {
namespace {

std::string end_text(const RailEnd& end) {
  const std::string address = text::format("{} {}", end.device, address_text(end.gid));
  return end.prefix_length > 0 ? text::format("{}/{}", address, end.prefix_length) : address;
}

bool outside(const GidEntry& entry, const RailEnd& of) {
  return of.prefix_length > 0 && !in_range(entry, subnet_of(of.gid, of.prefix_length));
}

}  // namespace

bool in_different_subnets(const RailEnd& left, const RailEnd& right) {
  return outside(left.gid, right) || outside(right.gid, left);
}

std::string describe_rails(const RailEnd& own, const RailEnd& peer) {
  const std::string both = text::format("{} and {}", end_text(own), end_text(peer));
  if (in_different_subnets(own, peer)) {
    return both +
           " are in different subnets, so on different rails; where rails are not routed to each other set "
           "NCCL_CROSS_NIC=0";
  }
  const bool known = own.prefix_length > 0 && peer.prefix_length > 0;
  return both + (known ? " are in the same subnet, so on one rail" : " (their subnets are not known)");
}

}  // namespace weft::devices
