// Whether the NICs reach GPU memory, found out by registering some. NCCL asks before any buffer exists, and what sysfs
// and the NIC's driver promise is not always kept: the GPU's and the NIC's PCI functions, an IOMMU or the GPU's BAR1
// may forbid it (field reports F58, F60).
//
// Not tried on hardware; tested with a scripted driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "net_plugin/verbs/verbs.h"

namespace weft::devices {

// The few calls of the CUDA driver API (cuda.h) that Weft makes. Results are CUresult values, 0 is success.
class CudaDriver {
 public:
  virtual ~CudaDriver() = default;
  virtual bool context_is_current() = 0;                                            // cuCtxGetCurrent
  virtual int allocate(std::uint64_t* address, std::size_t size) = 0;               // cuMemAlloc
  virtual int free(std::uint64_t address) = 0;                                      // cuMemFree
  virtual int export_dmabuf(int* fd, std::uint64_t address, std::size_t size) = 0;  // cuMemGetHandleForAddressRange
  // Of the GPU that has the memory, "0000:3B:00.0"; empty where the driver does not say.
  virtual std::string pci_address_of(std::uint64_t address) = 0;  // cuPointerGetAttribute, cuDeviceGetPCIBusId
};

// The driver that this process uses already; null where it uses none. Never loads or initialises it.
std::unique_ptr<CudaDriver> cuda_driver_in_use();

struct GpuReach {
  bool dmabuf = false;
  bool peer_memory = false;
  std::string why;  // where neither works
};

class GpuTrial {
 public:
  // Allocates a buffer on the current GPU where there is one. `driver` may be null.
  explicit GpuTrial(std::unique_ptr<CudaDriver> driver);
  ~GpuTrial();
  GpuTrial(const GpuTrial&) = delete;
  GpuTrial& operator=(const GpuTrial&) = delete;

  // false: no GPU is in use here, and there is nothing but what sysfs says.
  bool possible() const { return address_ != 0; }
  // Registers the buffer with a NIC in each way and deregisters it. Only where possible().
  GpuReach on(verbs::Verbs& verbs, ibv_context* context) const;

 private:
  std::unique_ptr<CudaDriver> driver_;
  std::uint64_t address_ = 0;
  int dmabuf_ = -1;
  int export_result_ = 0;
};

}  // namespace weft::devices
