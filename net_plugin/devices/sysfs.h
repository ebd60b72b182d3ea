// What the kernel's sysfs says of an RDMA device and its ports.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "net_plugin/devices/file_tree.h"
#include "net_plugin/devices/gid.h"

namespace weft::devices {

class Sysfs {
 public:
  // `files`: of "/sys", or a folder that looks like it. `device`: verbs name.
  Sysfs(FileTree files, std::string device);

  // Names of all RDMA devices, in order.
  static std::vector<std::string> devices(const FileTree& files);

  const std::string& device() const { return name_; }
  // Real path of the PCI function; empty where there is none.
  std::string pci_path() const;
  // iWARP devices are Ethernet as well, and no RoCE.
  bool is_iwarp() const;
  // Ports whose link layer is Ethernet, in order.
  std::vector<int> ethernet_ports() const;
  // Mbit/s, of "400 Gb/sec (4X NDR)"; nothing where it can't be read.
  std::optional<int> rate_mbps(int port) const;
  bool knows_gid_types(int port) const;
  GidType gid_type(int port, int index) const;
  // Whether device/net/ is there and empty: the interface is in another network namespace (F18).
  bool interface_is_elsewhere() const;
  // PCI address of the physical function that this virtual one belongs to; empty for a physical one.
  std::string physical_function() const;
  // A kernel module lets NICs register GPU memory.
  bool peer_memory() const;

 private:
  std::filesystem::path port(int number) const;

  FileTree files_;
  std::string name_;
  std::filesystem::path device_;
};

}  // namespace weft::devices
