// Writing and reading the fields of a handshake message: little-endian integers, counted strings. Reading past the end
// is remembered and yields zeros, so that a message is read in one go and judged once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::setup {

class ByteWriter {
 public:
  void u8(std::uint8_t value) { integer(value, 1); }
  void u16(std::uint16_t value) { integer(value, 2); }
  void u32(std::uint32_t value) { integer(value, 4); }
  void u64(std::uint64_t value) { integer(value, 8); }
  void text(std::string_view value);  // 16-bit length, then the bytes; cut at 65535
  void raw(const void* data, std::size_t size);
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void integer(std::uint64_t value, int width);
  std::vector<std::byte> bytes_;
};

class ByteReader {
 public:
  ByteReader(const std::byte* data, std::size_t size) : data_(data), left_(size) {}
  std::uint8_t u8() { return std::uint8_t(integer(1)); }
  std::uint16_t u16() { return std::uint16_t(integer(2)); }
  std::uint32_t u32() { return std::uint32_t(integer(4)); }
  std::uint64_t u64() { return integer(8); }
  std::string text();
  void raw(void* out, std::size_t size);
  // Everything read was there, and nothing is left over.
  bool exact() const { return !short_ && left_ == 0; }
  bool complete() const { return !short_; }

 private:
  std::uint64_t integer(int width);
  bool take(std::size_t size);
  const std::byte* data_;
  std::size_t left_;
  bool short_ = false;
};

}  // namespace weft::setup
