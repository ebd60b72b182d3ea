// A CUDA driver that says what a test has written down.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "net_plugin/devices/gpu_memory.h"

namespace weft::fake {

constexpr std::uint64_t kGpuMemory = 0x7f00'0000'0000;

// What the driver answers, and what it still holds.
struct CudaScript {
  bool context = true;
  int allocate_result = 0;
  int export_result = 0;
  int allocated = 0;
  std::size_t size = 0;
  std::string pci_address;
};

class ScriptedDriver final : public devices::CudaDriver {
 public:
  explicit ScriptedDriver(CudaScript& script) : script_(script) {}
  bool context_is_current() override { return script_.context; }
  int allocate(std::uint64_t* address, std::size_t size) override {
    if (script_.allocate_result != 0) return script_.allocate_result;
    script_.allocated++;
    script_.size = size;
    *address = kGpuMemory;
    return 0;
  }
  int free(std::uint64_t address) override {
    EXPECT_EQ(address, kGpuMemory);
    script_.allocated--;
    return 0;
  }
  int export_dmabuf(int* fd, std::uint64_t address, std::size_t size) override {
    EXPECT_EQ(address, kGpuMemory);
    EXPECT_EQ(size, script_.size);
    if (script_.export_result == 0) *fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return script_.export_result;
  }
  std::string pci_address_of(std::uint64_t) override { return script_.pci_address; }

 private:
  CudaScript& script_;
};

}  // namespace weft::fake
