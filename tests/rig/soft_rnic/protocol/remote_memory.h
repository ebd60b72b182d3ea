// The responder's view of the host's memory: what the peer may reach with its keys, and how payload gets there.
#pragma once

#include <cstdint>
#include <span>

namespace weft::soft_rnic {

class RemoteMemory {
 public:
  // The address of [address, address + length) as registered under `key`, null where the key is unknown, the range
  // leaves the region or `access` (IBV_ACCESS_REMOTE_*) was not granted. A length of 0 needs no key.
  virtual std::uint8_t* find(std::uint32_t key, std::uint64_t address, std::uint64_t length, int access) = 0;

  // Payload arrives at `destination`.
  virtual void store(std::uint8_t* destination, std::span<const std::uint8_t> payload) = 0;

  // A READ or atomic is about to look at memory: whatever store() holds back must become visible first.
  virtual void before_read() = 0;

 protected:
  ~RemoteMemory() = default;
};

}  // namespace weft::soft_rnic
