#include "tests/rig/soft_rnic/wire/source_port.h"

namespace weft::soft_rnic {

std::uint16_t source_port_of_flow_label(std::uint32_t flow_label) {
  const std::uint32_t low = flow_label & 0x03fff;
  const std::uint32_t high = flow_label & 0xfc000;
  return static_cast<std::uint16_t>((low ^ high >> 14) | 0xc000);
}

std::uint32_t flow_label_of_queue_pairs(std::uint32_t local, std::uint32_t remote) {
  std::uint64_t label = static_cast<std::uint64_t>(local) * remote;
  label ^= label >> 20;
  label ^= label >> 40;
  return static_cast<std::uint32_t>(label & 0xfffff);
}

std::uint16_t source_port_of(std::uint32_t flow_label, std::uint32_t local, std::uint32_t remote) {
  if (flow_label == 0) flow_label = flow_label_of_queue_pairs(local, remote);
  return source_port_of_flow_label(flow_label);
}

}  // namespace weft::soft_rnic
