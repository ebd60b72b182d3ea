// Host file, control file and statistics.
#include <arpa/inet.h>
#include <endian.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/rig/soft_rnic/device/control_file.h"
#include "tests/rig/soft_rnic/device/host_description.h"
#include "tests/rig/soft_rnic/device/statistics.h"

namespace weft::soft_rnic {
namespace {

using testing::HasSubstr;

nlohmann::json example() {
  return nlohmann::json::parse(R"({
    "host": "h1",
    "gpus": [{"bus_id": "0000:10:00.0", "compute_capability": "8.0", "gpudirect": true, "dmabuf": false}],
    "nics": [{"name": "mlx5_0", "netdev": "rail0", "address": "10.1.1.2", "prefix_length": 24,
              "mac": "02:00:00:00:00:01", "pci": "0000:11:00.0", "guid": "0x0200000000000001", "speed_mbps": 200000,
              "mtu": 4096,
              "gids": [{"gid": "fe80::1", "type": "RoCE v2"}, {"gid": "::ffff:10.1.1.2", "type": "RoCE v2"}],
              "caps": {"max_qp": 100, "max_srq": 0, "max_inline": 256, "ece": true, "modify_udp_sport": false},
              "window_bytes": 131072, "late_gpu_writes": true}],
    "defects": ["never_retransmit", "wrong_reduction"],
    "control": "/run/h1.control.json",
    "statistics": "/run/h1.statistics"})");
}

std::string error_of(const nlohmann::json& document) {
  auto host = parse_host_description(document.dump(), "h1.host.json");
  return host ? "" : host.error().text();
}

TEST(HostFile, EveryFieldArrives) {
  auto host = parse_host_description(example().dump(), "h1.host.json");
  ASSERT_TRUE(host) << host.error().text();
  EXPECT_EQ(host->host, "h1");
  EXPECT_TRUE(host->gpu_direct);
  EXPECT_FALSE(host->gpu_dmabuf);
  EXPECT_TRUE(host->defects.never_retransmit);
  EXPECT_FALSE(host->defects.corrupt_payload);
  EXPECT_EQ(host->control_file, "/run/h1.control.json");
  EXPECT_EQ(host->statistics_folder, "/run/h1.statistics");
  ASSERT_EQ(host->devices.size(), 1U);
  const DeviceDescription& device = host->devices[0];
  EXPECT_EQ(device.name, "mlx5_0");
  EXPECT_EQ(device.netdev, "rail0");
  EXPECT_EQ(device.address, inet_addr("10.1.1.2"));
  EXPECT_EQ(be64toh(device.guid), 0x0200000000000001U);
  EXPECT_EQ(device.speed_mbps, 200000U);
  EXPECT_EQ(device.mtu, IBV_MTU_4096);
  ASSERT_EQ(device.gids.size(), 2U);
  EXPECT_EQ(device.gids[1].gid.raw[10], 0xff);
  EXPECT_EQ(device.gids[1].gid.raw[15], 2);
  EXPECT_EQ(device.capabilities.max_queue_pairs, 100U);
  EXPECT_EQ(device.capabilities.max_shared_receive_queues, 0U);
  EXPECT_EQ(device.capabilities.max_inline, 256U);
  EXPECT_TRUE(device.capabilities.ece);
  EXPECT_FALSE(device.capabilities.modify_udp_sport);
  EXPECT_EQ(device.window_bytes, 131072U);
  EXPECT_TRUE(device.late_gpu_writes);
}

TEST(HostFile, WrongValuesSayWhereAndWhatIsAllowed) {
  auto document = example();
  document["nics"][0]["address"] = "10.1.1";
  EXPECT_THAT(error_of(document), AllOf(HasSubstr("nics[0].address"), HasSubstr("10.1.1"), HasSubstr("IPv4")));
  document = example();
  document["nics"][0]["mtu"] = 1500;
  EXPECT_THAT(error_of(document), AllOf(HasSubstr("nics[0].mtu"), HasSubstr("4096")));
  document = example();
  document["nics"][0]["guid"] = "12";
  EXPECT_THAT(error_of(document), HasSubstr("nics[0].guid"));
  document = example();
  document["nics"][0]["gids"][0]["gid"] = "fe80";
  EXPECT_THAT(error_of(document), HasSubstr("nics[0].gids[0].gid"));
  document = example();
  document["defects"] = {"slow"};
  EXPECT_THAT(error_of(document), HasSubstr("corrupt_payload"));
  document = example();
  document["nics"][0]["windowbytes"] = 1;
  EXPECT_THAT(error_of(document), HasSubstr("window_bytes"));
}

TEST(HostFile, MissingFieldsAreAllNamed) {
  auto document = example();
  document["nics"][0].erase("address");
  document["nics"][0].erase("guid");
  EXPECT_THAT(error_of(document), AllOf(HasSubstr("address"), HasSubstr("guid")));
}

class ControlFileTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/control_file_test.XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    path = folder_ + "/h1.control.json";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void replace(const std::string& text) {
    std::ofstream(path + ".new") << text;
    ASSERT_EQ(std::rename((path + ".new").c_str(), path.c_str()), 0);
  }
  std::string path;

 private:
  std::string folder_;
};

TEST_F(ControlFileTest, AbsentMeansNoFault) {
  ControlFile control(path);
  EXPECT_FALSE(control.refresh());
  EXPECT_EQ(control.faults_of("mlx5_0"), Faults{});
}

TEST_F(ControlFileTest, FollowsEveryReplacement) {
  ControlFile control(path);
  replace(R"({"nics": {"mlx5_0": {"port": "down"}}})");
  EXPECT_TRUE(control.refresh());
  EXPECT_FALSE(control.refresh());
  EXPECT_FALSE(control.faults_of("mlx5_0").port_up);
  EXPECT_TRUE(control.faults_of("mlx5_1").port_up);
  replace(R"({"nics": {"mlx5_0": {"port": "up", "drop_ppm": 20000, "delay_us": 150}}})");
  EXPECT_TRUE(control.refresh());
  EXPECT_EQ(control.faults_of("mlx5_0"), (Faults{true, 20000, 150 * kMicrosecond}));
  std::filesystem::remove(path);
  EXPECT_TRUE(control.refresh());
  EXPECT_EQ(control.faults_of("mlx5_0"), Faults{});
}

TEST_F(ControlFileTest, AWrongFileChangesNothingAndIsReported) {
  ControlFile control(path);
  replace(R"({"nics": {"mlx5_0": {"port": "down"}}})");
  control.refresh();
  replace(R"({"nics": {"mlx5_0": {"port": "sideways"}}})");
  EXPECT_FALSE(control.refresh());
  EXPECT_FALSE(control.faults_of("mlx5_0").port_up);
  EXPECT_THAT(control.last_error(), AllOf(HasSubstr("sideways"), HasSubstr("port")));
}

TEST(Statistics, AddUpPortByPort) {
  NicStatistics sum;
  sum.of(50000, 1) = {10, 2, 1};
  NicStatistics more;
  more.of(50000, 1) = {5, 1, 0};
  more.of(50000, 2) = {7, 1, 0};
  sum.add(more);
  EXPECT_EQ(sum.of(50000, 1).bytes, 15U);
  EXPECT_EQ(sum.of(50000, 1).packets, 3U);
  EXPECT_EQ(sum.of(50000, 1).retransmitted, 1U);
  EXPECT_EQ(sum.of(50000, 2).bytes, 7U);
}

TEST(Statistics, AreWrittenAsDocumented) {
  NicStatistics nic;
  PortStatistics& port = nic.of(49165, inet_addr("10.1.5.2"));
  port.bytes = 1000;
  port.packets = 3;
  port.retransmitted = 1;
  const auto document = nlohmann::json::parse(statistics_json("rank3", 123, {{"mlx5_0", nic}}));
  const auto expected = nlohmann::json::parse(R"({"process": "rank3", "pid": 123, "nics": [{"nic": "mlx5_0",
      "ports": [{"sport": 49165, "peer": "10.1.5.2", "bytes": 1000, "packets": 3, "retransmitted": 1}]}]})");
  EXPECT_EQ(document, expected);
}

}  // namespace
}  // namespace weft::soft_rnic
