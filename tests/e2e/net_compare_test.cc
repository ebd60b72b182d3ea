// net_compare, the whole command: both transports carry their messages over the NIC that is none, and what is counted
// is the same in every run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace weft::e2e {
namespace {

struct Ended {
  int code = 0;
  std::string output;
};

Ended net_compare(const std::string& options) {
  FILE* pipe = popen((std::string(NET_COMPARE) + " " + options + " 2>&1").c_str(), "r");
  Ended ended;
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), int(buffer.size()), pipe))
    ended.output += buffer.data();
  ended.code = WEXITSTATUS(pclose(pipe));
  return ended;
}

// The figures stand behind what the measured processes say.
nlohmann::json figures(const Ended& ended) {
  const std::size_t begin = ended.output.find("{\n");
  const auto json = nlohmann::json::parse(ended.output.substr(std::min(begin, ended.output.size())), nullptr, false);
  return json.is_object() ? json.value("figures", nlohmann::json()) : nlohmann::json();
}

TEST(NetCompare, CountsTheSameInEveryRun) {
  const Ended first = net_compare("--messages 2 --connections 3 --ranks 3 --json -");
  if (first.code != 0) {
    // A machine that lets nobody trace: it says so.
    EXPECT_THAT(first.output, testing::HasSubstr("is ptrace(2) allowed here?"));
    return;
  }
  const nlohmann::json once = figures(first),
                       again = figures(net_compare("--messages 2 --connections 3 --ranks 3 --json -"));
  for (const char* key : {"one_piece", "eight_pieces", "extra_piece", "tests_in_vain"}) {
    for (const char* side : {"weft", "ib"}) {
      const double value = once[key][side];
      EXPECT_GT(value, 50) << key << ' ' << side;
      EXPECT_LT(value, 100'000) << key << ' ' << side;
      EXPECT_NEAR(again[key][side], value, 0.05 * value) << key << ' ' << side;
    }
  }
  EXPECT_GT(once["eight_pieces"]["weft"], once["one_piece"]["weft"]);
  // Two peers on four channels, one queue pair at each end until bytes justify more: no more than NCCL's own transport.
  EXPECT_EQ(once["queue_pairs"]["weft"], 16);
  EXPECT_EQ(once["queue_pairs"]["ib"], 16);
}

TEST(NetCompare, WrongUseIsNamed) {
  const Ended wrong = net_compare("--messages 0");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.output, testing::HasSubstr("--messages"));
  EXPECT_EQ(net_compare("--mesages 1").code, 2);
}

}  // namespace
}  // namespace weft::e2e
