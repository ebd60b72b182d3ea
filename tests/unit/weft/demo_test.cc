#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/weft/demo/demo_command.h"
#include "bench/weft/demo/page.h"
#include "bench/weft/figures/foundation.h"

namespace weft::demo {
namespace {

using testing::HasSubstr;
using testing::Not;

// Answers as rig does; the IB transport gets less on odd seeds.
nlohmann::json answer(const std::vector<std::string>& settings) {
  const bool weft = settings[0] == "net=weft";
  const double share = weft ? 0.9 : settings[1].back() % 2 ? 0.25 : 0.45;
  const auto iterations = [](double median) { return nlohmann::json{median * 0.99, median, median * 1.01}; };
  return {{"verdict", "pass"},
          {"reason", ""},
          {"operations",
           {{{"op", "all_reduce"},
             {"bytes", 1 << 24},
             {"busbw_mbps", {{"median", share * 400}}},
             {"share", {{"median", share}}},
             {"iterations", {{"busbw_mbps", iterations(share * 400)}, {"share", iterations(share)}}}}}},
          {"fabric", {{"spines", {{{"name", "s1"}, {"bytes", 1e6}}, {{"name", "s2"}, {"bytes", weft ? 1e6 : 3e6}}}}}}};
}

TEST(Demo, RunsBothSidesForEverySeedAndChangesTheirOrder) {
  std::vector<std::string> order;
  const auto run = [&](const std::string&, const std::vector<std::string>& settings) -> Result<nlohmann::json> {
    order.push_back(settings[0] + " " + settings[1]);
    return answer(settings);
  };
  const auto comparison = compare({"1:1", "x.json", ""}, {1, 2}, run, [](const std::string&) {});
  ASSERT_TRUE(comparison.ok());
  EXPECT_THAT(order, testing::ElementsAre("net=ib fabric.hash_seed=1", "net=weft fabric.hash_seed=1",
                                          "net=weft fabric.hash_seed=2", "net=ib fabric.hash_seed=2"));
  EXPECT_EQ(comparison->weft.size(), 2u);
  EXPECT_DOUBLE_EQ(comparison->ib[0].share, 0.25);
  EXPECT_DOUBLE_EQ(comparison->ib[0].least_used_spine(), 0.5);
  const auto json = to_json({*comparison}, {1, 2});
  EXPECT_DOUBLE_EQ(json["comparisons"][0]["weft"]["share"]["median"], 0.9);
  EXPECT_DOUBLE_EQ(json["comparisons"][0]["ratio"]["median"], (0.9 / 0.25 + 0.9 / 0.45) / 2);
  EXPECT_THAT(table({*comparison}), HasSubstr("on the emulated fabric"));
}

TEST(Demo, AFailedRunEndsItWithTheReason) {
  const auto run = [](const std::string&, const std::vector<std::string>&) -> Result<nlohmann::json> {
    return nlohmann::json{{"verdict", "fail"}, {"reason", "rank 1 is lost"}};
  };
  const auto comparison = compare({"1:1", "x.json", ""}, {1}, run, [](const std::string&) {});
  ASSERT_FALSE(comparison.ok());
  EXPECT_THAT(comparison.error().text(), HasSubstr("rank 1 is lost"));
}

TEST(Demo, AResultWithoutAFieldIsAnErrorThatNamesIt) {
  const auto run = [](const std::string&, const std::vector<std::string>& settings) -> Result<nlohmann::json> {
    nlohmann::json json = answer(settings);
    json["operations"][0].erase("iterations");
    return json;
  };
  const auto comparison = compare({"1:1", "x.json", ""}, {1}, run, [](const std::string&) {});
  ASSERT_FALSE(comparison.ok());
  EXPECT_THAT(comparison.error().text(), HasSubstr("iterations"));
}

TEST(Demo, ThePageStandsAlone) {
  const auto run = [](const std::string&, const std::vector<std::string>& settings) -> Result<nlohmann::json> {
    return answer(settings);
  };
  const auto comparison = compare({"1:1 <&>", "x.json", ""}, {1, 2, 3}, run, [](const std::string&) {});
  const std::string html = page({*comparison}, {1, 2, 3});
  EXPECT_THAT(html, Not(HasSubstr("http")));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, HasSubstr("1:1 &lt;&amp;&gt;"));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
}

TEST(Seeds, AreReadStrictly) {
  EXPECT_EQ(*parse_seeds("7,8"), (std::vector<std::uint64_t>{7, 8}));
  for (const char* wrong : {"", "0", "1,", "1,1", "x", "1;2", "4294967296"})
    EXPECT_FALSE(parse_seeds(wrong).ok()) << wrong;
}

TEST(Figures, ARatioPassesByItsBoundAndOnlyWhenResolved) {
  EXPECT_EQ(figures::at_least("x", 2.0, statistics::Estimate{2.5, 2.45, 2.55}).verdict, "pass");
  EXPECT_EQ(figures::at_least("x", 2.46, statistics::Estimate{2.5, 2.45, 2.55}).verdict, "falls short");
  EXPECT_EQ(figures::at_least("x", 2.0, statistics::Estimate{2.5, 2.1, 2.9}).verdict, "not resolved");
  EXPECT_FALSE(figures::at_least("x", 2.0, statistics::Estimate{2.5, 2.1, 2.9}).passes());
  EXPECT_TRUE(figures::printed("x", 0.1).passes());
  EXPECT_FALSE(figures::at_least("x", 0.95, 0.94).passes());
}

}  // namespace
}  // namespace weft::demo
