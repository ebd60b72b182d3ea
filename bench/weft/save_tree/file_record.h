// The files that the search for devices has found, as a small tree of their own: what was read, and every symbolic link
// on the way there.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "bench/weft/save_tree/substitutes.h"
#include "common/result/result.h"
#include "net_plugin/devices/file_tree.h"

namespace weft::save_tree {

struct Entry {
  enum class Kind { folder, file, link };
  Kind kind = Kind::folder;
  std::string content;  // of a file; of a link where it leads, relative to the folder it is in
};

// By path, relative and without links in it; a folder comes before what it holds.
using Entries = std::map<std::string, Entry>;

class FileRecord {
 public:
  explicit FileRecord(const std::string& root);

  void add(const devices::Found& found);
  // Below the folder `below`, with stand-ins for what is personal. An error where a link leads out of the root.
  Result<Entries> entries(const std::string& below, Substitutes& substitutes) const;

 private:
  std::filesystem::path resolve(const std::filesystem::path& path);
  void add_present(const std::filesystem::path& place);

  std::filesystem::path root_;
  std::map<std::filesystem::path, Entry> entries_;  // as they are; of a link where it leads below the root
  std::map<std::filesystem::path, std::filesystem::path> leading_out_;
};

// Makes the tree in a folder that is there.
Result<void> lay_out(const Entries& entries, const std::filesystem::path& folder);

}  // namespace weft::save_tree
