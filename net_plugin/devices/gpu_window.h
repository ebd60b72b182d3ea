// How much of a GPU's memory other PCI devices reach at a time: the size of its BAR1 (field report F61).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::devices {

struct GpuWindow {
  std::string pci_address;  // "0000:3b:00.0"
  std::uint64_t bytes = 0;
};

// Of the GPUs that sysfs shows, in PCI address order.
std::vector<GpuWindow> gpu_windows(const std::string& sysfs = "/sys");

// "BAR1 is 268435456 B (GPU 0000:3b:00.0)"; all of them where it is not known which GPU is meant; empty where there is
// none to tell of.
std::string describe(const std::vector<GpuWindow>& windows, const std::string& gpu);

}  // namespace weft::devices
