// The files of a host below one folder: everything that the search for devices reads it reads through this class, so
// that a record of what it found (`weft devices --save-tree`) can't leave anything out.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace weft::devices {

// Something that was asked for and is there.
struct Found {
  enum class Kind {
    line,           // a file; `line` is its first line
    present,        // a file or folder; what is in it was not asked for
    filled_folder,  // a folder with something in it, whatever that is
  };
  Kind kind = Kind::present;
  std::filesystem::path path;  // as it was asked for, below the root
  std::string line;
};

class FileTree {
 public:
  using Observer = std::function<void(const Found&)>;

  // `observer` may be empty. Paths of all calls are relative to `root`.
  FileTree(std::string root, Observer observer = {});
  const std::filesystem::path& root() const { return root_; }

  // First line of a file; nothing where it is empty or can't be read for whatever reason (F05: the type of an unused
  // GID slot gives EINVAL).
  std::optional<std::string> first_line(const std::filesystem::path& path) const;
  // What is in a folder, in order; empty where it is none.
  std::vector<std::string> names(const std::filesystem::path& path) const;
  bool exists(const std::filesystem::path& path) const;
  bool is_folder(const std::filesystem::path& path) const;
  bool is_empty_folder(const std::filesystem::path& path) const;
  // Where symbolic links lead, as an absolute path; empty where nothing is there.
  std::filesystem::path real_path(const std::filesystem::path& path) const;

 private:
  void tell(Found::Kind kind, const std::filesystem::path& path, std::string line = {}) const;

  std::filesystem::path root_;
  Observer observer_;
};

}  // namespace weft::devices
