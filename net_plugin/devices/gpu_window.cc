#include "net_plugin/devices/gpu_window.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <optional>

#include "common/text/format.h"
#include "common/text/nearest.h"

namespace weft::devices {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNvidia = "0x10de";
constexpr const char* kDisplayClass = "0x03";  // PCI base class: display controllers, GPUs without a screen too

std::string read_word(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// One line a region: its first address, its last one, flags. A 64-bit BAR0 would take two lines; NVIDIA's has 32 bits.
std::optional<std::uint64_t> second_region(const fs::path& resource) {
  std::ifstream file(resource);
  std::uint64_t first = 0, last = 0, flags = 0;
  for (int region = 0; region < 2; region++) {
    if (!(file >> std::hex >> first >> last >> flags)) return std::nullopt;
  }
  if (last <= first) return std::nullopt;
  return last - first + 1;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return char(std::tolower(letter)); });
  return text;
}

}  // namespace

std::vector<GpuWindow> gpu_windows(const std::string& sysfs) {
  std::vector<GpuWindow> windows;
  std::error_code problem;
  for (const auto& function : fs::directory_iterator(fs::path(sysfs) / "bus/pci/devices", problem)) {
    const fs::path& path = function.path();
    if (read_word(path / "vendor") != kNvidia || read_word(path / "class").rfind(kDisplayClass, 0) != 0) continue;
    if (const auto bytes = second_region(path / "resource")) windows.push_back({path.filename(), *bytes});
  }
  std::sort(windows.begin(), windows.end(),
            [](const GpuWindow& left, const GpuWindow& right) { return left.pci_address < right.pci_address; });
  return windows;
}

std::string describe(const std::vector<GpuWindow>& windows, const std::string& gpu) {
  std::vector<std::string> all;
  for (const GpuWindow& window : windows) {
    const std::string one = text::format("{} B (GPU {})", window.bytes, window.pci_address);
    if (window.pci_address == lower(gpu)) return "BAR1 is " + one;
    all.push_back(one);
  }
  return all.empty() ? "" : "BAR1 is " + text::join(all);
}

}  // namespace weft::devices
