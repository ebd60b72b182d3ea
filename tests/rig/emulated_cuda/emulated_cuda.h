// What the emulated CUDA runtime (libcudart_emulated.so.1) offers beyond the public CUDA runtime functions. Every
// function may be called from any thread.
#pragma once

#include <cstddef>

extern "C" {

// Whether [address, address + bytes) lies within one allocation of device memory. The software NIC asks this, found by
// dlsym, because both are plain memory here.
bool emulated_cuda_is_device(const void* address, std::size_t bytes);

// Whether the host file names this deliberate defect (tests of the tests).
bool emulated_cuda_has_defect(const char* name);

// cudaGetDriverEntryPoint, for the object that replaces NCCL's weak stub of that name. status: 0 found, 1 not found.
int emulated_cuda_driver_entry_point(const char* name, void** function, int* status);

// One launch, as handed to the code that carries a kernel out.
struct emulated_cuda_launch {
  const char* kernel;  // mangled name of the device function
  unsigned blocks;     // of the whole grid
  int device;
  void* arguments;  // packed, belongs to the launch
  std::size_t argument_bytes;
};

// Code that carries out kernels on the CPU.
struct emulated_cuda_kernels {
  bool (*implements)(const char* kernel);
  // The sizes of the kernel's arguments, needed where a launch gives them as an array of pointers; 0 where such a
  // launch cannot happen.
  std::size_t (*argument_sizes)(const char* kernel, const std::size_t** sizes);
  // Returns when all blocks have ended. Called on the stream's thread.
  void (*run)(const emulated_cuda_launch* launch);
};

// Announces kernels; the structure must live for ever. Usable from static constructors.
void emulated_cuda_provide_kernels(const emulated_cuda_kernels* kernels);

}  // extern "C"
