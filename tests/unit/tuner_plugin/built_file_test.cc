// The file that users deploy, driven as NCCL drives it.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/nccl_abi/tuner.h"

namespace {

std::string last_line;

void logger(ncclDebugLogLevel, unsigned long, const char*, int, const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  last_line = text;
}

class BuiltFile : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(WEFT_TUNER_FILE, RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library_) << dlerror();
    v3_ = static_cast<const ncclTuner_v3_t*>(dlsym(library_, "ncclTunerPlugin_v3"));
    v5_ = static_cast<const ncclTuner_v5_t*>(dlsym(library_, "ncclTunerPlugin_v5"));
    ASSERT_TRUE(v3_ && v5_);
    unsetenv("WEFT_PROFILE");
    unsetenv("WEFT_PROFILE_SHA256");
  }
  void TearDown() override { dlclose(library_); }

  // Cell (ring, protocol) of a fresh 7 x 3 table after the call.
  std::vector<float> ask_v5(void* context, std::size_t bytes, int* channels) {
    std::vector<float> table(21, 5.0f);
    EXPECT_EQ(v5_->getCollInfo(context, ncclFuncAllReduce, bytes, 1, reinterpret_cast<float**>(table.data()), 7, 3, 0,
                               channels),
              ncclSuccess);
    return table;
  }

  void* library_ = nullptr;
  const ncclTuner_v3_t* v3_ = nullptr;
  const ncclTuner_v5_t* v5_ = nullptr;
};

TEST_F(BuiltFile, WithoutAProfileLeavesNcclAlone) {
  void* context = nullptr;
  ASSERT_EQ(v5_->init(&context, 1, 4, 2, logger, nullptr, nullptr), ncclSuccess);
  int channels = 0;
  EXPECT_EQ(ask_v5(context, 1 << 20, &channels), std::vector<float>(21, 5.0f));
  EXPECT_EQ(channels, 0);
  EXPECT_EQ(v5_->finalize(context), ncclSuccess);
}

TEST_F(BuiltFile, AppliesTheExampleProfileInBothVersions) {
  setenv("WEFT_PROFILE", WEFT_SOURCE "/docs/examples/profile.json", 1);
  void* context = nullptr;
  ASSERT_EQ(v5_->init(&context, 1, 2, 2, logger, nullptr, nullptr), ncclSuccess) << last_line;
  int channels = 0;
  EXPECT_EQ(ask_v5(context, 1000, &channels)[1 * 3 + 0], 0.0f);
  EXPECT_EQ(channels, 1);
  channels = 0;
  EXPECT_EQ(ask_v5(context, 1 << 20, &channels)[1 * 3 + 2], 0.0f);
  EXPECT_EQ(channels, 0);
  EXPECT_EQ(v5_->finalize(context), ncclSuccess);

  ASSERT_EQ(v3_->init(2, 2, logger, &context), ncclSuccess);
  std::vector<float> table(18, 5.0f);
  EXPECT_EQ(
      v3_->getCollInfo(context, ncclFuncAllReduce, 1000, 1, reinterpret_cast<float**>(table.data()), 6, 3, &channels),
      ncclSuccess);
  EXPECT_EQ(table[3], 0.0f);
  EXPECT_EQ(v3_->destroy(context), ncclSuccess);
}

TEST_F(BuiltFile, AMissingProfileFailsInit) {
  setenv("WEFT_PROFILE", "/nonexistent/profile.json", 1);
  void* context = nullptr;
  EXPECT_EQ(v5_->init(&context, 1, 2, 2, logger, nullptr, nullptr), ncclInvalidUsage);
  EXPECT_THAT(last_line, testing::HasSubstr("/nonexistent/profile.json: cannot open"));
}

TEST_F(BuiltFile, AnotherDigestFailsInit) {
  setenv("WEFT_PROFILE", WEFT_SOURCE "/docs/examples/profile.json", 1);
  setenv("WEFT_PROFILE_SHA256", std::string(64, '0').c_str(), 1);
  void* context = nullptr;
  EXPECT_EQ(v5_->init(&context, 1, 2, 2, logger, nullptr, nullptr), ncclInvalidUsage);
  EXPECT_THAT(last_line, testing::HasSubstr("WEFT_PROFILE_SHA256 says 0000"));
}

TEST_F(BuiltFile, ExportsNcclsSymbolsOnly) {
  FILE* names = popen("nm -D --defined-only " WEFT_TUNER_FILE, "r");
  std::vector<std::string> exported;
  char line[512];
  while (std::fgets(line, sizeof line, names)) {
    const std::string text(line);
    exported.push_back(text.substr(text.rfind(' ') + 1, text.find('\n') - text.rfind(' ') - 1));
  }
  pclose(names);
  EXPECT_THAT(exported, testing::UnorderedElementsAre("ncclTunerPlugin_v3", "ncclTunerPlugin_v5"));
}

}  // namespace
