// Kernels by the address of their host stub: registered by NCCL's static constructors, carried out by whoever provides
// their code (emulated_cuda.h).
#pragma once

#include <string>
#include <vector>

#include "tests/rig/emulated_cuda/emulated_cuda.h"
#include "tests/rig/emulated_cuda/runtime/cuda_api.h"

namespace weft::emulated_cuda {

struct Kernel {
  std::string name;                                 // mangled, of the device function
  const emulated_cuda_kernels* provider = nullptr;  // null: nobody carries it out
};

// Usable before main. Null for a stub that was never registered.
const Kernel* find_kernel(const void* stub);

// Queues a launch with packed arguments. Ends the process for a kernel that nobody carries out.
int launch(const Kernel& kernel, CudaDim3 grid, cudaStream_t stream, std::vector<char> arguments);

// Packs arguments that come as an array of pointers, each at a multiple of its size.
std::vector<char> pack_arguments(const Kernel& kernel, void* const* arguments);

}  // namespace weft::emulated_cuda
