#include "net_plugin/transfer/arrivals.h"

namespace weft::transfer {

void Arrivals::open(std::uint32_t number, std::size_t size) {
  Slot& entry = slot(number);
  entry.message = std::uint16_t(number);
  entry.pieces = kUnknown;
  entry.seen = 0;
  entry.size = entry.room = size;
  entry.which.reset();
}

void Arrivals::close(std::uint32_t number) {
  slot(number).message = kNone;
}

Arrivals::Verdict Arrivals::arrived(const Immediate& immediate, std::size_t bytes) {
  Slot& entry = slot(immediate.message);
  if (entry.message != immediate.message) return Verdict::stale;
  if (entry.pieces != immediate.pieces && entry.pieces != kUnknown) return Verdict::invalid;
  if (immediate.piece >= immediate.pieces) return Verdict::invalid;
  if (entry.which.test(immediate.piece)) return Verdict::duplicate;
  if (bytes > entry.room) return Verdict::invalid;
  entry.which.set(immediate.piece);
  entry.pieces = immediate.pieces;
  entry.seen++;
  entry.room -= bytes;
  return entry.seen == entry.pieces ? Verdict::completed : Verdict::accepted;
}

}  // namespace weft::transfer
