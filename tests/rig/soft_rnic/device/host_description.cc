#include "tests/rig/soft_rnic/device/host_description.h"

#include <arpa/inet.h>
#include <endian.h>

#include <algorithm>
#include <charconv>

#include "common/json/strict.h"

namespace weft::soft_rnic {
namespace {

constexpr std::int64_t kMaxSpeedMbps = 1600000;
constexpr std::int64_t kMaxWindow = 64 << 20;

std::uint32_t read_address(json::Fields& nic) {
  const std::string text = nic.text("address", json::required);
  in_addr address{};
  if (!text.empty() && inet_pton(AF_INET, text.c_str(), &address) != 1) {
    nic.problem("address", "\"" + text + "\" is not an IPv4 address", "for example 10.1.1.2");
  }
  return address.s_addr;
}

std::uint64_t read_guid(json::Fields& nic) {
  const std::string text = nic.text("guid", json::required);
  std::uint64_t guid = 0;
  const bool prefixed = text.rfind("0x", 0) == 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + (prefixed ? 2 : 0), end, guid, 16);
  if (!text.empty() && (!prefixed || parsed.ec != std::errc{} || parsed.ptr != end || guid == 0)) {
    nic.problem("guid", "\"" + text + "\" is not a GUID", "0x and up to 16 hexadecimal digits, not zero");
  }
  return htobe64(guid);
}

ibv_mtu read_mtu(json::Fields& nic) {
  switch (nic.integer("mtu", 1024)) {
    case 256:
      return IBV_MTU_256;
    case 512:
      return IBV_MTU_512;
    case 1024:
      return IBV_MTU_1024;
    case 2048:
      return IBV_MTU_2048;
    case 4096:
      return IBV_MTU_4096;
    default:
      nic.problem("mtu", "is no path MTU", "256, 512, 1024, 2048 or 4096");
      return IBV_MTU_1024;
  }
}

std::vector<DeviceGid> read_gids(json::Fields& nic) {
  std::vector<DeviceGid> gids;
  for (json::Fields& entry : nic.objects("gids")) {
    DeviceGid gid;
    const std::string text = entry.text("gid", json::required);
    if (!text.empty() && inet_pton(AF_INET6, text.c_str(), gid.gid.raw) != 1) {
      entry.problem("gid", "\"" + text + "\" is not a GID",
                    "written like an IPv6 address, for example ::ffff:10.1.1.2");
    }
    const std::string type = entry.word("type", "RoCE v2", {"RoCE v2", "IB/RoCE v1"});
    gid.type = type == "RoCE v2" ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
    entry.done();
    gids.push_back(gid);
  }
  return gids;
}

DeviceCapabilities read_capabilities(json::Fields& nic) {
  DeviceCapabilities capabilities;
  auto fields = nic.object("caps");
  if (!fields) return capabilities;
  const auto count = [&](std::string_view key, std::uint32_t fallback, std::int64_t low, std::int64_t high) {
    return static_cast<std::uint32_t>(fields->integer(key, fallback, {low, high}));
  };
  capabilities.max_queue_pairs = count("max_qp", capabilities.max_queue_pairs, 1, 65535);
  capabilities.max_shared_receive_queues = count("max_srq", capabilities.max_shared_receive_queues, 0, 65535);
  capabilities.max_inline = count("max_inline", capabilities.max_inline, 0, 4096);
  capabilities.ece = fields->boolean("ece", capabilities.ece);
  capabilities.modify_udp_sport = fields->boolean("modify_udp_sport", capabilities.modify_udp_sport);
  fields->done();
  return capabilities;
}

DeviceDescription read_device(json::Fields& nic) {
  DeviceDescription device;
  device.name = nic.text("name", json::required);
  if (device.name.size() >= IBV_SYSFS_NAME_MAX) nic.problem("name", "is longer than 63 characters");
  device.netdev = nic.text("netdev", json::required);
  device.address = read_address(nic);
  nic.integer("prefix_length", 24, {1, 32});
  nic.text("mac", "");
  device.pci = nic.text("pci", "");
  device.guid = read_guid(nic);
  device.speed_mbps = static_cast<std::uint32_t>(nic.integer("speed_mbps", 100000, {1, kMaxSpeedMbps, "Mbit/s"}));
  device.mtu = read_mtu(nic);
  device.gids = read_gids(nic);
  device.capabilities = read_capabilities(nic);
  device.window_bytes =
      static_cast<std::uint32_t>(nic.integer("window_bytes", device.window_bytes, {4096, kMaxWindow, "bytes"}));
  device.late_gpu_writes = nic.boolean("late_gpu_writes", false);
  nic.done();
  return device;
}

void read_gpus(json::Fields& host, HostDescription& description) {
  for (json::Fields& gpu : host.objects("gpus")) {
    gpu.text("bus_id", "");
    gpu.text("compute_capability", "");
    description.gpu_direct |= gpu.boolean("gpudirect", false);
    description.gpu_dmabuf |= gpu.boolean("dmabuf", false);
    gpu.done();
  }
}

void read_defects(json::Fields& host, Defects& defects) {
  static const std::vector<std::string> known = {"wrong_reduction", "never_retransmit", "corrupt_payload"};
  for (const std::string& defect : host.texts("defects")) {
    if (std::find(known.begin(), known.end(), defect) == known.end()) {
      host.problem("defects", "\"" + defect + "\" is not a known defect",
                   "wrong_reduction, never_retransmit or corrupt_payload");
    }
    defects.never_retransmit |= defect == "never_retransmit";
    defects.corrupt_payload |= defect == "corrupt_payload";
  }
}

Result<HostDescription> read(const nlohmann::json& document, const std::string& name) {
  json::Problems problems;
  json::Fields host(document, name, problems);
  HostDescription description;
  description.host = host.text("host", json::required);
  read_gpus(host, description);
  for (json::Fields& nic : host.objects("nics"))
    description.devices.push_back(read_device(nic));
  read_defects(host, description.defects);
  description.control_file = host.text("control", "");
  description.statistics_folder = host.text("statistics", "");
  host.done();
  if (auto error = problems.error()) return *error;
  return description;
}

}  // namespace

Result<HostDescription> read_host_description(const std::string& path) {
  auto document = json::read_file(path);
  if (!document) return document.take_error();
  return read(*document, path);
}

Result<HostDescription> parse_host_description(std::string_view text, const std::string& name) {
  auto document = json::parse(text, name);
  if (!document) return document.take_error();
  return read(*document, name);
}

}  // namespace weft::soft_rnic
