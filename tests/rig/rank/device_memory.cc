#include "tests/rig/rank/device_memory.h"

#include "common/text/format.h"

namespace weft::rank {

Result<DeviceMemory> DeviceMemory::allocate(const Libraries& libraries, std::size_t bytes) {
  void* memory = nullptr;
  if (const int code = libraries.cudaMalloc(&memory, bytes)) {
    return Error{text::format("cudaMalloc of {} bytes: {}", bytes, libraries.cudaGetErrorString(code)), {}, 0, {}};
  }
  return DeviceMemory(libraries, memory);
}

DeviceMemory::~DeviceMemory() {
  if (memory_) libraries_->cudaFree(memory_);
}

Result<DeviceStream> DeviceStream::create(const Libraries& libraries) {
  Stream stream = nullptr;
  if (const int code = libraries.cudaStreamCreateWithFlags(&stream, kStreamNonBlocking)) {
    return Error{text::format("cudaStreamCreateWithFlags: {}", libraries.cudaGetErrorString(code)), {}, 0, {}};
  }
  return DeviceStream(libraries, stream);
}

DeviceStream::~DeviceStream() {
  if (stream_) libraries_->cudaStreamDestroy(stream_);
}

}  // namespace weft::rank
