#include "tests/rig/emulated_cuda/host/host_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace weft::emulated_cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class HostFileTest : public testing::Test {
 protected:
  Result<HostFile> read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_host_file(path_);
  }
  void TearDown() override { std::remove(path_.c_str()); }

  std::string path_ = testing::TempDir() + "host_file_test." + std::to_string(getpid()) + ".json";
};

TEST_F(HostFileTest, ReadsWhatConcernsGpusAndPassesOverTheRest) {
  auto host = read(R"({"host": "h1", "gpus": [
      {"bus_id": "0000:10:00.0", "compute_capability": "9.0", "gpudirect": true, "dmabuf": true}, {"bus_id": "0001:a0:1f.1"}],
      "nics": [{"name": "mlx5_0"}], "defects": ["wrong_reduction"], "control": "x", "statistics": "y"})");
  ASSERT_TRUE(host) << host.error().text();
  ASSERT_EQ(host->gpus.size(), 2u);
  EXPECT_EQ(host->gpus[0].compute_major, 9);
  EXPECT_TRUE(host->gpus[0].gpudirect);
  EXPECT_TRUE(host->gpus[0].dmabuf);
  EXPECT_EQ(host->gpus[1].address.text(), "0001:a0:1f.1");
  EXPECT_EQ(host->gpus[1].compute_major, 8);
  EXPECT_FALSE(host->gpus[1].gpudirect);
  EXPECT_THAT(host->defects, ElementsAre("wrong_reduction"));
}

TEST_F(HostFileTest, NamesEveryProblemWithItsPlace) {
  auto host = read(R"({"gpus": [{"bus_id": "ten", "gpudirekt": true}, {"compute_capability": "new"}]})");
  ASSERT_FALSE(host);
  const std::string text = host.error().text();
  EXPECT_THAT(text, HasSubstr("\"ten\" is not a PCI address"));
  EXPECT_THAT(text, HasSubstr("gpudirekt"));
  EXPECT_THAT(text, HasSubstr("gpudirect"));
  EXPECT_THAT(text, HasSubstr("gpus[1]"));
  EXPECT_THAT(text, HasSubstr("MAJOR.MINOR"));
}

TEST_F(HostFileTest, AFileThatDoesNotExistIsNamed) {
  auto host = read_host_file("/nowhere/host.json");
  ASSERT_FALSE(host);
  EXPECT_THAT(host.error().text(), HasSubstr("/nowhere/host.json"));
}

TEST(PciAddress, LongAndShortDomainsAreTheSame) {
  EXPECT_EQ(*parse_pci_address("00000000:10:00.0"), *parse_pci_address("0000:10:00.0"));
  for (const char* wrong : {"", "10", "0000:10:00", "0000:10:00.0x", "0000-10-00.0"})
    EXPECT_FALSE(parse_pci_address(wrong));
}

TEST(ThisHost, WithoutAFileThereIsOnePlainGpu) {
  unsetenv("RIG_HOST_FILE");
  ASSERT_EQ(this_host().gpus.size(), 1u);
  EXPECT_EQ(this_host().gpus[0].address.text(), "0000:10:00.0");
  EXPECT_FALSE(has_defect("wrong_reduction"));
}

}  // namespace
}  // namespace weft::emulated_cuda
