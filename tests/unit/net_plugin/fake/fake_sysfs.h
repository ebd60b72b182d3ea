// A folder that looks like /sys to the search for devices.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace weft::fake {

class FakeSysfs {
 public:
  FakeSysfs() : root_(std::filesystem::temp_directory_path() / "weft-sysfs-XXXXXX") {
    std::string name = root_.string();
    if (mkdtemp(name.data())) root_ = name;
  }
  ~FakeSysfs() { std::filesystem::remove_all(root_); }
  FakeSysfs(const FakeSysfs&) = delete;
  FakeSysfs& operator=(const FakeSysfs&) = delete;

  std::string root() const { return root_.string(); }

  void write(const std::string& path, const std::string& line) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << line << '\n';
  }

  // A device on a PCI function; `types`: of the GIDs of port 1, "" for a slot whose type can't be read.
  void device(const std::string& name, const std::string& pci,
              const std::vector<std::string>& types = {"RoCE v2"}) const {
    const std::string folder = "class/infiniband/" + name;
    write(folder + "/node_type", "1: CA");
    write(folder + "/ports/1/link_layer", "Ethernet");
    std::filesystem::create_directories(root_ / folder / "ports/1/gid_attrs/types");
    for (std::size_t i = 0; i < types.size(); i++) {
      if (!types[i].empty()) write(folder + "/ports/1/gid_attrs/types/" + std::to_string(i), types[i]);
    }
    std::filesystem::create_directories(root_ / "devices" / pci / "net" / ("eth_" + name));
    std::filesystem::create_directory_symlink(root_ / "devices" / pci, root_ / folder / "device");
  }

 private:
  std::filesystem::path root_;
};

}  // namespace weft::fake
