#include "net_plugin/setup/bytes.h"

#include <algorithm>
#include <cstring>

namespace weft::setup {

void ByteWriter::integer(std::uint64_t value, int width) {
  for (int i = 0; i < width; i++)
    bytes_.push_back(std::byte(value >> (8 * i)));
}

void ByteWriter::text(std::string_view value) {
  value = value.substr(0, 0xffff);
  u16(std::uint16_t(value.size()));
  raw(value.data(), value.size());
}

void ByteWriter::raw(const void* data, std::size_t size) {
  const auto* bytes = static_cast<const std::byte*>(data);
  bytes_.insert(bytes_.end(), bytes, bytes + size);
}

bool ByteReader::take(std::size_t size) {
  if (size > left_) {
    short_ = true;
    left_ = 0;
    return false;
  }
  data_ += size;
  left_ -= size;
  return true;
}

std::uint64_t ByteReader::integer(int width) {
  const std::byte* start = data_;
  if (!take(std::size_t(width))) return 0;
  std::uint64_t value = 0;
  for (int i = 0; i < width; i++)
    value |= std::uint64_t(start[i]) << (8 * i);
  return value;
}

std::string ByteReader::text() {
  const std::size_t size = u16();
  const std::byte* start = data_;
  if (!take(size)) return {};
  return std::string(reinterpret_cast<const char*>(start), size);
}

void ByteReader::raw(void* out, std::size_t size) {
  const std::byte* start = data_;
  if (take(size))
    std::memcpy(out, start, size);
  else
    std::memset(out, 0, size);
}

}  // namespace weft::setup
