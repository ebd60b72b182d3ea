#include "bench/weft/devices/record.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "bench/weft/devices/devices_command.h"
#include "bench/weft/process/child.h"
#include "bench/weft/save_tree/recording_verbs.h"
#include "bench/weft/save_tree/saved_files.h"
#include "common/text/format.h"

namespace weft::devices_command {
namespace {

// Where a value came from is not recorded, so an error about it must not name the file.
std::string without_sources(std::string text, const settings::Loaded& loaded) {
  for (const settings::Given& given : loaded.given) {
    const std::string place = " in " + given.source;
    const std::size_t at = text.find(place);
    if (at != std::string::npos) text.erase(at, place.size());
  }
  return text;
}

std::string choice(Report report, const settings::Loaded& loaded) {
  if (report.trouble) report.trouble->where = without_sources(report.trouble->where, loaded);
  return to_json(report).dump(1);
}

Result<std::string> choice_from(const save_tree::Entries& tree) {
  const auto folder = process::TemporaryFolder::create();
  if (!folder) return folder.error();
  const std::string& root = folder->path();
  if (auto laid = save_tree::lay_out(tree, root); !laid) return laid.take_error();
  auto verbs = save_tree::recorded_verbs(root);
  if (!verbs) return verbs.take_error();
  const auto nothing = [](const char*) -> const char* { return nullptr; };
  settings::Loaded loaded = settings::load(nothing, {}, save_tree::recorded_settings(root));
  const Report report = look({loaded, verbs.take(), root + "/sys"});
  return choice(report, loaded);
}

// The first line of `there` that is another one in `here`.
std::string first_difference(const std::string& here, const std::string& there) {
  const auto [left, right] = std::mismatch(here.begin(), here.end(), there.begin(), there.end());
  const auto line = [](const std::string& text, std::size_t at) {
    const std::size_t start = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
    return text.substr(start, text.find('\n', at) - start);
  };
  return text::format("here {}, from the tree {}", line(here, std::size_t(left - here.begin())),
                      line(there, std::size_t(right - there.begin())));
}

}  // namespace

Result<Recorded> record(Host host, save_tree::Substitutes& substitutes) {
  const settings::Loaded loaded = host.loaded;
  const std::string sysfs = host.sysfs;
  save_tree::VerbsAnswers answers;
  if (host.verbs)
    host.verbs = std::unique_ptr<verbs::Verbs>(std::make_unique<save_tree::RecordingVerbs>(host.verbs.take(), answers));
  else
    answers.load_error = host.verbs.error();
  save_tree::FileRecord files(sysfs);
  Recorded recorded;
  recorded.report = look(std::move(host), [&files](const devices::Found& found) { files.add(found); });
  auto tree = files.entries("sys", substitutes);
  if (!tree) return tree.take_error();
  recorded.tree = tree.take();
  save_tree::add_saved_files(recorded.tree, answers, loaded, substitutes);
  auto again = choice_from(recorded.tree);
  if (!again) return again.take_error();
  const std::string here = substitutes.text(choice(recorded.report, loaded));
  if (here == *again) return recorded;
  return Error{"the tree would not give this host's choice", {}, 0, first_difference(here, *again)};
}

save_tree::Substitutes::Words names_of_this_host() {
  save_tree::Substitutes::Words words;
  char name[HOST_NAME_MAX + 1] = "";
  gethostname(name, sizeof name - 1);
  const std::string host = name;
  if (host != "localhost") words = {{host, "host"}, {host.substr(0, host.find('.')), "host"}};
  const char* home = getenv("HOME");
  if (home && home != std::string("/") && home != std::string("/root")) words.emplace_back(home, "/home/user");
  return words;
}

}  // namespace weft::devices_command
