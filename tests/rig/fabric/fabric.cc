#include "tests/rig/fabric/fabric.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "common/text/format.h"
#include "tests/rig/fabric/command.h"
#include "tests/rig/fabric/isolation.h"

namespace weft::fabric {
namespace {

// A tbf queue never drops as long as it holds what all queue pairs that can meet in it may have in flight: 128 paths of
// 256 KiB and more.
constexpr const char* kQueueLimit = "128mb";
// The bucket must take the largest packet, and what the link carries while a busy machine lets the shaper's timer wait:
// tokens that find the bucket full are lost, and with them part of the rate. Time that it lasts at the link's rate.
constexpr std::uint64_t kBurstUs = 6000;
constexpr std::uint64_t kSmallestBurst = 32 << 10;
constexpr int kRepeatAddressRequestMs = 20;

std::uint64_t burst_bytes(int mbps) {
  return std::max(kSmallestBurst, std::uint64_t(mbps) * kBurstUs / 8);
}

Result<void> done(Result<std::string> output) {
  if (!output) return output.take_error();
  return {};
}

Result<void> ip_batch(const std::string& network, const std::string& lines) {
  if (lines.empty()) return {};
  if (network.empty()) return done(must_run({"ip", "-batch", "-"}, lines));
  return done(must_run({"ip", "-n", network, "-batch", "-"}, lines));
}

// Does something inside a network namespace, in a child process: the namespace of a process can't be changed and
// changed back safely.
Result<void> inside(const std::string& network, const std::function<Result<void>()>& work) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return system_error("fork failed", errno, network);
  if (child == 0) {
    auto result = enter_network(network);
    if (result) result = work();
    if (!result) std::fprintf(stderr, "rig: %s: %s\n", network.c_str(), result.error().text().c_str());
    _exit(result ? 0 : 1);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return system_error("waitpid failed", errno, network);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return Error{"could not be set up (see above)", network, 0, {}};
}

Result<void> write_setting(const std::string& path, const std::string& value) {
  std::ofstream file(path);
  file << value;
  file.close();
  if (!file) return system_error(text::format("cannot write {}", value), errno, path);
  return {};
}

// Packets of one flow must not overtake each other: with several CPUs each interface's packets are handed to one of
// them (receive packet steering). Not at the `except`ed interfaces: steering computes a hash of its own and leaves it
// in the packet, and the kernel's multipath choice takes a hash that is there already instead of computing its seeded
// one (fib_multipath_hash, policy 1).
Result<void> one_cpu_per_interface(const std::set<std::string>& except) {
  if (auto mounted = remount_sysfs(); !mounted) return mounted;
  for (const auto& interface : std::filesystem::directory_iterator("/sys/class/net")) {
    const std::filesystem::path queue = interface.path() / "queues/rx-0/rps_cpus";
    if (except.count(interface.path().filename()) != 0 || !std::filesystem::exists(queue)) continue;
    auto written = write_setting(queue, "1");
    // Inside a user namespace the kernel does not allow it; what is left of overtaking there the software NIC puts in
    // order.
    if (!written && written.error().code == EPERM) return {};
    if (!written) return written;
  }
  return {};
}

// The lines of an `ip` batch that give a port its address and bring it up. A link's two ends and its queue come up one
// after another, and what is sent before the last of them is lost. A lost request for a hardware address is repeated
// after a second unless told otherwise (arp(7), retrans_time_ms): a spine that comes back would for that long swallow
// what is sent over it, and NCCL's IB transport gives up sooner.
std::string addressed(const std::string& port, const std::string& address) {
  return text::format("addr add {} dev {}\nntable change name arp_cache dev {} retrans {}\nlink set {} up\n", address,
                      port, port, kRepeatAddressRequestMs, port);
}

}  // namespace

std::vector<std::string> LinuxHash::leaf_settings() const {
  return {"net/ipv4/fib_multipath_hash_policy=1", text::format("net/ipv4/fib_multipath_hash_seed={}", seed_)};
}

Result<std::unique_ptr<Fabric>> Fabric::create(const Topology& topology, const PathHash& hash) {
  std::unique_ptr<Fabric> fabric(new Fabric(topology));
  std::vector<std::string> names;
  for (int host = 0; host < topology.hosts; host++)
    names.push_back(host_name(host));
  for (int leaf = 0; leaf < leaf_count(topology); leaf++)
    names.push_back(leaf_name(leaf));
  for (int spine = 0; spine < topology.spines; spine++)
    names.push_back(spine_name(spine));
  for (const std::string& name : names) {
    if (auto made = make_network(name); !made) return made.take_error();
  }
  if (auto linked = fabric->make_links(); !linked) return linked.take_error();
  // Forwarding and the hash first: routes take the policy in force when they are used.
  if (auto configured = fabric->configure_kernel(hash); !configured) return configured.take_error();
  if (auto addressed = fabric->address_hosts(); !addressed) return addressed.take_error();
  for (int leaf = 0; leaf < leaf_count(topology); leaf++) {
    if (auto addressed = fabric->address_leaf(leaf); !addressed) return addressed.take_error();
  }
  for (int spine = 0; spine < topology.spines; spine++) {
    if (auto addressed = fabric->address_spine(spine); !addressed) return addressed.take_error();
  }
  if (auto shaped = fabric->shape(); !shaped) return shaped.take_error();
  return fabric;
}

Result<void> Fabric::make_links() const {
  std::string lines;
  const auto link = [&](const std::string& left, const std::string& left_port, const std::string& right,
                        const std::string& right_port) {
    lines += text::format("link add {} mtu {} netns {} type veth peer name {} mtu {} netns {}\n", left_port,
                          topology_.mtu, left, right_port, topology_.mtu, right);
  };
  for (const Nic& nic : nics(topology_))
    link(host_name(nic.host), nic.netdev, leaf_name(nic.leaf), nic.leaf_port);
  for (const SpineLink& spine : spine_links(topology_)) {
    link(leaf_name(spine.leaf), spine.leaf_port, spine_name(spine.spine), spine.spine_port);
  }
  return ip_batch("", lines);
}

Result<void> Fabric::address_hosts() const {
  for (int host = 0; host < topology_.hosts; host++) {
    std::string lines = "link set lo up\n";
    for (int rail = 0; rail < topology_.rails; rail++) {
      const Nic nic = nic_of(topology_, host, rail);
      lines += addressed(nic.netdev, nic.address + "/24");
    }
    for (int rail = 0; rail < topology_.rails; rail++) {
      const Nic nic = nic_of(topology_, host, rail);
      // A rail's other hosts through this rail's NIC; what is on no rail of ours through the first.
      lines += text::format("route add 10.{}.0.0/16 via {}\n", rail + 1, nic.gateway);
      if (rail == 0) lines += text::format("route add default via {}\n", nic.gateway);
    }
    if (auto added = ip_batch(host_name(host), lines); !added) return added;
  }
  return {};
}

Result<void> Fabric::address_leaf(int leaf) const {
  std::string lines = "link set lo up\n";
  for (const SpineLink& link : spine_links(topology_)) {
    if (link.leaf != leaf) continue;
    lines += addressed(link.leaf_port, link.leaf_address + "/30");
  }
  for (const Nic& nic : nics(topology_)) {
    if (nic.leaf != leaf) continue;
    lines += addressed(nic.leaf_port, nic.gateway + "/24");
  }
  return ip_batch(leaf_name(leaf), lines + leaf_routes(leaf));
}

// To the hosts of other leaves over every spine that is up.
std::string Fabric::leaf_routes(int leaf) const {
  std::string next_hops, lines;
  for (const SpineLink& link : spine_links(topology_)) {
    if (link.leaf == leaf && spine_up_[std::size_t(link.spine)])
      next_hops += text::format(" nexthop via {} weight 1", link.spine_address);
  }
  for (const Nic& nic : nics(topology_)) {
    if (nic.leaf != leaf && !next_hops.empty()) lines += text::format("route replace {}{}\n", nic.subnet, next_hops);
  }
  return lines;
}

std::string Fabric::spine_routes(int spine) const {
  std::string lines;
  for (const SpineLink& link : spine_links(topology_)) {
    if (link.spine != spine) continue;
    for (const Nic& nic : nics(topology_)) {
      if (nic.leaf == link.leaf) lines += text::format("route replace {} via {}\n", nic.subnet, link.leaf_address);
    }
  }
  return lines;
}

Result<void> Fabric::address_spine(int spine) const {
  std::string lines = "link set lo up\n";
  for (const SpineLink& link : spine_links(topology_)) {
    if (link.spine != spine) continue;
    lines += addressed(link.spine_port, link.spine_address + "/30");
  }
  return ip_batch(spine_name(spine), lines + spine_routes(spine));
}

Result<void> Fabric::shape() const {
  std::map<std::string, std::string> lines;  // by namespace
  const auto limit = [&](const std::string& network, const std::string& port, int mbps, int delay_us) {
    std::string& text = lines[network];
    text += text::format("qdisc add dev {} root handle 1: tbf rate {}mbit burst {} limit {}\n", port, mbps,
                         burst_bytes(mbps), kQueueLimit);
    if (delay_us > 0) {
      text += text::format("qdisc add dev {} parent 1:1 handle 2: netem delay {}us limit 1000000\n", port, delay_us);
    }
  };
  for (const Nic& nic : nics(topology_)) {
    limit(host_name(nic.host), nic.netdev, topology_.nic_mbps, 0);
    limit(leaf_name(nic.leaf), nic.leaf_port, topology_.nic_mbps, 0);
  }
  for (const SpineLink& link : spine_links(topology_)) {
    const UnequalSpine shape = spine_shape(topology_, link.spine);
    limit(leaf_name(link.leaf), link.leaf_port, shape.mbps, shape.delay_us);
    limit(spine_name(link.spine), link.spine_port, shape.mbps, shape.delay_us);
  }
  for (const auto& [network, text] : lines) {
    if (auto added = done(must_run({"tc", "-n", network, "-batch", "-"}, text)); !added) return added;
  }
  return {};
}

Result<void> Fabric::configure_kernel(const PathHash& hash) const {
  const auto configure = [](const std::string& network, const std::vector<std::string>& settings,
                            const std::set<std::string>& unsteered) {
    return inside(network, [&]() -> Result<void> {
      for (const std::string& setting : settings) {
        const std::size_t equal = setting.find('=');
        auto written = write_setting("/proc/sys/" + setting.substr(0, equal), setting.substr(equal + 1));
        if (!written) return written;
      }
      return one_cpu_per_interface(unsteered);
    });
  };
  const std::vector<std::string> plain = {"net/ipv4/ip_forward=1", "net/ipv4/conf/all/rp_filter=0",
                                          "net/ipv4/conf/default/rp_filter=0"};
  std::vector<std::string> leaf = plain;
  for (const std::string& setting : hash.leaf_settings())
    leaf.push_back(setting);
  for (int i = 0; i < topology_.hosts; i++) {
    if (auto set = configure(host_name(i), plain, {}); !set) return set;
  }
  for (int i = 0; i < leaf_count(topology_); i++) {
    std::set<std::string> host_ports;
    for (const Nic& nic : nics(topology_)) {
      if (nic.leaf == i) host_ports.insert(nic.leaf_port);
    }
    if (auto set = configure(leaf_name(i), leaf, host_ports); !set) return set;
  }
  for (int i = 0; i < topology_.spines; i++) {
    if (auto set = configure(spine_name(i), plain, {}); !set) return set;
  }
  return {};
}

Result<void> Fabric::set_spine(int spine, bool up) {
  spine_up_[std::size_t(spine)] = up;
  std::string at_spine;
  std::map<std::string, std::string> at_leaves;
  for (const SpineLink& link : spine_links(topology_)) {
    if (link.spine != spine) continue;
    at_leaves[leaf_name(link.leaf)] += text::format("link set {} {}\n", link.leaf_port, up ? "up" : "down");
    at_spine += text::format("link set {} {}\n", link.spine_port, up ? "up" : "down");
  }
  // The leaves send over a link as soon as their end is up: the spine's end must be ready by then, or a request for its
  // hardware address goes nowhere and the next one is a second away. So the spine comes up first and goes down last.
  const auto configure_leaves = [&]() -> Result<void> {
    for (const auto& [network, lines] : at_leaves) {
      if (auto set = ip_batch(network, lines); !set) return set;
    }
    return {};
  };
  if (!up) {
    if (auto set = configure_leaves(); !set) return set;
    return ip_batch(spine_name(spine), at_spine);
  }
  // A route goes with the link of its last next hop: made anew.
  if (auto set = ip_batch(spine_name(spine), at_spine + spine_routes(spine)); !set) return set;
  for (int leaf = 0; leaf < leaf_count(topology_); leaf++)
    at_leaves[leaf_name(leaf)] += leaf_routes(leaf);
  return configure_leaves();
}

Result<void> Fabric::set_forwarding(int spine, bool works) {
  return inside(spine_name(spine), [&] { return write_setting("/proc/sys/net/ipv4/ip_forward", works ? "1" : "0"); });
}

Result<std::vector<SpineTraffic>> Fabric::traffic() const {
  std::vector<SpineTraffic> all;
  for (int spine = 0; spine < topology_.spines; spine++) {
    auto text = must_run({"ip", "-n", spine_name(spine), "-s", "-j", "link", "show"});
    if (!text) return text.take_error();
    const auto links = nlohmann::json::parse(*text, nullptr, false);
    if (!links.is_array()) return Error{"not the JSON that was expected", "ip -s -j link show", 0, {}};
    SpineTraffic one;
    one.name = spine_name(spine);
    one.bytes_by_leaf.resize(std::size_t(leaf_count(topology_)));
    for (const SpineLink& link : spine_links(topology_)) {
      if (link.spine != spine) continue;
      for (const auto& entry : links) {
        if (entry.value("ifname", "") != link.spine_port) continue;
        const auto bytes = entry.at("stats64").at("rx").at("bytes").get<std::uint64_t>();
        one.bytes_by_leaf[std::size_t(link.leaf)] = bytes;
        one.bytes += bytes;
      }
    }
    all.push_back(std::move(one));
  }
  return all;
}

Result<std::vector<std::string>> Fabric::predict(const std::vector<Flow>& flows) const {
  std::vector<std::string> spines(flows.size());
  std::map<int, std::vector<std::size_t>> by_leaf;
  std::map<std::string, Nic> by_address;
  for (const Nic& nic : nics(topology_))
    by_address[nic.address] = nic;
  for (std::size_t i = 0; i < flows.size(); i++) {
    const auto source = by_address.find(flows[i].source);
    if (source != by_address.end()) by_leaf[source->second.leaf].push_back(i);
  }
  for (const auto& [leaf, indices] : by_leaf) {
    std::string lines;
    for (const std::size_t i : indices) {
      // With "iif" the kernel answers as for a packet that it forwards, hash included.
      lines += text::format("route get {} from {} iif {} ipproto udp sport {} dport 4791\n", flows[i].destination,
                            flows[i].source, by_address[flows[i].source].leaf_port, flows[i].source_port);
    }
    auto text = must_run({"ip", "-n", leaf_name(leaf), "-o", "-batch", "-"}, lines);
    if (!text) return text.take_error();
    std::size_t start = 0;
    for (const std::size_t i : indices) {
      const std::size_t end = std::min(text->find('\n', start), text->size());
      const std::string line = text->substr(start, end - start);
      start = std::min(end + 1, text->size());
      const std::size_t port = line.find(" dev up");
      if (port != std::string::npos) spines[i] = spine_name(std::stoi(line.substr(port + 7)) - 1);
    }
  }
  return spines;
}

}  // namespace weft::fabric
