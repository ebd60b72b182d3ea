#include "tests/rig/fabric/topology.h"

#include "common/text/format.h"

namespace weft::fabric {

std::string host_name(int host) {
  return text::format("h{}", host + 1);
}
std::string leaf_name(int leaf) {
  return text::format("l{}", leaf + 1);
}
std::string spine_name(int spine) {
  return text::format("s{}", spine + 1);
}

int leaf_count(const Topology& topology) {
  const int groups = (topology.hosts + topology.hosts_per_leaf - 1) / topology.hosts_per_leaf;
  return groups * topology.rails;
}

int leaf_of(const Topology& topology, int host, int rail) {
  return host / topology.hosts_per_leaf * topology.rails + rail;
}

Nic nic_of(const Topology& topology, int host, int rail) {
  Nic nic;
  nic.host = host;
  nic.rail = rail;
  nic.netdev = text::format("rail{}", rail);
  nic.address = text::format("10.{}.{}.2", rail + 1, host + 1);
  nic.gateway = text::format("10.{}.{}.1", rail + 1, host + 1);
  nic.subnet = text::format("10.{}.{}.0/24", rail + 1, host + 1);
  nic.leaf = leaf_of(topology, host, rail);
  nic.leaf_port = text::format("h{}r{}", host + 1, rail);
  return nic;
}

std::vector<Nic> nics(const Topology& topology) {
  std::vector<Nic> all;
  for (int host = 0; host < topology.hosts; host++) {
    for (int rail = 0; rail < topology.rails; rail++)
      all.push_back(nic_of(topology, host, rail));
  }
  return all;
}

std::vector<SpineLink> spine_links(const Topology& topology) {
  std::vector<SpineLink> links;
  for (int leaf = 0; leaf < leaf_count(topology); leaf++) {
    for (int spine = 0; spine < topology.spines; spine++) {
      SpineLink link;
      link.leaf = leaf;
      link.spine = spine;
      link.leaf_port = text::format("up{}", spine + 1);
      link.spine_port = text::format("down{}", leaf + 1);
      // One /30 a link, counted up from 10.128.0.0: room for 2^21 of them, and NICs are below 10.9.
      const int place = (leaf * topology.spines + spine) * 4;
      const auto address = [place](int end) {
        return text::format("10.{}.{}.{}", 128 + place / 65536, place / 256 % 256, place % 256 + end);
      };
      link.leaf_address = address(1);
      link.spine_address = address(2);
      links.push_back(link);
    }
  }
  return links;
}

UnequalSpine spine_shape(const Topology& topology, int spine) {
  for (const UnequalSpine& one : topology.unequal_spines) {
    if (one.spine == spine) return one;
  }
  return {spine, topology.spine_mbps, topology.delay_us};
}

int spines_mbps(const Topology& topology) {
  int sum = 0;
  for (int spine = 0; spine < topology.spines; spine++)
    sum += spine_shape(topology, spine).mbps;
  return sum;
}

}  // namespace weft::fabric
