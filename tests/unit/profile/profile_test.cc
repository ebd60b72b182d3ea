#include "common/profile/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/profile/sha256.h"

namespace weft::profile {
namespace {

using testing::HasSubstr;

std::string with_rules(const std::string& rules) {
  return R"({"schema": 1, "rules": [)" + rules + "]}";
}

std::string error(const std::string& text) {
  auto profile = parse_profile(text, "p.json");
  return profile.ok() ? "no error" : profile.error().text();
}

// FIPS 180-4 examples, published by NIST.
TEST(Sha256, KnownDigests) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Profile, ReadsTheExampleOfTheDocumentation) {
  auto profile = read_profile(WEFT_SOURCE "/docs/examples/profile.json");
  ASSERT_TRUE(profile.ok()) << profile.error().text();
  EXPECT_GE(profile->rules.size(), 2u);
}

TEST(Profile, NamesEveryMistakeWithItsPlace) {
  EXPECT_THAT(error("{}"), HasSubstr("p.json: the field \"schema\" is missing"));
  EXPECT_THAT(error(R"({"schema": 2})"), HasSubstr("p.json.schema: 2 is out of range"));
  EXPECT_THAT(error(with_rules(R"({"collective": "allreduce", "algorithm": "ring", "protocol": "simple"})")),
              HasSubstr("p.json.rules[0].collective: \"allreduce\" is not known"));
  EXPECT_THAT(error(with_rules(R"({"collective": "all_reduce", "algorithm": "rign", "protocol": "simple"})")),
              HasSubstr("did you mean \"ring\"?"));
  EXPECT_THAT(error(with_rules(R"({"collective": "all_reduce", "algorithm": "ring", "protocol": "ll256"})")),
              HasSubstr("allowed: ll, ll128, simple"));
  EXPECT_THAT(
      error(with_rules(R"({"collective": "all_reduce", "algorithm": "ring", "protocol": "ll", "channels": 128})")),
      HasSubstr("allowed: 0 to 127"));
  EXPECT_THAT(
      error(with_rules(
          R"({"collective": "all_reduce", "algorithm": "ring", "protocol": "ll", "bytes": {"from": 9, "to": 8}})")),
      HasSubstr("from 9 to 8 is empty"));
  EXPECT_THAT(error(with_rules(R"({"collective": "all_reduce", "algorithm": "ring", "protocol": "ll", "size": 1})")),
              HasSubstr("the field \"size\" is not known"));
}

TEST(Profile, RefusesRulesThatOverlap) {
  const std::string low =
      R"({"collective": "all_reduce", "algorithm": "ring", "protocol": "ll", "bytes": {"to": 100}})";
  const std::string high =
      R"({"collective": "all_reduce", "algorithm": "tree", "protocol": "ll", "bytes": {"from": 100}})";
  const std::string higher =
      R"({"collective": "all_reduce", "algorithm": "tree", "protocol": "ll", "bytes": {"from": 101}})";
  EXPECT_THAT(error(with_rules(low + "," + high)), HasSubstr("rules[1]: overlaps with rules[0]"));
  EXPECT_EQ(error(with_rules(low + "," + higher)), "no error");
}

}  // namespace
}  // namespace weft::profile
