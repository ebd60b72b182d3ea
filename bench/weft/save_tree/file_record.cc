#include "bench/weft/save_tree/file_record.h"

#include <cerrno>
#include <fstream>

#include "common/text/format.h"

namespace weft::save_tree {
namespace {

namespace fs = std::filesystem;

// Stands for whatever a folder holds whose names were not asked for.
constexpr const char* kSomething = "something";

fs::path substituted(const fs::path& path, Substitutes& substitutes) {
  fs::path out;
  for (const fs::path& part : path)
    out /= substitutes.text(part.string());
  return out;
}

}  // namespace

FileRecord::FileRecord(const std::string& root) {
  std::error_code problem;
  root_ = fs::canonical(root, problem);
}

void FileRecord::add(const devices::Found& found) {
  const fs::path place = resolve(found.path);
  if (place.empty()) return;
  if (found.kind == devices::Found::Kind::line) {
    entries_[place] = {Entry::Kind::file, found.line + "\n"};
    return;
  }
  add_present(place);
  if (found.kind == devices::Found::Kind::filled_folder) entries_[place / kSomething] = {Entry::Kind::file, {}};
}

// Where a path below the root leads; links on the way are recorded. Empty where nothing is there.
fs::path FileRecord::resolve(const fs::path& path) {
  fs::path place;
  std::error_code problem;
  for (const fs::path& part : path) {
    place /= part;
    if (!fs::is_symlink(root_ / place, problem)) continue;
    const fs::path real = fs::canonical(root_ / place, problem);
    if (problem) return {};
    const fs::path target = real.lexically_relative(root_);
    if (target.empty() || *target.begin() == "..") {
      leading_out_[place] = real;
      return {};
    }
    entries_[place] = {Entry::Kind::link, target.string()};
    add_present(target);
    place = target;
  }
  return place;
}

void FileRecord::add_present(const fs::path& place) {
  std::error_code problem;
  const bool folder = fs::is_directory(root_ / place, problem);
  entries_.try_emplace(place, Entry{folder ? Entry::Kind::folder : Entry::Kind::file, {}});
}

Result<Entries> FileRecord::entries(const std::string& below, Substitutes& substitutes) const {
  if (!leading_out_.empty()) {
    const auto& [link, target] = *leading_out_.begin();
    return Error{text::format("leads out of the tree, to {}", target.string()), (root_ / link).string(), 0,
                 "copy what it leads to into the tree"};
  }
  Entries out = {{below, {}}};
  for (const auto& [path, entry] : entries_) {
    const fs::path place = below / substituted(path, substitutes);
    Entry made = entry;
    if (entry.kind == Entry::Kind::link) {
      made.content = (below / substituted(entry.content, substitutes)).lexically_relative(place.parent_path()).string();
    }
    for (fs::path parent = place.parent_path(); !parent.empty(); parent = parent.parent_path())
      out.try_emplace(parent.string());
    out[place.string()] = made;
  }
  return out;
}

Result<void> lay_out(const Entries& entries, const fs::path& folder) {
  for (const auto& [path, entry] : entries) {
    std::error_code problem;
    if (entry.kind == Entry::Kind::folder) {
      fs::create_directories(folder / path, problem);
    } else if (entry.kind == Entry::Kind::link) {
      fs::create_symlink(entry.content, folder / path, problem);
    } else {
      std::ofstream file(folder / path);
      file << entry.content;
      file.close();
      if (!file) problem.assign(errno, std::generic_category());
    }
    if (problem) return system_error("cannot make", problem.value(), (folder / path).string());
  }
  return {};
}

}  // namespace weft::save_tree
