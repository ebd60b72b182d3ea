// Public functions about kernels.
#include "tests/rig/emulated_cuda/runtime/cuda_api.h"
#include "tests/rig/emulated_cuda/runtime/device.h"
#include "tests/rig/emulated_cuda/runtime/errors.h"
#include "tests/rig/emulated_cuda/runtime/kernel_registry.h"

using namespace weft::emulated_cuda;

extern "C" {

int cudaFuncGetAttributes(CudaFunctionAttributes* attributes, const void* stub) {
  if (!find_kernel(stub)) return remember(kCudaInvalidDeviceFunction);
  *attributes = {};
  // NCCL's kernels run with up to 640 threads; versions 80 go with compute capability 8.0.
  attributes->max_threads_per_block = 640;
  attributes->registers = 96;
  attributes->ptx_version = attributes->binary_version = 80;
  return kCudaSuccess;
}

int cudaFuncSetAttribute(const void* stub, int, int) {
  return find_kernel(stub) ? kCudaSuccess : remember(kCudaInvalidDeviceFunction);
}

// The handle comes back in the driver's launch functions.
int cudaGetFuncBySymbol(void** function, const void* stub) {
  const Kernel* kernel = find_kernel(stub);
  *function = const_cast<Kernel*>(kernel);
  return kernel ? kCudaSuccess : remember(kCudaInvalidDeviceFunction);
}

int cudaLaunchKernel(const void* stub, CudaDim3 grid, CudaDim3, void** arguments, std::size_t, cudaStream_t stream) {
  const Kernel* kernel = find_kernel(stub);
  if (!kernel) return remember(kCudaInvalidDeviceFunction);
  return launch(*kernel, grid, stream, pack_arguments(*kernel, arguments));
}

// Belongs to the <<<…>>> notation, which no host code of NCCL uses.
int __cudaPopCallConfiguration(CudaDim3*, CudaDim3*, std::size_t*, void*) {
  not_emulated("a kernel launch with <<<…>>> from host code");
}

}  // extern "C"
