// Owning handles for what the CUDA runtime and NCCL give out.
#pragma once

#include <cstddef>

#include "common/result/result.h"
#include "tests/rig/rank/libraries.h"

namespace weft::rank {

class DeviceMemory {
 public:
  static Result<DeviceMemory> allocate(const Libraries& libraries, std::size_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept : libraries_(other.libraries_), memory_(other.memory_) {
    other.memory_ = nullptr;
  }
  DeviceMemory& operator=(DeviceMemory&&) = delete;
  ~DeviceMemory();

  std::byte* at(std::size_t offset = 0) const { return static_cast<std::byte*>(memory_) + offset; }

 private:
  DeviceMemory(const Libraries& libraries, void* memory) : libraries_(&libraries), memory_(memory) {}
  const Libraries* libraries_;
  void* memory_;
};

class DeviceStream {
 public:
  static Result<DeviceStream> create(const Libraries& libraries);
  DeviceStream(DeviceStream&& other) noexcept : libraries_(other.libraries_), stream_(other.stream_) {
    other.stream_ = nullptr;
  }
  DeviceStream& operator=(DeviceStream&&) = delete;
  ~DeviceStream();

  Stream get() const { return stream_; }

 private:
  DeviceStream(const Libraries& libraries, Stream stream) : libraries_(&libraries), stream_(stream) {}
  const Libraries* libraries_;
  Stream stream_;
};

}  // namespace weft::rank
