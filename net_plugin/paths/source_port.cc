#include "net_plugin/paths/source_port.h"

namespace weft::paths {
namespace {

constexpr std::uint32_t kLowBits = 0x3FFF;

// SplitMix64: a stream of well-mixed numbers from any start.
std::uint64_t next(std::uint64_t& state) {
  std::uint64_t value = state += 0x9e3779b97f4a7c15;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

}  // namespace

std::uint16_t port_of_label(std::uint32_t label) {
  return std::uint16_t(kFirstPort | ((label & kLowBits) ^ (label >> 14 & kLowBits)));
}

std::uint32_t label_of_port(std::uint16_t port) {
  const std::uint32_t label = port & kLowBits;
  // Port 0xC000 would need label 0, which means "from the queue pair numbers": 1 ^ (0x4000 >> 14) is 0 as well.
  return label != 0 ? label : 0x4001;
}

std::vector<std::uint16_t> PortSequence::take(std::size_t count) {
  if (taken_count_ + count > kPorts) {
    taken_.reset();
    taken_count_ = 0;
    state_ = key_;
  }
  std::vector<std::uint16_t> ports;
  ports.reserve(count);
  while (ports.size() < count && taken_count_ < kPorts) {
    const std::uint64_t low = next(state_) & kLowBits;
    if (taken_.test(low)) continue;
    taken_.set(low);
    taken_count_++;
    ports.push_back(std::uint16_t(kFirstPort | low));
  }
  return ports;
}

std::uint64_t combine_key(std::uint64_t key, std::uint64_t value) {
  std::uint64_t state = key ^ (value * 0xff51afd7ed558ccd);
  return next(state);
}

std::uint64_t hash_bytes(std::uint64_t key, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  for (std::size_t i = 0; i < size; i++)
    key = combine_key(key, bytes[i]);
  return key;
}

}  // namespace weft::paths
