// Which ports are found, in which order, and what is said of the others. F-numbers: field reports.
#include "net_plugin/devices/discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/net_plugin/fake/fake_sysfs.h"
#include "tests/unit/net_plugin/fake/fake_verbs.h"

namespace weft::devices {
namespace {

using fake::DeviceDescription;
using fake::FakeSysfs;
using fake::FakeVerbs;
using fake::PortDescription;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

DeviceDescription device(const std::string& name, int number = 1) {
  DeviceDescription out;
  out.name = name;
  out.guid = std::uint64_t(number);
  out.ports[0].gids = {fake::ipv4_gid(10, 1, 1, number)};
  return out;
}

std::vector<std::string> names(const Discovery& found) {
  std::vector<std::string> out;
  for (const Port& port : found.ports)
    out.push_back(port.name);
  return out;
}

Discovery find(std::vector<DeviceDescription> devices, const FakeSysfs& sysfs, const std::string& hca = "") {
  FakeVerbs verbs(std::move(devices));
  Wishes wishes;
  wishes.selection = parse_selection(hca).take();
  Discovery found = discover(verbs, wishes, sysfs.root());
  EXPECT_EQ(verbs.objects(), 0) << "a device stayed open";
  return found;
}

TEST(Discovery, OrdersByPciAddress) {  // F25
  FakeSysfs sysfs;
  sysfs.device("mlx5_0", "0000:c1:00.0");
  sysfs.device("mlx5_1", "0000:41:00.0");
  EXPECT_THAT(names(find({device("mlx5_0", 1), device("mlx5_1", 2)}, sysfs)), ElementsAre("mlx5_1", "mlx5_0"));
}

TEST(Discovery, GoesByLinkLayerAndNeverByLid) {  // F22
  FakeSysfs sysfs;
  sysfs.device("mlx5_0", "0000:41:00.0");
  auto with_lid = device("mlx5_0");
  with_lid.ports[0].lid = 5;
  EXPECT_THAT(names(find({with_lid}, sysfs)), ElementsAre("mlx5_0"));
  auto infiniband = device("mlx5_0");
  infiniband.ports[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
  const Discovery found = find({infiniband}, sysfs);
  EXPECT_THAT(found.ports, IsEmpty());
  EXPECT_THAT(found.remarks, Contains(HasSubstr("not Ethernet")));
}

TEST(Discovery, AHostWithoutRdmaHasNoPorts) {
  FakeSysfs sysfs;
  EXPECT_THAT(find({}, sysfs).ports, IsEmpty());
  EXPECT_THAT(discover_without_verbs(Error{"cannot open", "libibverbs.so.1", 0, {}}, {}, sysfs.root()).ports,
              IsEmpty());
}

// Only a host without RoCE NICs may have zero devices: what can't be asked is listed as unusable, with the cause.
TEST(Discovery, ADeviceThatCannotBeOpenedIsUnusableNotAbsent) {
  FakeSysfs sysfs;
  sysfs.device("mlx5_0", "0000:41:00.0");
  auto closed = device("mlx5_0");
  closed.open_error = EPERM;
  const Discovery found = find({closed}, sysfs);
  ASSERT_THAT(names(found), ElementsAre("mlx5_0"));
  ASSERT_TRUE(found.ports[0].unusable);
  EXPECT_THAT(found.ports[0].unusable->text(), HasSubstr("mlx5_0:1: ibv_open_device failed"));
  EXPECT_THAT(found.ports[0].unusable->text(), HasSubstr("/dev/infiniband"));
}

TEST(Discovery, AFailingQueryIsUnusableNotAbsent) {
  FakeSysfs sysfs;
  sysfs.device("mlx5_0", "0000:41:00.0");
  auto broken = device("mlx5_0");
  broken.query_error = EIO;
  EXPECT_THAT(find({broken}, sysfs).ports[0].unusable->text(), HasSubstr("ibv_query_device failed"));
  auto silent = device("mlx5_0");
  silent.ports[0].query_error = EIO;
  EXPECT_THAT(find({silent}, sysfs).ports[0].unusable->text(), HasSubstr("ibv_query_port failed"));
}

TEST(Discovery, ADeviceThatOnlySysfsShowsIsUnusableNotAbsent) {
  FakeSysfs sysfs;
  sysfs.device("mlx5_0", "0000:41:00.0");
  const Discovery found = find({}, sysfs);
  ASSERT_THAT(names(found), ElementsAre("mlx5_0"));
  EXPECT_THAT(found.ports[0].unusable->text(), HasSubstr("libibverbs does not list this device"));
  const Discovery without =
      discover_without_verbs(Error{"cannot open: no such file", "libibverbs.so.1", 0, {}}, {}, sysfs.root());
  ASSERT_THAT(names(without), ElementsAre("mlx5_0"));
  EXPECT_THAT(without.ports[0].unusable->text(), HasSubstr("cannot open"));
}

TEST(Discovery, WithAUsablePortTheOthersAreLeftOutAndSaidSo) {
  FakeSysfs sysfs;
  sysfs.device("mlx5_0", "0000:41:00.0");
  sysfs.device("mlx5_1", "0000:42:00.0");
  auto down = device("mlx5_0", 1);
  down.ports[0].state = IBV_PORT_DOWN;
  const Discovery found = find({down, device("mlx5_1", 2)}, sysfs);
  EXPECT_THAT(names(found), ElementsAre("mlx5_1"));
  EXPECT_THAT(found.remarks, Contains(HasSubstr("mlx5_0:1: the port is not active")));
}

TEST(Discovery, IWarpIsNotRoce) {
  FakeSysfs sysfs;
  sysfs.device("irdma0", "0000:41:00.0");
  sysfs.write("class/infiniband/irdma0/node_type", "4: RNIC");
  auto listed = device("irdma0");
  listed.transport = IBV_TRANSPORT_IWARP;
  EXPECT_THAT(find({listed}, sysfs).ports, IsEmpty());
  EXPECT_THAT(find({}, sysfs).ports, IsEmpty());
}

TEST(Discovery, AnInterfaceInAnotherNamespaceIsTheCauseThatIsNamed) {  // F18
  FakeSysfs sysfs;
  sysfs.device("mlx5_0", "0000:41:00.0", {});
  std::filesystem::remove_all(sysfs.root() + "/devices/0000:41:00.0/net");
  std::filesystem::create_directories(sysfs.root() + "/devices/0000:41:00.0/net");
  auto bare = device("mlx5_0");
  bare.ports[0].gids = {{}};
  EXPECT_THAT(find({bare}, sysfs).ports[0].unusable->text(), HasSubstr("no network interface in this namespace"));
}

TEST(Discovery, PortsOfOneCardAreToldApart) {  // F28
  FakeSysfs sysfs;
  sysfs.device("mlx5_0", "0000:41:00.0");
  auto dual = device("mlx5_0");
  dual.ports.push_back(dual.ports[0]);
  const Discovery found = find({dual, device("mlx5_1", 1)}, sysfs);
  ASSERT_EQ(found.ports.size(), 3u);
  std::set<std::pair<std::uint64_t, int>> identities;
  std::set<std::string> distinct;
  for (const Port& port : found.ports) {
    identities.insert({port.guid, port.identity});
    distinct.insert(port.name);
  }
  EXPECT_EQ(identities.size(), 3u);
  EXPECT_EQ(distinct.size(), 3u);
}

TEST(Discovery, AVirtualFunctionOfAListedPortIsLeftOut) {
  FakeSysfs sysfs;
  sysfs.device("mlx5_0", "0000:41:00.0");
  sysfs.device("mlx5_1", "0000:41:00.2");
  std::filesystem::create_directory_symlink(sysfs.root() + "/devices/0000:41:00.0",
                                            sysfs.root() + "/devices/0000:41:00.2/physfn");
  const Discovery found = find({device("mlx5_0", 1), device("mlx5_1", 2)}, sysfs);
  EXPECT_THAT(names(found), ElementsAre("mlx5_0"));
  EXPECT_THAT(found.remarks, Contains(HasSubstr("mlx5_1 is a virtual function of mlx5_0")));
}

TEST(Discovery, TheSelectionIsObeyedAndAMistakeInItIsNamed) {
  FakeSysfs sysfs;
  sysfs.device("mlx5_0", "0000:41:00.0");
  sysfs.device("mlx5_1", "0000:42:00.0");
  EXPECT_THAT(names(find({device("mlx5_0", 1), device("mlx5_1", 2)}, sysfs, "^mlx5_0")), ElementsAre("mlx5_1"));
  const Discovery found = find({device("mlx5_0", 1), device("mlx5_1", 2)}, sysfs, "=mlx5_7");
  ASSERT_TRUE(found.trouble);
  EXPECT_THAT(found.trouble->text(), HasSubstr("\"mlx5_7\" matches no RoCE port"));
  EXPECT_EQ(found.ports.size(), 2u) << "zero devices would let this rank move to another transport alone";
}

TEST(Discovery, SaysHowManyPortsAreTooMany) {  // F24
  FakeSysfs sysfs;
  std::vector<DeviceDescription> devices;
  for (int i = 0; i < 40; i++)
    devices.push_back(device("mlx5_" + std::to_string(i), i + 1));
  const Discovery found = find(devices, sysfs);
  EXPECT_EQ(found.ports.size(), 32u);
  EXPECT_THAT(found.remarks, Contains(HasSubstr("40 RDMA ports found, using the first 32")));
}

TEST(Discovery, F65_TheWiderSpeedCodeCounts) {
  const FakeSysfs sysfs;
  sysfs.device("mlx5_0", "0000:41:00.0");
  DeviceDescription nic = device("mlx5_0");
  nic.ports[0].active_speed = 128;
  nic.ports[0].wide_speed = 256;
  const Discovery found = find({nic}, sysfs);
  EXPECT_EQ(found.ports.at(0).speed_mbps, 800'000);
  EXPECT_THAT(found.warnings, IsEmpty());
}

// A code that nobody knows, and one that was cut off after 8 bits.
TEST(Discovery, F65_AnUnknownSpeedIsTakenFromSysfsAndSaidOnce) {
  for (const int code : {0, 3}) {
    const FakeSysfs sysfs;
    sysfs.device("mlx5_0", "0000:41:00.0");
    sysfs.device("mlx5_1", "0000:42:00.0");
    sysfs.write("class/infiniband/mlx5_0/ports/1/rate", "800 Gb/sec (4X XDR)");
    DeviceDescription unknown = device("mlx5_0", 1), known = device("mlx5_1", 2);
    unknown.ports[0].active_speed = std::uint8_t(code);
    const Discovery found = find({unknown, known}, sysfs);
    EXPECT_EQ(found.ports.at(0).speed_mbps, 800'000);
    EXPECT_EQ(found.ports.at(1).speed_mbps, 100'000);
    EXPECT_THAT(found.warnings, ElementsAre("mlx5_0:1: unknown speed code " + std::to_string(code) +
                                            " (width code 2); using sysfs rate 800000 Mbit/s"));
  }
}

TEST(Discovery, F65_RatesOfSysfsAreReadWhole) {
  const std::vector<std::pair<std::string, int>> rates = {{"400 Gb/sec (4X NDR)", 400'000},
                                                          {"2.5 Gb/sec (1X SDR)", 2'500},
                                                          {"56 Gb/sec (4X FDR)", 56'000},
                                                          {"400", 0},
                                                          {"fast", 0},
                                                          {"-1 Gb/sec", 0},
                                                          {"1e300 Gb/sec", 0},
                                                          {"nan Gb/sec", 0},
                                                          {"10 Mb/sec", 0}};
  for (const auto& [line, mbps] : rates) {
    const FakeSysfs sysfs;
    sysfs.write("class/infiniband/mlx5_0/ports/1/rate", line);
    EXPECT_EQ(Sysfs(sysfs.root(), "mlx5_0").rate_mbps(1).value_or(0), mbps) << line;
  }
  EXPECT_FALSE(Sysfs({"/nowhere"}, "mlx5_0").rate_mbps(1));
}

TEST(Discovery, SpeedsFollowTheVerbsCodes) {
  EXPECT_EQ(speed_mbps(32, 2), 100'000);   // EDR x4
  EXPECT_EQ(speed_mbps(128, 2), 400'000);  // NDR x4
  EXPECT_EQ(speed_mbps(1, 1), 2'500);
  EXPECT_EQ(speed_mbps(3, 2), 0);
}

}  // namespace
}  // namespace weft::devices
