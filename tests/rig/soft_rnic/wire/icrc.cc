#include "tests/rig/soft_rnic/wire/icrc.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tests/rig/soft_rnic/wire/byte_order.h"
#include "tests/rig/soft_rnic/wire/headers.h"

namespace weft::soft_rnic {
namespace {

constexpr std::uint32_t kPolynomial = 0xedb88320;
constexpr std::uint32_t kOne = 0x80000000;  // the polynomial 1 in reflected bit order
constexpr std::size_t kMask = 8;
constexpr std::size_t kIpHeader = 20;
constexpr std::size_t kUdpHeader = 8;
constexpr std::size_t kMaxHeaders = 64;
// Bytes before the end of the identification field, counted from the start of what the CRC covers.
constexpr std::size_t kUpToIdentification = kMask + 6;

std::uint32_t crc_of(std::uint32_t crc, const std::uint8_t* bytes, std::size_t size) {
  return crc32_gzip_refl(crc, bytes, size);
}

constexpr std::uint32_t multiply_by_x(std::uint32_t value) {
  return value & 1 ? value >> 1 ^ kPolynomial : value >> 1;
}

constexpr std::uint32_t divide_by_x(std::uint32_t value) {
  return value & kOne ? (value ^ kPolynomial) << 1 | 1 : value << 1;
}

std::uint32_t multiply(std::uint32_t left, std::uint32_t right) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = kOne; bit != 0; bit >>= 1) {
    if (left & bit) product ^= right;
    right = multiply_by_x(right);
  }
  return product;
}

// Undoes what trailing bytes do to a CRC difference, and finds the byte a difference of one byte came from.
class Unroller {
 public:
  Unroller() {
    std::uint32_t per_byte = kOne;
    for (int bit = 0; bit < 8; ++bit)
      per_byte = divide_by_x(per_byte);
    std::uint32_t power = kOne;
    for (std::uint32_t& entry : inverse_powers_) {
      entry = power;
      power = multiply(power, per_byte);
    }
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t difference = byte;
      for (int bit = 0; bit < 8; ++bit)
        difference = multiply_by_x(difference);
      difference_of_byte_[byte] = difference;
      byte_of_difference_[difference >> 24] = static_cast<std::uint8_t>(byte);
    }
  }

  // The value by which one byte, `trailing` bytes before the end, must have differed to change the CRC by `difference`;
  // 256 where no single byte does that.
  std::uint32_t byte_behind(std::uint32_t difference, std::size_t trailing) const {
    if (trailing >= inverse_powers_.size()) return 256;
    const std::uint32_t own = multiply(difference, inverse_powers_[trailing]);
    const std::uint32_t byte = byte_of_difference_[own >> 24];
    return difference_of_byte_[byte] == own ? byte : 256;
  }

 private:
  // One entry for every trailing length of a packet with the largest MTU, 4096, and all its headers.
  std::array<std::uint32_t, 4352> inverse_powers_{};
  std::array<std::uint32_t, 256> difference_of_byte_{};
  std::array<std::uint8_t, 256> byte_of_difference_{};
};

const Unroller& unroller() {
  static const Unroller instance;
  return instance;
}

}  // namespace

Icrc::Icrc(const Flow& flow, std::uint16_t identification, std::size_t udp_payload_size,
           std::span<const std::uint8_t> headers) {
  std::array<std::uint8_t, kMask + kIpHeader + kUdpHeader + kMaxHeaders> covered;
  std::fill_n(covered.begin(), kMask, 0xff);
  std::uint8_t* ip = covered.data() + kMask;
  ip[0] = 0x45;  // version 4, header of five words
  ip[1] = 0xff;
  store_big16(ip + 2, static_cast<std::uint32_t>(kIpHeader + kUdpHeader + udp_payload_size));
  store_big16(ip + 4, identification);
  store_big16(ip + 6, 0x4000);  // don't fragment
  ip[8] = 0xff;
  ip[9] = 17;  // UDP
  store_big16(ip + 10, 0xffff);
  std::memcpy(ip + 12, &flow.source_address, 4);
  std::memcpy(ip + 16, &flow.destination_address, 4);
  std::uint8_t* udp = ip + kIpHeader;
  store_big16(udp, flow.source_port);
  store_big16(udp + 2, flow.destination_port);
  store_big16(udp + 4, static_cast<std::uint32_t>(kUdpHeader + udp_payload_size));
  store_big16(udp + 6, 0xffff);
  std::uint8_t* base = udp + kUdpHeader;
  std::memcpy(base, headers.data(), headers.size());
  base[4] = 0xff;  // FECN, BECN and the reserved bits beside them
  value_ = crc_of(0, covered.data(), kMask + kIpHeader + kUdpHeader + headers.size());
}

void Icrc::add(std::span<const std::uint8_t> piece) {
  value_ = crc_of(value_, piece.data(), piece.size());
}

bool icrc_right(const Flow& flow, std::uint16_t likely_identification, std::span<const std::uint8_t> udp_payload) {
  if (udp_payload.size() < kBaseHeaderSize + kIcrcSize) return false;
  const std::size_t covered = udp_payload.size() - kIcrcSize;
  const std::uint16_t assumed = likely_identification < kIdentifications ? likely_identification : 0;
  Icrc icrc(flow, assumed, udp_payload.size(), udp_payload.first(kBaseHeaderSize));
  icrc.add(udp_payload.subspan(kBaseHeaderSize, covered - kBaseHeaderSize));
  std::uint32_t stored = 0;
  std::memcpy(&stored, udp_payload.data() + covered, kIcrcSize);  // least significant first, as this machine stores it
  const std::uint32_t difference = stored ^ icrc.value();
  if (difference == 0) return true;
  const std::size_t trailing = kMask + kIpHeader + kUdpHeader + covered - kUpToIdentification;
  const std::uint32_t changed = unroller().byte_behind(difference, trailing);
  return changed < 256 && (changed ^ assumed) < kIdentifications;
}

}  // namespace weft::soft_rnic
