#include "net_plugin/transfer/arrivals.h"

namespace weft::transfer {

void Arrivals::open(std::uint32_t number, std::size_t size) {
  Slot& entry = slot(number);
  entry.open = true;
  entry.message = std::uint16_t(number);
  entry.pieces = kUnknown;
  entry.seen = 0;
  entry.bytes = 0;
  entry.size = size;
  entry.which.reset();
}

void Arrivals::close(std::uint32_t number) {
  slot(number).open = false;
}

Arrivals::Verdict Arrivals::arrived(const Immediate& immediate, std::size_t bytes) {
  Slot& entry = slot(immediate.message);
  if (!entry.open || entry.message != immediate.message) return Verdict::stale;
  if (entry.pieces != kUnknown && entry.pieces != immediate.pieces) return Verdict::invalid;
  if (immediate.piece >= immediate.pieces) return Verdict::invalid;
  if (entry.which.test(immediate.piece)) return Verdict::duplicate;
  if (entry.bytes + bytes > entry.size) return Verdict::invalid;
  entry.which.set(immediate.piece);
  entry.pieces = immediate.pieces;
  entry.seen++;
  entry.bytes += bytes;
  return entry.seen == entry.pieces ? Verdict::completed : Verdict::accepted;
}

}  // namespace weft::transfer
