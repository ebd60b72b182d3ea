// All memory the runtime knows: device memory, pinned host memory, registered host memory. Device memory is host
// memory, so a device pointer and a host pointer are the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "common/result/result.h"

namespace weft::emulated_cuda {

enum class MemoryKind { host = 1, device = 2 };  // the values of cudaMemoryType

struct Allocation {
  std::uintptr_t base;
  std::size_t bytes;
  MemoryKind kind;
  int device;
  int descriptor;  // of the memory file behind it, for export as a DMA-BUF; -1 without
  bool owned;      // mapped here, not merely registered
  std::uint64_t id;
};

// Thread-safe.
class MemoryTable {
 public:
  // Page aligned and zero. With `exportable` it is backed by a memory file that others can map.
  Result<void*> allocate(std::size_t bytes, MemoryKind kind, int device, bool exportable);
  // Host memory of the program itself.
  void adopt(void* base, std::size_t bytes, int device);
  // Unmaps what was allocated, forgets what was adopted. False for an address that is not the base of either.
  bool release(void* base);
  // The allocation that contains the address.
  std::optional<Allocation> find(const void* address) const;
  // Whether the whole range lies in one allocation of device memory.
  bool is_device(const void* address, std::size_t bytes) const;

 private:
  void insert(void* base, std::size_t bytes, MemoryKind kind, int device, int descriptor, bool owned);

  mutable std::mutex mutex_;
  std::map<std::uintptr_t, Allocation> allocations_;
  std::uint64_t last_id_ = 0;
};

// The table of the process; never destroyed, because threads of NCCL outlive static destructors.
MemoryTable& memory_table();

}  // namespace weft::emulated_cuda
