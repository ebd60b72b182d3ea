#include "tests/rig/soft_rnic/device/control_file.h"

#include <sys/stat.h>

#include "common/json/strict.h"

namespace weft::soft_rnic {
namespace {

constexpr std::int64_t kMaxDelayUs = 10'000'000;

Result<FaultsByNic> read(const nlohmann::json& document, const std::string& name) {
  json::Problems problems;
  json::Fields file(document, name, problems);
  FaultsByNic faults;
  if (auto nics = file.object("nics")) {
    for (const std::string& nic : nics->keys()) {
      auto fields = nics->object(nic);
      if (!fields) continue;
      Faults& entry = faults[nic];
      entry.port_up = fields->word("port", "up", {"up", "down"}) == "up";
      entry.drop_per_million = static_cast<std::uint32_t>(fields->integer("drop_ppm", 0, {0, 1'000'000}));
      entry.delay = fields->integer("delay_us", 0, {0, kMaxDelayUs, "us"}) * kMicrosecond;
      fields->done();
    }
    nics->done();
  }
  file.done();
  if (auto error = problems.error()) return *error;
  return faults;
}

}  // namespace

Result<FaultsByNic> parse_control_file(std::string_view text, const std::string& name) {
  auto document = json::parse(text, name);
  if (!document) return document.take_error();
  return read(*document, name);
}

bool ControlFile::refresh() {
  Identity identity;
  struct stat status {};
  if (!path_.empty() && stat(path_.c_str(), &status) == 0) {
    identity = {status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_size};
  }
  if (identity == identity_) return false;
  identity_ = identity;
  if (identity == Identity{}) {
    faults_.clear();
    return true;
  }
  auto document = json::read_file(path_);
  auto faults = document ? read(*document, path_) : Result<FaultsByNic>(document.take_error());
  if (!faults) {
    last_error_ = faults.error().text();
    return false;
  }
  last_error_.clear();
  faults_ = faults.take();
  return true;
}

Faults ControlFile::faults_of(const std::string& nic) const {
  const auto found = faults_.find(nic);
  return found == faults_.end() ? Faults{} : found->second;
}

}  // namespace weft::soft_rnic
