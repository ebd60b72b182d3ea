// Big-endian integers at any address.
#pragma once

#include <cstdint>

namespace weft::soft_rnic {

inline void store_big16(std::uint8_t* place, std::uint32_t value) {
  place[0] = static_cast<std::uint8_t>(value >> 8);
  place[1] = static_cast<std::uint8_t>(value);
}

inline void store_big24(std::uint8_t* place, std::uint32_t value) {
  place[0] = static_cast<std::uint8_t>(value >> 16);
  store_big16(place + 1, value);
}

inline void store_big32(std::uint8_t* place, std::uint32_t value) {
  store_big16(place, value >> 16);
  store_big16(place + 2, value);
}

inline void store_big64(std::uint8_t* place, std::uint64_t value) {
  store_big32(place, static_cast<std::uint32_t>(value >> 32));
  store_big32(place + 4, static_cast<std::uint32_t>(value));
}

inline std::uint32_t load_big16(const std::uint8_t* place) {
  return static_cast<std::uint32_t>(place[0]) << 8 | place[1];
}

inline std::uint32_t load_big24(const std::uint8_t* place) {
  return static_cast<std::uint32_t>(place[0]) << 16 | load_big16(place + 1);
}

inline std::uint32_t load_big32(const std::uint8_t* place) {
  return load_big16(place) << 16 | load_big16(place + 2);
}

inline std::uint64_t load_big64(const std::uint8_t* place) {
  return static_cast<std::uint64_t>(load_big32(place)) << 32 | load_big32(place + 4);
}

}  // namespace weft::soft_rnic
