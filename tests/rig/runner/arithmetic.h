// Bus bandwidth and share. Pure. tests/rig/README.md explains the definitions.
#pragma once

#include <vector>

#include "tests/rig/runner/scenario.h"

namespace weft::rig {

struct Spread {
  double median = 0;
  double p5 = 0;
  double p95 = 0;
  double p99 = 0;
};

// Percentiles with linear interpolation between neighbours; zeros for no values.
Spread spread(std::vector<double> values);

// Factor between algorithm bandwidth (bytes / time) and bus bandwidth, as nccl-tests define it; for net_* operations,
// the messages that go into (net_incast: rank 0's) or out of a rank in an iteration.
double bus_factor(const rank::Operation& operation, int ranks);

// Application bytes that a host sends to other hosts in one operation when all ranks form one ring (the convention of
// bus bandwidth): one rank of each host has its neighbour elsewhere. For all_to_all, the blocks for ranks of other
// hosts. For net_* operations, what the busiest host sends or receives.
double bytes_leaving_a_host(const Scenario& scenario, const rank::Operation& operation);

// What a host can send to other hosts: the smaller of its NICs' links together and of the spine links together that its
// share of the leaf comes to. Bytes per second of application payload, that is times the payload fraction of a full
// RoCE packet.
double possible_bytes_per_second(const Scenario& scenario);

// Payload over bytes on the wire of an RDMA WRITE packet in the middle of a message.
double payload_fraction(const Scenario& scenario);

}  // namespace weft::rig
