// The UDP source port of a RoCEv2 queue pair, by the convention of the Linux kernel (include/rdma/ib_verbs.h:
// rdma_flow_label_to_udp_sport, rdma_calc_flow_label, rdma_get_udp_sport), which every RoCEv2 driver follows.
#pragma once

#include <cstdint>

namespace weft::soft_rnic {

// 0xC000 to 0xFFFF. Only 20 bits of `flow_label` count, folded to 14.
std::uint16_t source_port_of_flow_label(std::uint32_t flow_label);

// The label the kernel invents for two queue pairs when none was given: symmetric, 20 bits, may be 0.
std::uint32_t flow_label_of_queue_pairs(std::uint32_t local, std::uint32_t remote);

// The port of a queue pair: from the label, or from the two queue pair numbers where the label is 0.
std::uint16_t source_port_of(std::uint32_t flow_label, std::uint32_t local, std::uint32_t remote);

}  // namespace weft::soft_rnic
