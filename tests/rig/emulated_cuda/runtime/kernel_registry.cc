#include "tests/rig/emulated_cuda/runtime/kernel_registry.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "tests/rig/emulated_cuda/runtime/device.h"
#include "tests/rig/emulated_cuda/runtime/errors.h"
#include "tests/rig/emulated_cuda/runtime/stream_table.h"

namespace weft::emulated_cuda {
namespace {

// Filled by static constructors in any order, used until the process is gone: made at first use, never destroyed.
struct Registry {
  std::mutex mutex;
  std::unordered_map<const void*, std::unique_ptr<Kernel>> kernels;
  std::vector<const emulated_cuda_kernels*> providers;
};

Registry& registry() {
  static Registry& the_registry = *new Registry;
  return the_registry;
}

const emulated_cuda_kernels* provider_of(const std::string& name, const Registry& all) {
  for (const auto* provider : all.providers)
    if (provider->implements(name.c_str())) return provider;
  return nullptr;
}

}  // namespace

const Kernel* find_kernel(const void* stub) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.kernels.find(stub);
  if (found == all.kernels.end()) return nullptr;
  Kernel& kernel = *found->second;
  if (!kernel.provider) kernel.provider = provider_of(kernel.name, all);
  return &kernel;
}

int launch(const Kernel& kernel, CudaDim3 grid, cudaStream_t stream, std::vector<char> arguments) {
  if (!kernel.provider) not_emulated("kernel " + kernel.name);
  auto packed = std::make_shared<std::vector<char>>(std::move(arguments));
  const int device = current_device();
  const bool queued = stream_table().enqueue(stream, device, [&kernel, grid, device, packed] {
    const emulated_cuda_launch request{kernel.name.c_str(), grid.x * grid.y * grid.z, device, packed->data(),
                                       packed->size()};
    kernel.provider->run(&request);
  });
  return queued ? kCudaSuccess : remember(kCudaInvalidResourceHandle);
}

std::vector<char> pack_arguments(const Kernel& kernel, void* const* arguments) {
  if (!kernel.provider) not_emulated("kernel " + kernel.name);
  const std::size_t* sizes = nullptr;
  const std::size_t count = kernel.provider->argument_sizes(kernel.name.c_str(), &sizes);
  if (count == 0) not_emulated("launch of " + kernel.name + " with single arguments");
  std::vector<char> packed;
  for (std::size_t i = 0; i < count; i++) {
    const std::size_t offset = (packed.size() + sizes[i] - 1) / sizes[i] * sizes[i];
    packed.resize(offset + sizes[i]);
    std::memcpy(packed.data() + offset, arguments[i], sizes[i]);
  }
  return packed;
}

}  // namespace weft::emulated_cuda

using namespace weft::emulated_cuda;

extern "C" {

EMULATED_CUDA_EXPORT void emulated_cuda_provide_kernels(const emulated_cuda_kernels* kernels) {
  const std::lock_guard lock(registry().mutex);
  registry().providers.push_back(kernels);
}

void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int, void*, void*, void*, void*, int*) {
  const std::lock_guard lock(registry().mutex);
  registry().kernels[stub] = std::make_unique<Kernel>(Kernel{name});
}

// The device code itself is never looked at.
void** __cudaRegisterFatBinary(void*) {
  static void* handle[1];
  return handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) {
  return 1;
}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}

}  // extern "C"
