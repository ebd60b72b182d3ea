// What getCollInfo costs the application's thread, for every collective it starts: the built tuner file, called as NCCL
// calls it. Each iteration includes writing a fresh 7 x 3 cost table, as NCCL does before the call; "FreshTable" is
// that part alone.
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/nccl_abi/tuner.h"
#include "common/text/format.h"

namespace {

constexpr int kAlgorithms = 7;
constexpr int kProtocols = 3;
constexpr std::size_t kRanks = 16;
constexpr std::size_t kNodes = 2;
// Sizes of the generated rules: rule i covers the bytes i * kStep to (i + 1) * kStep - 1.
constexpr std::size_t kStep = 4096;

using CostTable = std::array<float, kAlgorithms * kProtocols>;

CostTable offered_by_nccl() {
  CostTable table;
  table.fill(5.0f);
  return table;
}

// A profile of that many adjacent rules in a temporary file; gone with the object.
class ProfileFile {
 public:
  explicit ProfileFile(std::size_t rules)
      : path_(std::filesystem::temp_directory_path() / weft::text::format("weft-tuner-benchmark-{}.json", getpid())) {
    std::ofstream file(path_);
    file << R"({"schema": 1, "rules": [)";
    for (std::size_t i = 0; i < rules; i++) {
      file << weft::text::format(
          R"({}{{"collective": "all_reduce", "bytes": {{"from": {}, "to": {}}}, "algorithm": "ring", "protocol": "simple"}})",
          i == 0 ? "" : ",", i * kStep, (i + 1) * kStep - 1);
    }
    file << "]}";
  }
  ~ProfileFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  ProfileFile(const ProfileFile&) = delete;
  ProfileFile& operator=(const ProfileFile&) = delete;

  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// The plugin file with one communicator on it.
class Tuner {
 public:
  // `profile`: a path; empty for none.
  explicit Tuner(const std::string& profile) {
    unsetenv("WEFT_PROFILE_SHA256");
    if (profile.empty()) {
      unsetenv("WEFT_PROFILE");
    } else {
      setenv("WEFT_PROFILE", profile.c_str(), 1);
    }
    library_ = dlopen(WEFT_TUNER_FILE, RTLD_NOW | RTLD_LOCAL);
    if (!library_) return;
    interface_ = static_cast<const ncclTuner_v5_t*>(dlsym(library_, "ncclTunerPlugin_v5"));
    ready_ =
        interface_ && interface_->init(&communicator_, 1, kRanks, kNodes, nullptr, nullptr, nullptr) == ncclSuccess;
  }
  ~Tuner() {
    if (ready_) interface_->finalize(communicator_);
    if (library_) dlclose(library_);
  }
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;

  bool ready() const { return ready_; }
  void choose(std::size_t bytes, CostTable& table, int& channels) const {
    interface_->getCollInfo(communicator_, ncclFuncAllReduce, bytes, 1, reinterpret_cast<float**>(table.data()),
                            kAlgorithms, kProtocols, 0, &channels);
  }

 private:
  void* library_ = nullptr;
  const ncclTuner_v5_t* interface_ = nullptr;
  void* communicator_ = nullptr;
  bool ready_ = false;
};

// `applies`: whether the plugin must decide, so that a benchmark never measures another case than its name says.
void measure(benchmark::State& state, const std::string& profile, std::size_t bytes, bool applies) {
  const Tuner tuner(profile);
  if (!tuner.ready()) {
    state.SkipWithError("the tuner plugin cannot be loaded or refuses the profile");
    return;
  }
  const CostTable offered = offered_by_nccl();
  CostTable table = offered;
  int channels = 0;
  tuner.choose(bytes, table, channels);
  if ((table != offered) != applies) {
    state.SkipWithError("the tuner plugin decided otherwise than this benchmark expects");
    return;
  }
  for (auto _ : state) {
    table = offered;
    benchmark::DoNotOptimize(table.data());
    tuner.choose(bytes, table, channels);
    benchmark::ClobberMemory();
  }
}

void FreshTable(benchmark::State& state) {
  const CostTable offered = offered_by_nccl();
  CostTable table = offered;
  for (auto _ : state) {
    table = offered;
    benchmark::DoNotOptimize(table.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(FreshTable);

void NoProfile(benchmark::State& state) {
  measure(state, {}, 1 << 20, false);
}
BENCHMARK(NoProfile);

// The argument is the number of rules in the profile.
void RuleApplies(benchmark::State& state) {
  const auto rules = std::size_t(state.range(0));
  const ProfileFile profile(rules);
  measure(state, profile.path(), (rules - 1) * kStep, true);
}
BENCHMARK(RuleApplies)->Arg(1)->Arg(30)->Arg(1000);

void NoRuleApplies(benchmark::State& state) {
  const auto rules = std::size_t(state.range(0));
  const ProfileFile profile(rules);
  measure(state, profile.path(), rules * kStep, false);
}
BENCHMARK(NoRuleApplies)->Arg(1)->Arg(30)->Arg(1000);

}  // namespace
