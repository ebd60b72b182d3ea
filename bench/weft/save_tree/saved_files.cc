#include "bench/weft/save_tree/saved_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "bench/weft/save_tree/recorded_verbs.h"

namespace weft::save_tree {
namespace {

constexpr const char* kFolder = "weft";
constexpr const char* kVerbs = "weft/verbs.json";
constexpr const char* kSettings = "weft/settings.conf";
// A path on that host, which says nothing elsewhere.
constexpr const char* kTreeSetting = "WEFT_SYSFS_ROOT";

std::string settings_text(const settings::Loaded& loaded, Substitutes& substitutes) {
  std::string out = "# Settings of the net plugin that were set on the host; the form is that of NCCL_CONF_FILE.\n";
  for (const settings::Given& given : loaded.given) {
    if (given.component != settings::Component::net || given.name == kTreeSetting) continue;
    std::string value = substitutes.text(given.value);
    std::replace(value.begin(), value.end(), '\n', ' ');
    out += given.name + "=" + value + "\n";
  }
  return out;
}

}  // namespace

void add_saved_files(Entries& entries, const VerbsAnswers& answers, const settings::Loaded& loaded,
                     Substitutes& substitutes) {
  entries[kFolder] = {};
  entries[kVerbs] = {Entry::Kind::file, to_text(substituted(answers, substitutes))};
  entries[kSettings] = {Entry::Kind::file, settings_text(loaded, substitutes)};
}

bool is_saved_tree(const std::string& root) {
  std::error_code problem;
  return std::filesystem::exists(std::filesystem::path(root) / kVerbs, problem);
}

Result<Result<std::unique_ptr<verbs::Verbs>>> recorded_verbs(const std::string& root) {
  using Verbs = Result<std::unique_ptr<verbs::Verbs>>;
  auto answers = read_verbs_answers((std::filesystem::path(root) / kVerbs).string());
  if (!answers) return answers.take_error();
  if (answers->load_error) return Verbs(*answers->load_error);
  return Verbs(std::make_unique<RecordedVerbs>(answers.take()));
}

std::vector<settings::ConfFile> recorded_settings(const std::string& root) {
  const std::string path = (std::filesystem::path(root) / kSettings).string();
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return {{path, settings::parse_conf(text.str())}};
}

}  // namespace weft::save_tree
