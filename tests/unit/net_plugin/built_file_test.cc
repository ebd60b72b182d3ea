// The file that users deploy: what it exports, and what it does on a host without a usable libibverbs.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/nccl_abi/net_v11.h"
#include "common/nccl_abi/net_v8.h"

namespace {

void logger(ncclDebugLogLevel, unsigned long, const char*, int, const char*, ...) {}

class BuiltNetPlugin : public testing::Test {
 protected:
  void SetUp() override {
    // No devices whatever the machine has: the test must not depend on it.
    setenv("WEFT_DISABLE", "1", 1);
    library_ = dlopen(WEFT_NET_FILE, RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library_) << dlerror();
    v8_ = static_cast<const ncclNet_v8_t*>(dlsym(library_, "ncclNetPlugin_v8"));
    v11_ = static_cast<const ncclNet_v11_t*>(dlsym(library_, "ncclNetPlugin_v11"));
    ASSERT_TRUE(v8_ && v11_);
  }
  void TearDown() override { dlclose(library_); }

  static int threads() {
    FILE* status = popen(("grep Threads /proc/" + std::to_string(getpid()) + "/status | tr -dc 0-9").c_str(), "r");
    int count = 0;
    EXPECT_EQ(std::fscanf(status, "%d", &count), 1);
    pclose(status);
    return count;
  }

  void* library_ = nullptr;
  const ncclNet_v8_t* v8_ = nullptr;
  const ncclNet_v11_t* v11_ = nullptr;
};

TEST_F(BuiltNetPlugin, DisabledMeansNoDevicesAndNoError) {
  int count = -1;
  EXPECT_EQ(v8_->init(logger), ncclSuccess);
  EXPECT_EQ(v8_->devices(&count), ncclSuccess);
  EXPECT_EQ(count, 0);
  void* context = nullptr;
  ncclNetCommConfig_v11_t config{-1};
  EXPECT_EQ(v11_->init(&context, 1, &config, logger, nullptr), ncclSuccess);
  EXPECT_EQ(v11_->devices(&count), ncclSuccess);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(v11_->finalize(context), ncclSuccess);
}

TEST_F(BuiltNetPlugin, NullIsHarmlessWhereNcclMayPassIt) {
  EXPECT_EQ(v11_->finalize(nullptr), ncclSuccess);
  EXPECT_EQ(v11_->closeSend(nullptr), ncclSuccess);
  EXPECT_EQ(v11_->closeRecv(nullptr), ncclSuccess);
  EXPECT_EQ(v11_->closeListen(nullptr), ncclSuccess);
}

TEST_F(BuiltNetPlugin, IsNamedWeftInEveryVersion) {
  EXPECT_STREQ(v8_->name, "Weft");
  EXPECT_STREQ(v11_->name, "Weft");
}

TEST_F(BuiltNetPlugin, LeavesNoThread) {
  const int before = threads();
  EXPECT_EQ(v8_->init(logger), ncclSuccess);
  EXPECT_EQ(threads(), before);
}

TEST_F(BuiltNetPlugin, ExportsNcclsSymbolsOnly) {
  FILE* names = popen("nm -D --defined-only " WEFT_NET_FILE, "r");
  std::vector<std::string> exported;
  char line[512];
  while (std::fgets(line, sizeof line, names)) {
    const std::string text(line);
    exported.push_back(text.substr(text.rfind(' ') + 1, text.find('\n') - text.rfind(' ') - 1));
  }
  pclose(names);
  EXPECT_THAT(exported, testing::UnorderedElementsAre("ncclNetPlugin_v6", "ncclNetPlugin_v7", "ncclNetPlugin_v8",
                                                      "ncclNetPlugin_v9", "ncclNetPlugin_v10", "ncclNetPlugin_v11",
                                                      "ncclNetPlugin_v12"));
}

// Only libc, libstdc++ and their like: everything else is looked for at run time.
TEST_F(BuiltNetPlugin, NeedsNoRdmaLibrary) {
  FILE* needed = popen("objdump -p " WEFT_NET_FILE " | grep NEEDED", "r");
  std::string all;
  char line[512];
  while (std::fgets(line, sizeof line, needed))
    all += line;
  pclose(needed);
  EXPECT_THAT(all, testing::HasSubstr("libc.so"));
  for (const char* library : {"ibverbs", "mlx5", "rdmacm", "cuda", "nvidia", "fmt", "archive"})
    EXPECT_THAT(all, testing::Not(testing::HasSubstr(library)));
}

}  // namespace
