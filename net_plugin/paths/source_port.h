// UDP source ports of RoCEv2: how a flow label becomes a port, and which ports a connection uses.
//
// Drivers that follow the Linux kernel's convention (rdma_flow_label_to_udp_sport, include/rdma/ib_verbs.h) derive the
// port from the flow label of the queue pair's address vector:
//   port = 0xC000 | ((label & 0x3FFF) ^ (label >> 14))
// so that every port from 0xC000 to 0xFFFF can be asked for without a vendor call.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::paths {

inline constexpr std::uint16_t kFirstPort = 0xC000;
inline constexpr std::uint32_t kPorts = 0x4000;  // 0xC000 … 0xFFFF

// `label`: 20 bits, not zero (zero makes the driver derive the port from the queue pair numbers).
std::uint16_t port_of_label(std::uint32_t label);
// A flow label that yields `port` (0xC000 … 0xFFFF); never zero.
std::uint32_t label_of_port(std::uint16_t port);

// Distinct ports, drawn at random but reproducibly from a key: the same key gives the same ports on every run.
class PortSequence {
 public:
  explicit PortSequence(std::uint64_t key) : key_(key), state_(key) {}
  // The next `count` (at most kPorts) ports, different from all before; from the beginning again where fewer are left.
  std::vector<std::uint16_t> take(std::size_t count);

 private:
  std::uint64_t key_, state_;
  std::size_t taken_count_ = 0;
  std::bitset<kPorts> taken_;
};

// Mixes values into a key for a PortSequence: seed, addresses, connection number.
std::uint64_t combine_key(std::uint64_t key, std::uint64_t value);
std::uint64_t hash_bytes(std::uint64_t key, const void* data, std::size_t size);

}  // namespace weft::paths
