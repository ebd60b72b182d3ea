#include "tests/rig/soft_rnic/protocol/work_request.h"

#include <algorithm>

namespace weft::soft_rnic {

std::uint64_t PieceList::total() const {
  std::uint64_t sum = 0;
  for (std::uint32_t index = 0; index < count; ++index)
    sum += pieces[index].size;
  return sum;
}

PieceList PieceList::part(std::uint64_t offset, std::uint32_t size) const {
  PieceList result;
  for (std::uint32_t index = 0; index < count && size > 0; ++index) {
    const Piece& piece = pieces[index];
    if (offset >= piece.size) {
      offset -= piece.size;
      continue;
    }
    const auto taken = static_cast<std::uint32_t>(std::min<std::uint64_t>(piece.size - offset, size));
    result.pieces[result.count++] = {piece.data + offset, taken};
    size -= taken;
    offset = 0;
  }
  return result;
}

bool PieceList::touches(const MemoryRange& range) const {
  for (std::uint32_t index = 0; index < count; ++index) {
    if (range.overlaps(pieces[index].data, pieces[index].size)) return true;
  }
  return false;
}

std::uint32_t vendor_error_of(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return 0;
    case IBV_WC_RETRY_EXC_ERR:
      return 129;
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return 135;
    case IBV_WC_REM_ACCESS_ERR:
      return 136;
    case IBV_WC_REM_INV_REQ_ERR:
      return 137;
    case IBV_WC_REM_OP_ERR:
      return 138;
    case IBV_WC_WR_FLUSH_ERR:
      return 249;
    default:
      return static_cast<std::uint32_t>(status);
  }
}

}  // namespace weft::soft_rnic
