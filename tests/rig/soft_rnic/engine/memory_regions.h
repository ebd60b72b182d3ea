// The registered memory of one NIC: keys, bounds, access rights, and the two ways in which payload may not arrive as
// sent (late writes to GPU memory, the corrupt_payload defect). Callers hold the NIC's lock.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "tests/rig/soft_rnic/protocol/work_request.h"

namespace weft::soft_rnic {

struct MemoryRegion {
  const void* protection_domain = nullptr;
  std::uint8_t* base = nullptr;
  std::uint64_t address = 0;  // the virtual address that work requests use (iova)
  std::uint64_t length = 0;
  int access = 0;  // IBV_ACCESS_*
  bool gpu = false;
};

class MemoryRegions {
 public:
  struct Behaviour {
    bool late_gpu_writes = false;
    bool corrupt_payload = false;
  };
  explicit MemoryRegions(Behaviour behaviour) : behaviour_(behaviour) {}

  // The new region's key, local and remote alike; never 0.
  std::uint32_t add(const MemoryRegion& region);
  // The memory that was registered under this key; empty for an unknown key.
  MemoryRange remove(std::uint32_t key);

  // Where [address, address + length) of the region with this key lies; null where key, protection domain, bounds or
  // rights do not fit. `access` 0 asks for local reading, which every region grants.
  std::uint8_t* find(const void* protection_domain, std::uint32_t key, std::uint64_t address, std::uint64_t length,
                     int access) const;

  // Payload from the network arrives at `destination`, which find() gave.
  void store(std::uint8_t* destination, std::span<const std::uint8_t> payload);
  // Makes late writes visible, in the order in which they came.
  void make_visible();

 private:
  struct Entry {
    std::uint32_t key = 0;  // 0: free
    MemoryRegion region;
  };
  struct LateWrite {
    std::uint8_t* destination;
    std::vector<std::uint8_t> payload;
  };

  bool is_gpu(const std::uint8_t* place) const;

  Behaviour behaviour_;
  std::vector<Entry> entries_;
  std::vector<std::size_t> free_;
  std::uint32_t generation_ = 0;
  std::deque<LateWrite> late_writes_;
  std::uint64_t packets_stored_ = 0;
};

}  // namespace weft::soft_rnic
