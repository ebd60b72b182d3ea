#include "net_plugin/devices/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net_plugin/devices/discovery.h"

namespace weft::devices {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<PortName> kPorts = {{"mlx5_0", 1}, {"mlx5_1", 1}, {"mlx5_10", 1}, {"mlx5_11", 2}};

std::vector<std::string> taken(const std::string& text) {
  auto selection = parse_selection(text);
  std::vector<std::string> out;
  for (const PortName& port : kPorts) {
    if (selection.ok() && selection->takes(port.device, port.port)) out.push_back(port.device);
  }
  return out;
}

TEST(Selection, F15PrefixesAndWholeNames) {
  EXPECT_THAT(taken("mlx5_1"), ElementsAre("mlx5_1", "mlx5_10", "mlx5_11"));
  EXPECT_THAT(taken("=mlx5_1"), ElementsAre("mlx5_1"));
  EXPECT_THAT(taken("^mlx5_1"), ElementsAre("mlx5_0"));
  EXPECT_THAT(taken("^=mlx5_1"), ElementsAre("mlx5_0", "mlx5_10", "mlx5_11"));
  EXPECT_THAT(taken("mlx5_11:2,mlx5_0"), ElementsAre("mlx5_0", "mlx5_11"));
  EXPECT_THAT(taken("mlx5_11:1"), ElementsAre());
  EXPECT_EQ(taken("").size(), kPorts.size());
}

TEST(Selection, F15APrefixThatSurprisesIsAnnounced) {
  EXPECT_THAT(surprises(*parse_selection("mlx5_1"), kPorts), ElementsAre(HasSubstr("write \"=mlx5_1\"")));
  EXPECT_TRUE(surprises(*parse_selection("mlx5_"), kPorts).empty()) << "a prefix on purpose";
  EXPECT_TRUE(surprises(*parse_selection("=mlx5_1"), kPorts).empty());
}

TEST(Selection, F16ModifiersStandOnceAtTheStart) {
  for (const char* wrong : {"^=mlx5_8,^=mlx5_14", "=mlx5_0,=mlx5_1", "mlx5_0,^mlx5_1", "=^mlx5_0"}) {
    auto selection = parse_selection(wrong);
    ASSERT_FALSE(selection.ok()) << wrong;
    EXPECT_THAT(selection.error().text(), HasSubstr("allowed only at the start"));
  }
  for (const char* wrong : {"mlx5_0:", "mlx5_0:x", "mlx5_0:0", "mlx5_0:256", ",", "mlx5_0,,mlx5_1", "^"})
    EXPECT_FALSE(parse_selection(wrong).ok()) << wrong;
}

TEST(Selection, ATokenThatMatchesNothingIsAMistake) {
  EXPECT_THAT(unmatched(*parse_selection("mlx4_0"), kPorts)->text(),
              HasSubstr("\"mlx4_0\" matches no RoCE port; have: mlx5_0:1"));
  EXPECT_FALSE(unmatched(*parse_selection("^mlx4_0"), kPorts));
}

TEST(Speed, LanesTimesLaneSpeed) {
  EXPECT_EQ(speed_mbps(4, 1), 10'000);
  EXPECT_EQ(speed_mbps(32, 2), 100'000);
  EXPECT_EQ(speed_mbps(128, 2), 400'000);
  EXPECT_EQ(speed_mbps(3, 2), 0);
}

TEST(Speed, F65_WideAndNewEncodings) {
  EXPECT_EQ(speed_mbps(32, 2), 100'000);
  EXPECT_EQ(speed_mbps(64, 2), 200'000);
  EXPECT_EQ(speed_mbps(128, 2), 400'000);
  EXPECT_EQ(speed_mbps(256, 2), 800'000);
  EXPECT_EQ(speed_mbps(256, 16), 400'000);  // two lanes
  EXPECT_EQ(speed_mbps(128, 16), 200'000);
  EXPECT_EQ(speed_mbps(512, 2), 0);
  EXPECT_EQ(speed_mbps(256, 3), 0);
}

}  // namespace
}  // namespace weft::devices
