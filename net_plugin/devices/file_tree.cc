#include "net_plugin/devices/file_tree.h"

#include <algorithm>
#include <fstream>

namespace weft::devices {

namespace fs = std::filesystem;

FileTree::FileTree(std::string root, Observer observer) : root_(std::move(root)), observer_(std::move(observer)) {}

std::optional<std::string> FileTree::first_line(const fs::path& path) const {
  std::ifstream file(root_ / path);
  std::string line;
  if (!std::getline(file, line) || line.empty()) return std::nullopt;
  tell(Found::Kind::line, path, line);
  return line;
}

std::vector<std::string> FileTree::names(const fs::path& path) const {
  std::vector<std::string> names;
  if (!is_folder(path)) return names;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(root_ / path, problem)) {
    names.push_back(entry.path().filename());
    tell(Found::Kind::present, path / names.back());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool FileTree::exists(const fs::path& path) const {
  std::error_code problem;
  if (!fs::exists(root_ / path, problem)) return false;
  tell(Found::Kind::present, path);
  return true;
}

bool FileTree::is_folder(const fs::path& path) const {
  std::error_code problem;
  if (!fs::is_directory(root_ / path, problem)) return false;
  tell(Found::Kind::present, path);
  return true;
}

bool FileTree::is_empty_folder(const fs::path& path) const {
  std::error_code problem;
  if (!is_folder(path)) return false;
  if (fs::is_empty(root_ / path, problem)) return true;
  tell(Found::Kind::filled_folder, path);
  return false;
}

fs::path FileTree::real_path(const fs::path& path) const {
  std::error_code problem;
  fs::path real = fs::canonical(root_ / path, problem);
  if (problem) return {};
  tell(Found::Kind::present, path);
  return real;
}

void FileTree::tell(Found::Kind kind, const fs::path& path, std::string line) const {
  if (observer_) observer_({kind, path, std::move(line)});
}

}  // namespace weft::devices
