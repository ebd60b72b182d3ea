// LL128: 128-byte lines of 15 words of data and one flag. README §6.3.
#include <cstring>

#include "tests/rig/emulated_cuda/kernels/line_step.h"

namespace weft::nccl_kernels {
namespace {

struct LL128Lines {
  static constexpr Protocol kProtocol = kLL128;
  static constexpr std::size_t kLineBytes = 128, kDataBytes = 120, kGroup = 16;
  static constexpr bool kStoresTail = true;
  // A GPU reads a line at once. Here whoever fills it may be the operating system's copy out of a socket or a NIC's
  // memcpy, and those write out of order: Intel's manual (volume 1, "Fast-String Operation and Out-of-Order Stores")
  // asks for a flag of its own after such a copy. *tail, which the proxy stores when the data is there, is that flag.
  static constexpr bool kWaitsForTail = true;

  static bool fills_slot(std::uint64_t) { return false; }  // the flag has 64 bits

  static std::uint64_t* flag_of(char* line) { return reinterpret_cast<std::uint64_t*>(line + kDataBytes); }

  // The order of the data within a line is free: both ends are emulated, and a proxy looks at the flag only.
  static void write(char* line, const char* data, std::uint64_t step) {
    std::memcpy(line, data, kDataBytes);
    store_release(flag_of(line), step + 1);
  }

  static bool read(const char* line, char* data, std::uint64_t step) {
    if (load_acquire(flag_of(const_cast<char*>(line))) != step + 1) return false;
    std::memcpy(data, line, kDataBytes);
    return true;
  }
};

}  // namespace

void Primitives::step_ll128(const Step& step) {
  LineStep<LL128Lines>(*this, step).run();
}

}  // namespace weft::nccl_kernels
