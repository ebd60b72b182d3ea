#include "tests/rig/runner/arithmetic.h"

#include <algorithm>
#include <cmath>

namespace weft::rig {
namespace {

// Ethernet header 14 (the links are shaped by frame size, without preamble, gap and checksum, as tbf counts), IPv4 20,
// UDP 8, BTH 12, ICRC 4.
constexpr double kPacketOverhead = 14 + 20 + 8 + 12 + 4;

double percentile(const std::vector<double>& sorted, double fraction) {
  const double place = fraction * double(sorted.size() - 1);
  const auto below = std::size_t(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - double(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Spread spread(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {percentile(values, 0.5), percentile(values, 0.05), percentile(values, 0.95), percentile(values, 0.99)};
}

double bus_factor(const rank::Operation& operation, int ranks) {
  const double n = ranks, messages = double(operation.connections) * operation.messages;
  switch (operation.kind) {
    case rank::Kind::net_stream:
      return messages;
    case rank::Kind::net_incast:
      return messages * (n - 1);
    case rank::Kind::net_ping_pong:
      return operation.connections;
    case rank::Kind::all_reduce:
      return 2 * (n - 1) / n;
    case rank::Kind::all_gather:
    case rank::Kind::reduce_scatter:
    case rank::Kind::all_to_all:
      return (n - 1) / n;
    default:
      return 1;
  }
}

double bytes_leaving_a_host(const Scenario& scenario, const rank::Operation& operation) {
  const double hosts = scenario.topology.hosts, bytes = double(operation.bytes);
  if (hosts < 2) return 0;
  if (operation.kind == rank::Kind::net_stream)
    return bus_factor(operation, scenario.ranks()) * scenario.gpus_per_host * bytes;
  if (operation.kind == rank::Kind::all_to_all) return scenario.gpus_per_host * (hosts - 1) / hosts * bytes;
  return bus_factor(operation, scenario.ranks()) * bytes;
}

double payload_fraction(const Scenario& scenario) {
  const double payload = scenario.nic.mtu;
  return payload / (payload + kPacketOverhead);
}

double possible_bytes_per_second(const Scenario& scenario) {
  const fabric::Topology& topology = scenario.topology;
  double mbps = double(topology.nic_mbps) * topology.rails;
  const int hosts_of_leaf = std::min(topology.hosts_per_leaf, topology.hosts);
  if (topology.spines > 0 && topology.hosts > topology.hosts_per_leaf) {
    const double spines = double(fabric::spines_mbps(topology)) * topology.rails / hosts_of_leaf;
    mbps = std::min(mbps, spines);
  }
  return mbps * 1e6 / 8 * payload_fraction(scenario);
}

}  // namespace weft::rig
