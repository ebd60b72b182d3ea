#include "bench/weft/devices/devices_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::devices_command {
namespace {

using testing::HasSubstr;

devices::Port port(const std::string& name) {
  devices::Port out;
  out.device = out.name = name;
  out.speed_mbps = 400'000;
  out.path_mtu = IBV_MTU_4096;
  out.pci_path = "/sys/devices/pci0000:00/0000:41:00.0";
  out.gid.index = 3;
  out.gid.type = devices::GidType::roce_v2;
  out.gid.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3};
  out.dmabuf = true;
  return out;
}

TEST(DevicesCommand, TellsWhatAUsablePortIs) {
  Report report;
  report.ports.push_back(port("mlx5_0"));
  report.remarks = {"skipping mlx5_bond_0:1: left out by NCCL_IB_HCA"};
  const std::string text = table(report);
  for (const char* part :
       {"mlx5_0", "400000 Mbit/s", "10.1.2.3", "MTU 4096", "dma-buf", "0000:41:00.0", "left out by NCCL_IB_HCA"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  const auto json = to_json(report);
  EXPECT_TRUE(json["usable"]);
  EXPECT_EQ(json["devices"][0]["gid"]["index"], 3);
  EXPECT_EQ(json["devices"][0]["gid"]["address"], "10.1.2.3");
  EXPECT_TRUE(json["error"].is_null());
}

TEST(DevicesCommand, GivesTheReasonOfAnUnusablePort) {
  Report report;
  report.ports.push_back(port("mlx5_0"));
  report.ports[0].unusable = Error{"the port is not active", "mlx5_0:1", 0, "look at the link"};
  EXPECT_FALSE(report.any_usable());
  EXPECT_THAT(table(report), HasSubstr("NOT USABLE  mlx5_0:1: the port is not active"));
  EXPECT_EQ(to_json(report)["devices"][0]["reason"], report.ports[0].unusable->text());
}

TEST(DevicesCommand, AMistakeInASettingMakesAllUnusable) {
  Report report;
  report.ports.push_back(port("mlx5_0"));
  report.trouble = Error{"\"mlx9\" matches no RoCE port", "NCCL_IB_HCA", 0, "have: mlx5_0:1"};
  EXPECT_FALSE(report.any_usable());
  EXPECT_THAT(table(report), HasSubstr("error: NCCL_IB_HCA: \"mlx9\" matches no RoCE port; have: mlx5_0:1"));
}

TEST(DevicesCommand, AHostWithoutNicsIsSaidToBeOne) {
  EXPECT_THAT(table({}), HasSubstr("No RoCE port on this host"));
  EXPECT_FALSE(to_json({})["usable"]);
}

}  // namespace
}  // namespace weft::devices_command
