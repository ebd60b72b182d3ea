// Physical ports as NCCL's devices, alone and merged.
#include "net_plugin/setup/net_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::setup {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

devices::Port port(const std::string& name, const std::string& pci, int speed = 100'000) {
  devices::Port out;
  out.device = out.name = name;
  out.pci_path = "/sys/devices/" + pci;
  out.speed_mbps = speed;
  out.max_qp = speed;
  out.guid = 7;
  out.peer_memory = true;
  return out;
}

std::vector<std::string> names(const NetDevices& devices) {
  std::vector<std::string> out;
  for (int i = 0; devices.find(i); i++)
    out.push_back(devices.find(i)->name);
  return out;
}

TEST(NetDevices, PortsOfOneCardAreOneWhereNcclDoesNotMerge) {
  const std::vector<devices::Port> ports = {port("a", "0000:3b:00.0"), port("b", "0000:3b:00.1", 50'000),
                                            port("c", "0000:5e:00.0")};
  EXPECT_THAT(names(NetDevices(ports, true)), ElementsAre("a+b", "c"));
  EXPECT_THAT(names(NetDevices(ports, false)), ElementsAre("a", "b", "c"));
  const NetDevices merged(ports, true);
  EXPECT_EQ(merged.find(0)->speed_mbps, 150'000);
  EXPECT_EQ(merged.find(0)->max_qp, 50'000);
  EXPECT_EQ(merged.find(0)->pci_path, "/sys/devices/0000:3b:00.0");
  EXPECT_EQ(merged.find(2), nullptr);
  EXPECT_EQ(merged.find(-1), nullptr);
}

TEST(NetDevices, UnusableAndUnplacedPortsStayAlone) {
  std::vector<devices::Port> ports = {port("a", "0000:3b:00.0"), port("b", "0000:3b:00.1"), port("c", ""),
                                      port("d", "")};
  ports[1].unusable = Error{"down", {}, 0, {}};
  ports[2].pci_path = ports[3].pci_path = "";
  EXPECT_THAT(names(NetDevices(ports, true)), ElementsAre("a", "b", "c", "d"));
}

// NCCL's makeVDevice: the new index is the next free one, the members stay.
TEST(NetDevices, AreMergedOnRequest) {
  std::vector<devices::Port> ports = {port("a", "0000:3b:00.0"), port("b", "0000:5e:00.0"), port("c", "0000:5f:00.0")};
  ports[1].peer_memory = false;
  NetDevices devices(ports, false);
  const NetDevice* before = devices.find(0);
  auto made = devices.merge(ports, {0, 2});
  ASSERT_TRUE(made);
  EXPECT_EQ(*made, 3);
  EXPECT_THAT(devices.find(3)->ports, ElementsAre(0, 2));
  EXPECT_TRUE(devices.find(3)->peer_memory);
  EXPECT_FALSE(devices.find(*devices.merge(ports, {0, 1}))->peer_memory);
  EXPECT_EQ(devices.find(0), before);  // NCCL keeps pointers to names
}

TEST(NetDevices, ImpossibleMergesAreRefusedWithTheCause) {
  const std::vector<devices::Port> ports(10, port("a", "0000:3b:00.0"));
  NetDevices devices(ports, false);
  EXPECT_THAT(devices.merge(ports, {0, 0}).error().text(), HasSubstr("device 0 occurs twice"));
  EXPECT_THAT(devices.merge(ports, {0, 10}).error().text(), HasSubstr("device 10 does not exist"));
  EXPECT_THAT(devices.merge(ports, {}).error().text(), HasSubstr("0 devices can't be one"));
  EXPECT_THAT(devices.merge(ports, {0, 1, 2, 3, 4, 5, 6, 7, 8}).error().text(), HasSubstr("9 devices can't be one"));
  const int made = devices.merge(ports, {1, 2}).take();
  EXPECT_THAT(devices.merge(ports, {0, made}).error().text(), HasSubstr("is several already"));
}

}  // namespace
}  // namespace weft::setup
