// The shape of an emulated fabric and the addresses and names that follow from it. Pure.
//
// Hosts stand in groups of `hosts_per_leaf`; every rail has its own leaf for each group; all leaves connect to all
// spines. A host has one NIC on each rail. Every NIC has a subnet of its own, 10.(rail+1).(host).0/24, with the leaf as
// its gateway: whatever is not on the same leaf is routed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::fabric {

// A spine whose links differ from the others'.
struct UnequalSpine {
  int spine = 0;     // 0-based
  int mbps = 1000;   // each of its links, each direction
  int delay_us = 0;  // instead of Topology::delay_us
};

struct Topology {
  int hosts = 2;
  int rails = 1;  // NICs of a host
  int hosts_per_leaf = 1;
  int spines = 4;         // 0: all hosts on one leaf
  int nic_mbps = 1000;    // link host - leaf, each direction
  int spine_mbps = 1000;  // link leaf - spine, each direction
  int delay_us = 0;       // added by each spine link, each direction
  int mtu = 4200;         // of every interface; 4096 bytes of RoCE payload fit
  std::uint32_t hash_seed = 1;
  std::vector<UnequalSpine> unequal_spines;
};

struct Nic {
  int host = 0;  // 0-based
  int rail = 0;
  std::string netdev;   // on the host: "rail0"
  std::string address;  // "10.1.1.2"
  std::string gateway;  // the leaf's
  std::string subnet;   // "10.1.1.0/24"
  int leaf = 0;
  std::string leaf_port;  // interface on the leaf: "h1r0"
};

struct SpineLink {
  int leaf = 0;
  int spine = 0;
  std::string leaf_port;   // "up1"
  std::string spine_port;  // "down1"
  std::string leaf_address;
  std::string spine_address;
};

// Names of namespaces: h1 …, l1 …, s1 ….
std::string host_name(int host);
std::string leaf_name(int leaf);
std::string spine_name(int spine);

int leaf_count(const Topology& topology);
int leaf_of(const Topology& topology, int host, int rail);
std::vector<Nic> nics(const Topology& topology);  // by host, then rail
Nic nic_of(const Topology& topology, int host, int rail);
std::vector<SpineLink> spine_links(const Topology& topology);
// Rate and delay of each link of a spine.
UnequalSpine spine_shape(const Topology& topology, int spine);
// What all spines together carry between two leaves, in Mbit/s.
int spines_mbps(const Topology& topology);

}  // namespace weft::fabric
