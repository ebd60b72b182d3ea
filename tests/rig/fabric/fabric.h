// The emulated fabric: network namespaces joined by veth pairs, shaped by tbf, with Linux's own ECMP in the leaves.
// Only inside an isolated process (isolation.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/result/result.h"
#include "tests/rig/fabric/topology.h"

namespace weft::fabric {

// How leaves choose among the spines. The seam for the linear hashes of switches.
class PathHash {
 public:
  virtual ~PathHash() = default;
  // Settings below /proc/sys of a leaf's namespace, as "path=value".
  virtual std::vector<std::string> leaf_settings() const = 0;
};

// Linux's five-tuple hash with a settable seed; it is not linear.
class LinuxHash final : public PathHash {
 public:
  explicit LinuxHash(std::uint32_t seed) : seed_(seed) {}
  std::vector<std::string> leaf_settings() const override;

 private:
  std::uint32_t seed_;
};

// A flow of RoCEv2 packets (UDP, destination port 4791).
struct Flow {
  std::string source;
  std::string destination;
  std::uint16_t source_port = 0;
};

struct SpineTraffic {
  std::string name;
  std::uint64_t bytes = 0;                   // received by the spine on all its ports
  std::vector<std::uint64_t> bytes_by_leaf;  // from each leaf
};

class Fabric {
 public:
  // Makes namespaces, links, addresses, routes and shapers.
  static Result<std::unique_ptr<Fabric>> create(const Topology& topology, const PathHash& hash);

  const Topology& topology() const { return topology_; }

  Result<void> set_spine(int spine, bool up);          // links down at both ends; routes follow
  Result<void> set_forwarding(int spine, bool works);  // false: the spine drops everything silently
  Result<std::vector<SpineTraffic>> traffic() const;
  // The spine that each flow takes, "" where it stays on its leaf.
  Result<std::vector<std::string>> predict(const std::vector<Flow>& flows) const;

 private:
  explicit Fabric(const Topology& topology) : topology_(topology), spine_up_(std::size_t(topology.spines), true) {}
  Result<void> make_links() const;
  Result<void> address_hosts() const;
  Result<void> address_leaf(int leaf) const;
  Result<void> address_spine(int spine) const;
  std::string leaf_routes(int leaf) const;
  std::string spine_routes(int spine) const;
  Result<void> shape() const;
  Result<void> configure_kernel(const PathHash& hash) const;

  Topology topology_;
  std::vector<bool> spine_up_;
};

}  // namespace weft::fabric
