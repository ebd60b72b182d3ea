// Registrations of user memory on one device, shared: NCCL registers the same buffer once for every connection, and a
// registration costs a system call and entries of the NIC's translation table each time. The last user gives it back.
//
// Threads: any.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "common/result/result.h"
#include "net_plugin/verbs/handles.h"

namespace weft::setup {

class OpenDevice;

// A buffer of NCCL's.
struct UserMemory {
  void* data = nullptr;
  std::size_t size = 0;
  std::uint64_t offset = 0;  // of the buffer in the dma-buf
  int dmabuf = -1;           // descriptor; -1: none
  bool of_gpu = false;
};

class RegisteredMemory {
 public:
  RegisteredMemory(std::shared_ptr<const OpenDevice> device, verbs::MemoryRegion region)
      : device_(std::move(device)), region_(std::move(region)) {}
  const ibv_mr* region() const { return region_.get(); }

 private:
  std::shared_ptr<const OpenDevice> device_;  // stays open as long as the region is registered
  verbs::MemoryRegion region_;
};

class RegistrationCache {
 public:
  struct Key {
    std::uint64_t address = 0;
    std::size_t length = 0;
    unsigned access = 0;
    bool dmabuf = false;
    bool of_gpu = false;
    auto operator<=>(const Key&) const = default;
  };
  using Make = std::function<Result<std::shared_ptr<const RegisteredMemory>>()>;

  // The registration of exactly this range and access, made where nobody has one.
  Result<std::shared_ptr<const RegisteredMemory>> find_or_make(const Key& key, const Make& make);
  // Registrations in use.
  std::size_t size() const;
  // Of GPU memory, in all registrations in use.
  std::size_t gpu_bytes() const;

 private:
  mutable std::mutex mutex_;
  std::map<Key, std::weak_ptr<const RegisteredMemory>> entries_;
};

}  // namespace weft::setup
