#include "common/settings/settings.h"

#include <algorithm>
#include <cstdlib>

#include "common/settings/not_read.h"
#include "common/text/format.h"
#include "common/text/nearest.h"

extern char** environ;

namespace weft::settings {
namespace {

// Variables of the WEFT_ family that the scripts and the rig read, not the plugins.
const std::vector<std::string> kElsewhere = {"WEFT_DEBIAN_MIRROR", "WEFT_NCCL_DEBS", "WEFT_NCCL_CACHE",
                                             "WEFT_REQUIRE_NCCL"};

constexpr const char* kEnvironment = "environment";

using Lookup = std::function<const char*(const char*)>;

const char* of_process(const char* name) {
  return std::getenv(name);
}

// Nothing where the variable is not set. NCCL treats an empty one like that.
std::optional<Given> find_given(const std::string& name, const Lookup& lookup, const std::vector<ConfFile>& files) {
  const char* set = lookup(name.c_str());
  std::optional<Given> given;
  if (set && *set) given = Given{name, set, kEnvironment, {}, {}};
  for (const ConfFile& file : files) {
    const auto line = file.values.find(name);
    if (line == file.values.end() || line->second.empty()) continue;
    // Within NCCL the environment says what the file says, because NCCL has put it there.
    if (!given || given->value == line->second) return Given{name, line->second, file.path, {}, {}};
    return given;
  }
  return given;
}

Loaded& read_rows(Loaded& loaded, const Lookup& lookup, const std::vector<ConfFile>& files) {
  for (const Row& row : table()) {
    auto given = find_given(row.name, lookup, files);
    if (!given) continue;
    auto set = row.set(loaded.settings, given->value);
    given->component = row.component;
    given->in_effect = row.get(loaded.settings);
    loaded.given.push_back(*given);
    if (set) continue;
    Error error = set.take_error();
    error.where = text::format("{}={}", row.name, given->value);
    if (given->source != kEnvironment) error.where += text::format(" in {}", given->source);
    error.hint = text::format("allowed: {}; default {}", row.allowed, row.standard.empty() ? "none" : row.standard);
    loaded.errors.push_back({std::move(error), row.component});
  }
  return loaded;
}

std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, "\\");
  return text;
}

void markdown_rows(std::string& out, bool weft) {
  out += "\n| variable | read by | allowed | default | meaning |\n|---|---|---|---|---|\n";
  for (const Row& row : table()) {
    if (row.is_weft() != weft) continue;
    out += text::format("| `{}`{} | {} | {} | {} | {} |\n", row.name, row.job_wide ? " ●" : "",
                        row.component == Component::net ? "net plugin" : "tuner plugin", cell(row.allowed),
                        row.standard.empty() ? "–" : row.standard, cell(row.text));
  }
}

}  // namespace

std::string Given::text() const {
  return text::format("{}={} ({}){}", name, value, source, in_effect == value ? "" : ": counts as " + in_effect);
}

const Given* Loaded::find(const std::string& name) const {
  const auto found = std::find_if(given.begin(), given.end(), [&](const Given& one) { return one.name == name; });
  return found == given.end() ? nullptr : &*found;
}

Loaded load(const Lookup& lookup, const std::vector<std::string>& environment, const std::vector<ConfFile>& files) {
  Loaded loaded;
  read_rows(loaded, lookup, files);
  loaded.remarks = remarks_about_not_read(environment);
  std::vector<std::string> known;
  for (const Row& row : table())
    known.push_back(row.name);
  for (const std::string& name : environment) {
    if (name.rfind("WEFT_", 0) != 0) continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (std::find(kElsewhere.begin(), kElsewhere.end(), name) != kElsewhere.end()) continue;
    const auto close = text::nearest(name, known);
    loaded.warnings.push_back(text::format("{} is not a setting of Weft and has no effect{}", name,
                                           close ? text::format("; did you mean {}?", *close) : ""));
  }
  return loaded;
}

Loaded load(const std::vector<ConfFile>& files) {
  std::vector<std::string> names;
  for (char** entry = environ; entry && *entry; entry++) {
    const std::string line = *entry;
    names.push_back(line.substr(0, line.find('=')));
  }
  return load(of_process, names, files);
}

Loaded load() {
  return load(read_conf_files(of_process));
}

std::optional<Error> Loaded::error_of(Component component) const {
  for (const Wrong& wrong : errors) {
    if (wrong.component == component) return wrong;
  }
  return std::nullopt;
}

std::uint64_t job_wide_digest(const Settings& settings) {
  // FNV-1a (Fowler, Noll, Vo), 64 bits: the same on every machine.
  std::uint64_t digest = 0xcbf29ce484222325;
  const auto add = [&](const std::string& text) {
    for (const char letter : text)
      digest = (digest ^ std::uint8_t(letter)) * 0x100000001b3;
  };
  for (const Row& row : table()) {
    if (row.job_wide) add(text::format("{}={};", row.name, row.get(settings)));
  }
  return digest;
}

std::string markdown() {
  std::string out =
      "# Settings\n\n"
      "<!-- Written by `weft settings --markdown`; a test compares. Change common/settings/table.cc instead. -->\n\n"
      "Environment variables, or lines of NCCL's files (`$NCCL_CONF_FILE` or `~/.nccl.conf`, then `/etc/nccl.conf`), "
      "read once "
      "when NCCL initialises a plugin; `NCCL_DEBUG=INFO` says for each that is set where it comes from and what it "
      "counts "
      "as. A value that is not allowed makes every "
      "connection fail with a "
      "message that names it; an unknown `WEFT_` variable is a warning with the nearest name. `weft settings` prints "
      "the values in "
      "effect. ●: belongs to the whole job; a host with another value is named in a warning.\n\n## Weft's own\n";
  markdown_rows(out, true);
  out += "\n## NCCL's, with NCCL's meaning\n";
  markdown_rows(out, false);
  out +=
      "\n## NCCL's, not read\n\nSet for NCCL's own transports; in the log (INFO) where one is set.\n\n"
      "| variable | | why |\n|---|---|---|\n";
  for (const NotRead& one : not_read())
    out += text::format("| `{}` | {} | {} |\n", one.name, one.verdict, cell(one.why));
  return out;
}

}  // namespace weft::settings
