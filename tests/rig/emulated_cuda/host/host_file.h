// The GPUs of the emulated host that this process runs on, from the file that RIG_HOST_FILE names (tests/rig/README.md
// documents it). Without the variable: one plain GPU.
#pragma once

#include <string>
#include <vector>

#include "common/result/result.h"

namespace weft::emulated_cuda {

struct PciAddress {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  bool operator==(const PciAddress&) const = default;
  std::string text() const;  // "0000:10:00.0"
};

// Reads "0000:10:00.0" and the long form "00000000:10:00.0".
Result<PciAddress> parse_pci_address(const std::string& text);

struct Gpu {
  PciAddress address{0, 0x10, 0, 0};
  int compute_major = 8, compute_minor = 0;  // 8.0: the compute capability that makes NCCL take its plainest path
  bool gpudirect = false;                    // NICs may access device memory
  bool dmabuf = false;                       // device memory can be exported as a file descriptor
};

struct HostFile {
  std::vector<Gpu> gpus{Gpu{}};
  std::vector<std::string> defects;
};

Result<HostFile> read_host_file(const std::string& path);

// The file of this process, read once. A file that cannot be used ends the process with a message: a rank on another
// host than the scenario says would give results that mean nothing.
const HostFile& this_host();

bool has_defect(const std::string& name);

}  // namespace weft::emulated_cuda
