#include "tests/rig/soft_rnic/engine/memory_regions.h"

#include <algorithm>
#include <cstring>

namespace weft::soft_rnic {
namespace {

// A key is the entry's index and a generation in the low byte, so that a key used after its end is noticed.
constexpr int kGenerationBits = 8;

// The corrupt_payload defect: one byte of every so many packets, and only of packets that carry bulk data.
constexpr std::uint64_t kCorruptEvery = 50;
constexpr std::size_t kBulkSize = 512;

}  // namespace

std::uint32_t MemoryRegions::add(const MemoryRegion& region) {
  if (free_.empty()) {
    free_.push_back(entries_.size());
    entries_.emplace_back();
  }
  const std::size_t index = free_.back();
  free_.pop_back();
  generation_ = generation_ % 255 + 1;
  const auto key = static_cast<std::uint32_t>(index << kGenerationBits | generation_);
  entries_[index] = {key, region};
  return key;
}

MemoryRange MemoryRegions::remove(std::uint32_t key) {
  make_visible();
  const std::size_t index = key >> kGenerationBits;
  if (key == 0 || index >= entries_.size() || entries_[index].key != key) return {};
  const MemoryRegion region = entries_[index].region;
  entries_[index] = {};
  free_.push_back(index);
  return {region.base, region.base + region.length};
}

std::uint8_t* MemoryRegions::find(const void* protection_domain, std::uint32_t key, std::uint64_t address,
                                  std::uint64_t length, int access) const {
  const std::size_t index = key >> kGenerationBits;
  if (key == 0 || index >= entries_.size() || entries_[index].key != key) return nullptr;
  const MemoryRegion& region = entries_[index].region;
  if (region.protection_domain != protection_domain || (region.access & access) != access) return nullptr;
  if (address < region.address || length > region.length || address - region.address > region.length - length) {
    return nullptr;
  }
  return region.base + (address - region.address);
}

bool MemoryRegions::is_gpu(const std::uint8_t* place) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    const MemoryRegion& region = entry.region;
    return entry.key != 0 && region.gpu && place >= region.base && place < region.base + region.length;
  });
}

void MemoryRegions::store(std::uint8_t* destination, std::span<const std::uint8_t> payload) {
  if (behaviour_.late_gpu_writes && is_gpu(destination)) {
    late_writes_.push_back({destination, {payload.begin(), payload.end()}});
    return;
  }
  std::memcpy(destination, payload.data(), payload.size());
  if (behaviour_.corrupt_payload && payload.size() >= kBulkSize && ++packets_stored_ % kCorruptEvery == 0) {
    destination[payload.size() / 2] ^= 0x40;
  }
}

void MemoryRegions::make_visible() {
  for (const LateWrite& write : late_writes_) {
    std::memcpy(write.destination, write.payload.data(), write.payload.size());
  }
  late_writes_.clear();
}

}  // namespace weft::soft_rnic
