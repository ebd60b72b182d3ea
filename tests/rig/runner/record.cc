#include "tests/rig/runner/record.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/json/strict.h"
#include "common/text/format.h"

namespace weft::rig {
namespace {

constexpr const char* kHint = "rig up SCENARIO --name NAME";

// Field 22 of /proc/PID/stat (proc(5)), in clock ticks since boot; "" where there is no such process. Field 2, the
// command's name, may hold spaces and parentheses.
std::string start_time(int process) {
  std::ifstream file(text::format("/proc/{}/stat", process));
  const std::string line((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return "";
  std::istringstream words(line.substr(name_end + 1));
  std::string word;
  for (int field = 3; field <= 22; field++)
    words >> word;
  return word;
}

Result<std::string> private_folder() {
  const char* base = std::getenv("XDG_RUNTIME_DIR");
  const std::string folder = base && *base ? base : text::format("/tmp/weft-rig-{}", geteuid());
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return system_error("cannot make the folder for standing rigs", errno, folder);
  struct stat found {};
  if (lstat(folder.c_str(), &found) != 0)
    return system_error("cannot look at the folder for standing rigs", errno, folder);
  if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid() || (found.st_mode & 022) != 0) {
    return Error{"others can write here, or it is no folder of this user", folder, EPERM,
                 "remove it, or set XDG_RUNTIME_DIR to a folder of mode 700"};
  }
  return folder;
}

}  // namespace

Result<std::string> record_place(const std::string& name) {
  const bool plain =
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == std::string::npos;
  if (name.empty() || !plain)
    return Error{text::format("\"{}\" is no name for a rig", name), "--name", EINVAL,
                 "allowed: letters, digits, - and _"};
  auto folder = private_folder();
  if (!folder) return folder.take_error();
  return text::format("{}/rig-{}.json", *folder, name);
}

Result<Record> read_record(const std::string& place) {
  if (!std::filesystem::exists(place)) return Error{"no such rig", place, ENOENT, kHint};
  auto document = json::read_file(place);
  if (!document) return document.take_error();
  json::Problems problems;
  json::Fields fields(*document, place, problems);
  Record record;
  record.process = int(fields.integer("process", json::required, {.low = 2, .high = 1 << 30}));
  record.started = fields.text("started", json::required);
  record.scenario = fields.text("scenario", json::required);
  record.overrides = fields.texts("overrides");
  fields.done();
  if (auto error = problems.error()) return *error;
  if (record.started.empty() || start_time(record.process) != record.started) {
    std::filesystem::remove(place);
    return Error{"the rig has ended", place, ENOENT, kHint};
  }
  return record;
}

Result<void> write_record(const std::string& place, Record record) {
  const nlohmann::json document = {{"process", record.process},
                                   {"started", start_time(record.process)},
                                   {"scenario", record.scenario},
                                   {"overrides", record.overrides}};
  std::ofstream file(place);
  file << document;
  file.close();
  if (!file) return system_error("cannot write", errno, place);
  return {};
}

Result<Record> find_record(const std::string& name) {
  auto place = record_place(name);
  if (!place) return place.take_error();
  auto record = read_record(*place);
  if (record || record.error().code != ENOENT) return record;
  return Error{text::format("no rig named \"{}\" is up", name), *place, ENOENT, kHint};
}

Result<void> remove_record(const std::string& name) {
  auto place = record_place(name);
  if (!place) return place.take_error();
  std::filesystem::remove(*place);
  return {};
}

}  // namespace weft::rig
