#include "tests/rig/emulated_cuda/runtime/memory_table.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace weft::emulated_cuda {
namespace {

constexpr std::size_t kPageBytes = 4096;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace

Result<void*> MemoryTable::allocate(std::size_t bytes, MemoryKind kind, int device, bool exportable) {
  int descriptor = -1;
  if (exportable) {
    descriptor = memfd_create("emulated device memory", MFD_CLOEXEC);
    if (descriptor < 0 || ftruncate(descriptor, off_t(whole_pages(bytes))) != 0) {
      const int code = errno;
      if (descriptor >= 0) close(descriptor);
      return system_error("memory file of device memory", code);
    }
  }
  const int flags = exportable ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* base = mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (base == MAP_FAILED) {
    const int code = errno;
    if (descriptor >= 0) close(descriptor);
    return system_error("map memory", code);
  }
  insert(base, bytes, kind, device, descriptor, true);
  return base;
}

void MemoryTable::adopt(void* base, std::size_t bytes, int device) {
  insert(base, bytes, MemoryKind::host, device, -1, false);
}

void MemoryTable::insert(void* base, std::size_t bytes, MemoryKind kind, int device, int descriptor, bool owned) {
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  const std::lock_guard lock(mutex_);
  allocations_[address] = Allocation{address, bytes, kind, device, descriptor, owned, ++last_id_};
}

bool MemoryTable::release(void* base) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(reinterpret_cast<std::uintptr_t>(base));
  if (found == allocations_.end()) return false;
  if (found->second.descriptor >= 0) close(found->second.descriptor);
  if (found->second.owned) munmap(base, whole_pages(found->second.bytes));
  allocations_.erase(found);
  return true;
}

std::optional<Allocation> MemoryTable::find(const void* address) const {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard lock(mutex_);
  auto next = allocations_.upper_bound(wanted);
  if (next == allocations_.begin()) return std::nullopt;
  const Allocation& candidate = std::prev(next)->second;
  if (wanted >= candidate.base + candidate.bytes) return std::nullopt;
  return candidate;
}

bool MemoryTable::is_device(const void* address, std::size_t bytes) const {
  const auto allocation = find(address);
  if (!allocation || allocation->kind != MemoryKind::device) return false;
  return bytes <= allocation->base + allocation->bytes - reinterpret_cast<std::uintptr_t>(address);
}

MemoryTable& memory_table() {
  static MemoryTable& table = *new MemoryTable;
  return table;
}

}  // namespace weft::emulated_cuda
