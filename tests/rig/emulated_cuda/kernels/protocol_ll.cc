// LL: 16-byte lines of data, flag, data, flag, four bytes each. README §6.2.
#include <cstring>

#include "tests/rig/emulated_cuda/kernels/line_step.h"

namespace weft::nccl_kernels {
namespace {

struct LLLines {
  static constexpr Protocol kProtocol = kLL;
  static constexpr std::size_t kLineBytes = 16, kDataBytes = 8, kGroup = 1;
  static constexpr bool kStoresTail = false, kWaitsForTail = false;

  // The flag has 32 bits. Before it wraps around, slots are written as a whole, so that no line keeps a flag of the
  // round before.
  static bool fills_slot(std::uint64_t step) {
    constexpr std::uint64_t kCleaning = 0x7ffffff8;
    return (step & kCleaning) == kCleaning;
  }

  static std::uint64_t flag(std::uint64_t step) { return std::uint64_t(std::uint32_t(step + 1)) << 32; }

  // Each half is one 8-byte word, so that a flag never comes without its data.
  static void write(char* line, const char* data, std::uint64_t step) {
    auto* halves = reinterpret_cast<std::uint64_t*>(line);
    std::uint32_t words[2];
    std::memcpy(words, data, sizeof words);
    store_release(halves, words[0] | flag(step));
    store_release(halves + 1, words[1] | flag(step));
  }

  static bool read(const char* line, char* data, std::uint64_t step) {
    const auto* halves = reinterpret_cast<const std::uint64_t*>(line);
    const std::uint64_t first = load_acquire(halves), second = load_acquire(halves + 1);
    constexpr std::uint64_t kFlagBits = 0xffffffff00000000;
    if ((first & kFlagBits) != flag(step) || (second & kFlagBits) != flag(step)) return false;
    const std::uint32_t words[2] = {std::uint32_t(first), std::uint32_t(second)};
    std::memcpy(data, words, sizeof words);
    return true;
  }
};

}  // namespace

void Primitives::step_ll(const Step& step) {
  LineStep<LLLines>(*this, step).run();
}

}  // namespace weft::nccl_kernels
