// The emulated devices: the GPUs of the host file, and the device of the calling thread.
#pragma once

#include "tests/rig/emulated_cuda/host/host_file.h"

namespace weft::emulated_cuda {

int device_count();
bool is_device_ordinal(int device);
// Only for a valid ordinal.
const Gpu& device(int ordinal);

// The device of this thread; 0 at first.
int current_device();
void set_current_device(int ordinal);

// The value of a device attribute, numbered as in cudaDeviceAttr and CUdevice_attribute, which agree. Attributes that
// nothing here has are 0.
int device_attribute(int attribute, int ordinal);

}  // namespace weft::emulated_cuda
