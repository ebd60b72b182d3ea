#include "bench/weft/figures/calibration.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/weft/process/child.h"
#include "common/text/format.h"

namespace weft::figures {
namespace {

constexpr int kCeilingMtu = 4096;

// The rig's programs lie in rig/bin of the folder that has the rig command in bin.
Result<std::string> tool(const std::string& rig, const std::string& name) {
  const auto path = std::filesystem::path(rig).parent_path().parent_path() / "rig/bin" / name;
  if (access(path.c_str(), X_OK) != 0) {
    return system_error("is not built", errno, path.string(), "cmake --build build --target " + name);
  }
  return path.string();
}

// The last line of `output` that is not empty.
std::string last_line(const std::string& output) {
  std::istringstream lines(output);
  std::string line, last;
  while (std::getline(lines, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

Result<process::Ended> run_well(const std::vector<std::string>& words, const std::string& what) {
  auto ended = process::run(words);
  if (!ended || ended->code == 0) return ended;
  return Error{
      text::format("{} ended with exit status {}: {}", what, ended->code, last_line(ended->output)), words[0], 0, {}};
}

// A rig that stands as long as the object.
class Standing {
 public:
  Standing(std::string rig, std::string name) : rig_(std::move(rig)), name_(std::move(name)) {}
  Standing(const Standing&) = delete;
  Standing& operator=(const Standing&) = delete;
  ~Standing() {
    if (up_) (void)process::run({rig_, "down", "--name", name_});
  }

  Result<void> up(const std::string& scenario) {
    auto done = run_well({rig_, "up", scenario, "--name", name_}, "rig up");
    if (!done) return done.take_error();
    up_ = true;
    return {};
  }

  std::vector<std::string> on(const std::string& host, const std::vector<std::string>& command) const {
    std::vector<std::string> words = {rig_, "exec", "--name", name_, host, "--"};
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }

 private:
  std::string rig_;
  std::string name_;
  bool up_ = false;
};

}  // namespace

Result<Gate> calibration_gate(const std::string& rig, const std::string& scenario, const std::string& near_host,
                              const std::string& far_host) {
  auto gate = tool(rig, "soft_rnic_gate");
  if (!gate) return gate.take_error();
  auto folder = process::TemporaryFolder::create();
  if (!folder) return folder.take_error();
  Standing standing(rig, text::format("figures-{}", getpid()));
  if (auto done = standing.up(scenario); !done) return done.take_error();
  auto server = process::Background::start(standing.on(far_host, {*gate, "server", "--exchange", folder->path()}));
  if (!server) return server.take_error();
  // The threshold is the caller's: here the ratio is only measured.
  auto client = run_well(standing.on(near_host, {*gate, "client", "--exchange", folder->path(), "--threshold", "0"}),
                         "the calibration gate");
  if (!client) return client.take_error();
  server->wait();
  return parse_gate(client->output);
}

Result<Gate> parse_gate(const std::string& output) {
  const auto json = nlohmann::json::parse(last_line(output), nullptr, false);
  if (!json.is_object() || !json.contains("ratio"))
    return Error{"the calibration gate gave no result: " + last_line(output), {}, 0, {}};
  return Gate{json.value("one_mbps", 0.0), json.value("eight_mbps", 0.0), json.value("ratio", 0.0)};
}

Result<Ceiling> ceiling(const std::string& rig) {
  auto program = tool(rig, "soft_rnic_ceiling");
  if (!program) return program.take_error();
  auto ended = run_well({*program, "--mtu", std::to_string(kCeilingMtu)}, "the ceiling's measurement");
  if (!ended) return ended.take_error();
  return parse_ceiling(ended->output);
}

Result<Ceiling> parse_ceiling(const std::string& output) {
  std::istringstream words(last_line(output));
  int mtu = 0;
  Ceiling out;
  if (words >> mtu >> out.gigabytes_per_second >> out.one_way_us && mtu == kCeilingMtu) return out;
  return Error{"the ceiling's measurement gave no result: " + last_line(output), {}, 0, {}};
}

}  // namespace weft::figures
