// A look at a host is saved, unpacked elsewhere and made again: the choice is the same, and nothing in the archive
// tells whose it was.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "bench/weft/devices/devices_command.h"
#include "bench/weft/devices/record.h"
#include "bench/weft/process/child.h"
#include "bench/weft/save_tree/saved_files.h"
#include "bench/weft/save_tree/tar.h"
#include "tests/unit/net_plugin/fake/fake_sysfs.h"
#include "tests/unit/net_plugin/fake/fake_verbs.h"
#include "tests/unit/weft/save_tree/unpacked.h"

namespace weft::devices_command {
namespace {

namespace fs = std::filesystem;
using fake::DeviceDescription;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Of one card: the MAC address, the GUID and the identifier that are made from it.
constexpr const char* kMac = "b8:59:9f:0c:6d:e4";
constexpr const char* kGuid = "b859:9f03:000c:6de4";
constexpr const char* kIdentifier = "ba59:9fff:fe0c:6de4";
constexpr const char* kHost = "gpu-node-17";

std::array<std::uint8_t, 16> gid(const std::string& text) {
  std::array<std::uint8_t, 16> out{};
  EXPECT_EQ(inet_pton(AF_INET6, text.c_str(), out.data()), 1) << text;
  return out;
}

std::uint64_t guid() {
  const std::array<std::uint8_t, 8> bytes = {0xb8, 0x59, 0x9f, 0x03, 0x00, 0x0c, 0x6d, 0xe4};
  std::uint64_t out;
  std::memcpy(&out, bytes.data(), sizeof out);
  return out;
}

struct TestHost {
  fake::FakeSysfs sysfs;
  std::vector<DeviceDescription> devices;
  std::map<std::string, std::string> settings;
  std::optional<Error> no_verbs;

  // A NIC with the GIDs that Linux makes: link-local ones, then those of its addresses, each as v1 and v2.
  DeviceDescription& add(const std::string& name, const std::string& pci, const std::vector<std::string>& addresses) {
    std::vector<std::string> types;
    DeviceDescription nic;
    nic.name = name;
    nic.guid = guid() + (devices.size() << 56);
    for (const std::string& address : addresses) {
      nic.ports[0].gids.insert(nic.ports[0].gids.end(), 2, gid(address));
      types.insert(types.end(), {"IB/RoCE v1", "RoCE v2"});
    }
    nic.ports[0].gids.push_back({});
    sysfs.device(name, pci, types);
    return devices.emplace_back(std::move(nic));
  }

  Host host() const {
    const auto lookup = [this](const char* name) {
      const auto found = settings.find(name);
      return found == settings.end() ? nullptr : found->second.c_str();
    };
    Host out{settings::load(lookup, {}), Error{"", {}, 0, {}}, sysfs.root()};
    if (no_verbs)
      out.verbs = *no_verbs;
    else
      out.verbs = std::unique_ptr<verbs::Verbs>(std::make_unique<fake::FakeVerbs>(devices));
    return out;
  }
};

class SaveTree : public testing::Test {
 protected:
  SaveTree() : substitutes_({{kHost, "host"}}, [random = std::mt19937(5)]() mutable { return (random() & 1) != 0; }) {}

  // What is chosen there and from the tree, which is unpacked first.
  void save(const TestHost& host) {
    there_ = look(host.host());
    auto recorded = record(host.host(), substitutes_);
    ASSERT_TRUE(recorded) << recorded.error().text();
    fs::remove(file_);
    ASSERT_TRUE(save_tree::write_tar(recorded->tree, file_));
    unpacked_ = std::make_unique<save_tree::Unpacked>(file_);
    ASSERT_EQ(unpacked_->trouble(), "");
    ASSERT_TRUE(save_tree::is_saved_tree(unpacked_->root()));
    auto verbs = save_tree::recorded_verbs(unpacked_->root());
    ASSERT_TRUE(verbs) << verbs.error().text();
    const auto nothing = [](const char*) -> const char* { return nullptr; };
    here_ = look({settings::load(nothing, {}, save_tree::recorded_settings(unpacked_->root())), verbs.take(),
                  unpacked_->root() + "/sys"});
  }

  void expect_same_choice() {
    EXPECT_EQ(there_.trouble.has_value(), here_.trouble.has_value());
    EXPECT_EQ(there_.remarks.size(), here_.remarks.size());
    ASSERT_EQ(there_.ports.size(), here_.ports.size());
    for (std::size_t i = 0; i < there_.ports.size(); i++)
      expect_same(there_.ports[i], here_.ports[i]);
  }

  void expect_same(const devices::Port& there, const devices::Port& here) {
    SCOPED_TRACE(there.name);
    EXPECT_EQ(substitutes_.text(there.name), here.name);
    EXPECT_EQ(there.port, here.port);
    EXPECT_EQ(there.pci_path, here.pci_path);
    EXPECT_EQ(there.identity, here.identity);
    EXPECT_EQ(there.vendor_id, here.vendor_id);
    EXPECT_EQ(there.speed_mbps, here.speed_mbps);
    EXPECT_EQ(there.path_mtu, here.path_mtu);
    EXPECT_EQ(there.max_qp, here.max_qp);
    EXPECT_EQ(there.max_srq, here.max_srq);
    EXPECT_EQ(there.gid.index, here.gid.index);
    EXPECT_EQ(there.gid.type, here.gid.type);
    EXPECT_EQ(devices::is_ipv4(there.gid), devices::is_ipv4(here.gid));
    EXPECT_EQ(devices::describe_gpu_memory(there), devices::describe_gpu_memory(here));
    ASSERT_EQ(there.unusable.has_value(), here.unusable.has_value());
    if (!there.unusable) return;
    EXPECT_EQ(there.unusable->code, here.unusable->code);
    EXPECT_EQ(substitutes_.text(there.unusable->what), here.unusable->what);
  }

  std::string bytes() const {
    std::ostringstream out;
    out << std::ifstream(file_, std::ios::binary).rdbuf();
    return out.str();
  }

  const process::TemporaryFolder folder_ = process::TemporaryFolder::create().take();
  const std::string file_ = folder_.path() + "/tree.tar";
  save_tree::Substitutes substitutes_;
  std::unique_ptr<save_tree::Unpacked> unpacked_;
  Report there_, here_;
};

TEST_F(SaveTree, RoceOverIpv4) {
  TestHost host;
  host.add("mlx5_0", "0000:c1:00.0", {"fe80::1", "::ffff:10.1.2.3"});
  host.add("mlx5_1", "0000:41:00.0", {std::string("fe80::") + kIdentifier, "2001:db8::1", "::ffff:10.1.3.3"});
  save(host);
  expect_same_choice();
  ASSERT_EQ(here_.ports.size(), 2u);
  EXPECT_EQ(here_.ports[0].gid.index, 5);
  EXPECT_EQ(here_.ports[0].pci_path, "/sys/devices/0000:41:00.0");
}

TEST_F(SaveTree, Ipv6OnlyAndARange) {
  TestHost host;
  host.add("mlx5_0", "0000:41:00.0",
           {std::string("fe80::") + kIdentifier, std::string("2001:db8:7:1:") + kIdentifier, "fd00:1:2:3::9"});
  host.settings = {{"NCCL_IB_ADDR_FAMILY", "AF_INET6"}, {"NCCL_IB_ADDR_RANGE", "fd00:1:2::/48"}};
  save(host);
  expect_same_choice();
  EXPECT_EQ(here_.ports.at(0).gid.index, 5);
  host.settings["NCCL_IB_ADDR_RANGE"] = "2001:db8:7::/48";
  save(host);
  expect_same_choice();
  EXPECT_EQ(here_.ports.at(0).gid.index, 3);
  host.settings["NCCL_IB_ADDR_RANGE"] = "2001:db8:8::/48";
  save(host);
  expect_same_choice();
  EXPECT_TRUE(here_.ports.at(0).unusable) << "no address is in this range";
}

TEST_F(SaveTree, ABondBesideOtherNics) {
  TestHost host;
  host.add("mlx5_0", "0000:41:00.0", {"fe80::1"});
  host.add("mlx5_bond_0", "0000:42:00.0", {"fe80::2", "::ffff:192.168.5.6"});
  host.add("irdma0", "0000:43:00.0", {"::ffff:10.0.0.1"}).transport = IBV_TRANSPORT_IWARP;
  host.sysfs.write("class/infiniband/irdma0/node_type", "4: RNIC");
  save(host);
  expect_same_choice();
  host.settings["NCCL_IB_HCA"] = "=mlx5_bond_0";
  save(host);
  expect_same_choice();
  EXPECT_EQ(here_.ports.at(0).name, "mlx5_bond_0");
}

TEST_F(SaveTree, VirtualFunctions) {
  TestHost host;
  host.add("mlx5_0", "0000:41:00.0", {"::ffff:10.1.1.1"});
  host.add("mlx5_1", "0000:41:00.2", {"::ffff:10.1.1.2"});
  fs::create_directory_symlink("../0000:41:00.0", host.sysfs.root() + "/devices/0000:41:00.2/physfn");
  save(host);
  expect_same_choice();
  ASSERT_EQ(here_.ports.size(), 1u);
  EXPECT_THAT(here_.remarks, testing::Contains(HasSubstr("mlx5_1 is a virtual function of mlx5_0")));
}

TEST_F(SaveTree, TwoPortsOfOneCardAndOneThatIsNotEthernet) {
  TestHost host;
  DeviceDescription& dual = host.add("mlx5_0", "0000:41:00.0", {"::ffff:10.1.1.1"});
  dual.ports.resize(3, dual.ports[0]);
  dual.ports[1].query_error = EIO;
  dual.ports[2].link_layer = IBV_LINK_LAYER_INFINIBAND;
  host.sysfs.write("class/infiniband/mlx5_0/ports/2/link_layer", "Ethernet");
  host.sysfs.write("class/infiniband/mlx5_0/ports/3/link_layer", "InfiniBand");
  save(host);
  expect_same_choice();
  EXPECT_EQ(here_.ports.size(), 1u);
  EXPECT_THAT(here_.remarks, testing::Contains(HasSubstr("mlx5_0:2: ibv_query_port failed")));
  dual.ports[1] = dual.ports[0];
  host.sysfs.write("class/infiniband/mlx5_0/ports/2/gid_attrs/types/1", "RoCE v2");
  save(host);
  expect_same_choice();
  EXPECT_EQ(here_.ports.size(), 2u);
}

TEST_F(SaveTree, WaysToGpuMemory) {
  for (const int dmabuf_error : {0, EOPNOTSUPP, EINVAL}) {
    for (const char* module : {"module/nvidia_peermem/version", "kernel/mm/memory_peers/nv_mem/version", ""}) {
      TestHost host;
      host.add("mlx5_0", "0000:41:00.0", {"::ffff:10.1.1.1"}).dmabuf_error = dmabuf_error;
      if (*module != '\0') host.sysfs.write(module, "535.104.12");
      save(host);
      expect_same_choice();
    }
  }
}

TEST_F(SaveTree, HostsWithoutAUsablePort) {
  TestHost host;
  save(host);
  expect_same_choice();
  EXPECT_TRUE(here_.ports.empty());
  host.add("mlx5_0", "0000:41:00.0", {std::string("fe80::") + kIdentifier, "::ffff:169.254.7.7"});
  host.add("mlx5_1", "0000:42:00.0", {"::ffff:10.1.1.1"}).open_error = EPERM;
  host.add("mlx5_2", "0000:43:00.0", {"::ffff:10.1.1.2"}).query_error = EIO;
  host.add("mlx5_3", "0000:44:00.0", {"::ffff:10.1.1.3"}).ports[0].state = IBV_PORT_DOWN;
  host.add("mlx5_4", "0000:45:00.0", {});
  fs::remove_all(host.sysfs.root() + "/devices/0000:45:00.0/net");
  fs::create_directory(host.sysfs.root() + "/devices/0000:45:00.0/net");
  host.sysfs.device("mlx5_5", "0000:46:00.0");
  save(host);
  expect_same_choice();
  ASSERT_EQ(here_.ports.size(), 6u);
  EXPECT_THAT(here_.ports[4].unusable->text(), HasSubstr("no network interface in this namespace"));
  host.no_verbs = Error{"cannot open: no such file", "libibverbs.so.1", 0, {}};
  save(host);
  expect_same_choice();
  EXPECT_THAT(here_.ports.at(0).unusable->text(), HasSubstr("cannot open: no such file"));
}

TEST_F(SaveTree, SettingsThatDecideAndThoseThatAreWrong) {
  TestHost host;
  host.add("mlx5_0", "0000:41:00.0", {"fe80::1", "::ffff:10.1.2.3", "::ffff:10.9.2.3"});
  host.add("mlx5_1", "0000:42:00.0", {"fe80::2", "::ffff:10.1.2.4", "::ffff:10.9.2.4"});
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"NCCL_IB_HCA", "^mlx5_0"},
                                                        {"NCCL_IB_HCA", "mlx9"},
                                                        {"NCCL_IB_HCA", "mlx5_0,=mlx5_1"},
                                                        {"NCCL_IB_GID_INDEX", "5"},
                                                        {"NCCL_IB_GID_INDEX", "4"},
                                                        {"NCCL_IB_GID_INDEX", "x"},
                                                        {"NCCL_IB_ADDR_RANGE", "10.9.0.0/16"},
                                                        {"NCCL_IB_ADDR_RANGE", "10.8.0.0/16"},
                                                        {"NCCL_IB_ADDR_RANGE", "10.8.0.0/99"},
                                                        {"NCCL_IB_TC", "300"}}) {
    SCOPED_TRACE(name + "=" + value);
    host.settings = {{name, value}};
    save(host);
    expect_same_choice();
  }
}

// As the kernel has it: the device's own folder is far from /sys/class, and all links are relative.
TEST_F(SaveTree, LinksAsTheKernelMakesThem) {
  TestHost host;
  const fs::path root = host.sysfs.root();
  const fs::path pci = root / "devices/pci0000:40/0000:40:01.1/0000:41:00.0";
  const std::string device = "devices/pci0000:40/0000:40:01.1/0000:41:00.0/infiniband/mlx5_0";
  fs::create_directories(pci / "net/eth0");
  host.sysfs.write(device + "/node_type", "1: CA");
  host.sysfs.write(device + "/ports/1/link_layer", "Ethernet");
  host.sysfs.write(device + "/ports/1/gid_attrs/types/0", "RoCE v2");
  fs::create_directories(root / "class/infiniband");
  fs::create_directory_symlink("../../" + device, root / "class/infiniband/mlx5_0");
  fs::create_directory_symlink("../../../0000:41:00.0", root / device / "device");
  DeviceDescription nic;
  nic.name = "mlx5_0";
  nic.ports[0].gids = {gid("::ffff:10.1.1.1")};
  host.devices = {nic};
  save(host);
  expect_same_choice();
  EXPECT_EQ(here_.ports.at(0).pci_path, "/sys/devices/pci0000:40/0000:40:01.1/0000:41:00.0");
  EXPECT_EQ(fs::read_symlink(unpacked_->root() + "/sys/class/infiniband/mlx5_0"), "../../" + device);
}

TEST_F(SaveTree, NothingPersonalIsInTheArchive) {
  TestHost host;
  const std::string name = "rocexb8599f03000c6de4";
  host.add(name, "0000:41:00.0",
           {std::string("fe80::") + kIdentifier, std::string("2001:db8:7:1:") + kIdentifier, "::ffff:10.17.34.51"});
  host.add(std::string(kHost) + "_1", "0000:42:00.0", {"::ffff:203.0.113.77"});
  for (const std::string& device : {name, std::string(kHost) + "_1"}) {
    const std::string folder = "class/infiniband/" + device;
    host.sysfs.write(folder + "/node_guid", kGuid);
    host.sysfs.write(folder + "/sys_image_guid", kGuid);
    host.sysfs.write(folder + "/node_desc", std::string(kHost) + " mlx5_0");
    host.sysfs.write(folder + "/board_id", "MT_0000000223 SERIAL-MT2118X01234");
    host.sysfs.write(folder + "/ports/1/gids/0", std::string("fe80:0000:0000:0000:") + kIdentifier);
    host.sysfs.write(folder + "/ports/1/gid_attrs/ndevs/0", "enxb8599f0c6de4");
  }
  host.sysfs.write("devices/0000:41:00.0/net/enxb8599f0c6de4/address", kMac);
  host.sysfs.write("devices/0000:41:00.0/vpd", "SERIAL-MT2118X01234");
  host.settings = {{"NCCL_IB_HCA", "rocexb8599f,gpu-node"},
                   {"NCCL_SOCKET_IFNAME", "enxb8599f0c6de4"},
                   {"NCCL_IB_ADDR_RANGE", "10.17.34.0/24"},
                   {"WEFT_PROFILE", "/home/somebody/profile.json"},
                   {"WEFT_SYSFS_ROOT", "/home/somebody/tree"}};
  host.settings["NCCL_IB_HCA"] = std::string("rocexb8599f,") + kHost;
  save(host);
  expect_same_choice();
  EXPECT_EQ(here_.ports.size(), 1u) << "of the other no address is in the range";
  std::string all = bytes();
  std::transform(all.begin(), all.end(), all.begin(), [](unsigned char letter) { return char(std::tolower(letter)); });
  const auto raw = [](const auto& value) {
    return std::string(reinterpret_cast<const char*>(value.data()), value.size());
  };
  for (const std::string& marker :
       {std::string(kMac), std::string(kGuid), std::string(kIdentifier), std::string(kHost), std::string("b8599f"),
        std::string("0c6de4"), std::string("6d:e4"), std::string("6de4"), std::string("9f03"), std::string("10.17.34"),
        std::string("203.0.113"), std::string("2001:db8"), std::string("a112233"), std::string("mt2118x01234"),
        std::string("serial"), std::string("somebody"), std::string("gpu-node"), raw(gid("::ffff:10.17.34.51")),
        raw(gid(std::string("fe80::") + kIdentifier)).substr(8)}) {
    EXPECT_THAT(all, Not(HasSubstr(marker)));
  }
  EXPECT_THAT(unpacked_->members(), Not(testing::Contains(HasSubstr("net/enx"))));
  EXPECT_THAT(bytes(), HasSubstr("NCCL_SOCKET_IFNAME=enx"));
}

TEST_F(SaveTree, OnlyWhatWasReadIsInIt) {
  TestHost host;
  host.add("mlx5_0", "0000:41:00.0", {"::ffff:10.1.1.1"});
  host.sysfs.write("class/infiniband/mlx5_0/fw_ver", "28.39.1002");
  save(host);
  EXPECT_THAT(unpacked_->members(),
              ElementsAre("sys/", "sys/class/", "sys/class/infiniband/", "sys/class/infiniband/mlx5_0/",
                          "sys/class/infiniband/mlx5_0/device", "sys/class/infiniband/mlx5_0/node_type",
                          "sys/class/infiniband/mlx5_0/ports/", "sys/class/infiniband/mlx5_0/ports/1/",
                          "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/",
                          "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/",
                          "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/0",
                          "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/1",
                          "sys/class/infiniband/mlx5_0/ports/1/link_layer", "sys/devices/", "sys/devices/0000:41:00.0/",
                          "weft/", "weft/settings.conf", "weft/verbs.json"));
}

TEST_F(SaveTree, LinksNeverLeadOutOfIt) {
  TestHost host;
  host.add("mlx5_0", "0000:41:00.0", {"::ffff:10.1.1.1"});
  save(host);
  for (const auto& entry : fs::recursive_directory_iterator(unpacked_->root())) {
    if (!entry.is_symlink()) continue;
    EXPECT_TRUE(fs::read_symlink(entry.path()).is_relative());
    EXPECT_THAT(fs::canonical(entry.path()).string(), testing::StartsWith(fs::canonical(unpacked_->root()).string()));
  }
  fake::FakeSysfs other;
  other.device("mlx5_1", "0000:42:00.0");
  fs::create_directory_symlink(other.root() + "/class/infiniband/mlx5_1",
                               host.sysfs.root() + "/class/infiniband/mlx5_1");
  auto recorded = record(host.host(), substitutes_);
  ASSERT_FALSE(recorded);
  EXPECT_THAT(recorded.error().text(), HasSubstr("class/infiniband/mlx5_1: leads out of the tree"));
}

// Not what can happen, but what must not: a tree that lies is not written.
TEST_F(SaveTree, ATreeThatWouldChooseOtherwiseIsAnError) {
  TestHost host;
  host.add("mlx5_0", "0000:41:00.0", {"::ffff:10.1.1.1"});
  save_tree::Substitutes wrong(save_tree::Substitutes::Words{{"RoCE v2", "unknown"}});
  auto recorded = record(host.host(), wrong);
  ASSERT_FALSE(recorded);
  EXPECT_THAT(recorded.error().text(), HasSubstr("the tree would not give this host's choice"));
}

TEST_F(SaveTree, ADamagedTreeIsNamed) {
  TestHost host;
  host.add("mlx5_0", "0000:41:00.0", {"::ffff:10.1.1.1"});
  save(host);
  const std::string file = unpacked_->root() + "/weft/verbs.json";
  std::ofstream(file) << R"({"load_error": null, "optional_access": true, "dmabuf": 7, "list_error": 0, "devices":
      [{"name": "mlx5_0"}]})";
  auto verbs = save_tree::recorded_verbs(unpacked_->root());
  ASSERT_FALSE(verbs);
  EXPECT_THAT(verbs.error().text(), testing::AllOf(HasSubstr("dmabuf"), HasSubstr("system_image_guid")));
}

}  // namespace
}  // namespace weft::devices_command
