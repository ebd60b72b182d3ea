#include "net_plugin/devices/gpu_memory.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>

#include "common/result/result.h"
#include "common/text/format.h"
#include "net_plugin/verbs/handles.h"

namespace weft::devices {
namespace {

// A multiple of every page size that an export may ask for.
constexpr std::size_t kTrialBytes = 2 << 20;
constexpr int kDmabufDescriptor = 1;  // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, cuda.h
constexpr int kDeviceOrdinal = 9;     // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
constexpr unsigned kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

struct Functions {
  int (*get_current)(void** context);
  int (*allocate)(std::uint64_t* address, std::size_t size);
  int (*free)(std::uint64_t address);
  int (*export_range)(void* handle, std::uint64_t address, std::size_t size, int type, unsigned long long flags);
  int (*pointer_attribute)(void* value, int attribute, std::uint64_t address);
  int (*get_device)(int* device, int ordinal);
  int (*pci_bus_id)(char* text, int length, int device);
};

template <class Function>
bool find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

class InUse final : public CudaDriver {
 public:
  InUse(void* library, const Functions& functions) : library_(library), call_(functions) {}
  ~InUse() override { dlclose(library_); }
  bool context_is_current() override {
    void* context = nullptr;
    return call_.get_current(&context) == 0 && context != nullptr;
  }
  int allocate(std::uint64_t* address, std::size_t size) override { return call_.allocate(address, size); }
  int free(std::uint64_t address) override { return call_.free(address); }
  int export_dmabuf(int* fd, std::uint64_t address, std::size_t size) override {
    constexpr int kNotSupported = 801;  // CUDA_ERROR_NOT_SUPPORTED
    return call_.export_range ? call_.export_range(fd, address, size, kDmabufDescriptor, 0) : kNotSupported;
  }
  std::string pci_address_of(std::uint64_t address) override {
    int ordinal = -1, device = -1;
    char text[32] = "";
    if (!call_.pointer_attribute || !call_.get_device || !call_.pci_bus_id) return {};
    if (call_.pointer_attribute(&ordinal, kDeviceOrdinal, address) != 0) return {};
    if (call_.get_device(&device, ordinal) != 0) return {};
    return call_.pci_bus_id(text, sizeof text, device) == 0 ? text : "";
  }

 private:
  void* library_;
  Functions call_;
};

std::string outcome(const char* way, int code) {
  return text::format("{}: {}", way, code == 0 ? "works" : errno_name(code));
}

}  // namespace

std::unique_ptr<CudaDriver> cuda_driver_in_use() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (!library) return nullptr;
  Functions call{};
  const bool complete = find(library, call.get_current, "cuCtxGetCurrent") &&
                        find(library, call.allocate, "cuMemAlloc_v2") && find(library, call.free, "cuMemFree_v2");
  if (!complete) {
    dlclose(library);
    return nullptr;
  }
  find(library, call.pointer_attribute, "cuPointerGetAttribute");
  find(library, call.get_device, "cuDeviceGet");
  find(library, call.pci_bus_id, "cuDeviceGetPCIBusId");
  find(library, call.export_range, "cuMemGetHandleForAddressRange");  // from CUDA 11.7 on
  return std::make_unique<InUse>(library, call);
}

GpuTrial::GpuTrial(std::unique_ptr<CudaDriver> driver) : driver_(std::move(driver)) {
  if (!driver_ || !driver_->context_is_current()) return;
  if (driver_->allocate(&address_, kTrialBytes) != 0) {
    address_ = 0;
    return;
  }
  export_result_ = driver_->export_dmabuf(&dmabuf_, address_, kTrialBytes);
  if (export_result_ != 0) dmabuf_ = -1;
}

GpuTrial::~GpuTrial() {
  if (dmabuf_ >= 0) close(dmabuf_);
  if (address_ != 0) driver_->free(address_);
}

GpuReach GpuTrial::on(verbs::Verbs& verbs, ibv_context* context) const {
  GpuReach reach;
  verbs::ProtectionDomain domain(verbs.alloc_pd(context), {&verbs});
  if (!domain) {
    reach.why = "no protection domain: " + errno_name(errno);
    return reach;
  }
  std::string exported = text::format("dma-buf: the GPU's driver exports none (CUresult {})", export_result_);
  if (dmabuf_ >= 0) {
    errno = 0;
    const verbs::MemoryRegion region(verbs.reg_dmabuf_mr(domain.get(), 0, kTrialBytes, address_, dmabuf_, kAccess),
                                     {&verbs});
    reach.dmabuf = region != nullptr;
    exported = outcome("dma-buf", reach.dmabuf ? 0 : errno);
  }
  errno = 0;
  const verbs::MemoryRegion region(verbs.reg_mr(domain.get(), reinterpret_cast<void*>(address_), kTrialBytes, kAccess),
                                   {&verbs});
  reach.peer_memory = region != nullptr;
  if (!reach.dmabuf && !reach.peer_memory) {
    reach.why = text::format(
        "{}, {}; dma-buf needs Linux 5.12, rdma-core 34 and the GPU's open kernel module, peer memory "
        "needs nvidia_peermem; an IOMMU in the way forbids both",
        exported, outcome("peer memory", errno));
  }
  return reach;
}

}  // namespace weft::devices
