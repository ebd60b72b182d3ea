#include "tests/rig/emulated_cuda/kernels/works.h"

#include <cstring>
#include <string>

namespace weft::nccl_kernels {
namespace {

// Works are copied in pieces, so that one may wrap around the end of the FIFO.
constexpr std::size_t kPieceBytes = 16;

const char* piece_at(const KernelArguments& arguments, std::uint32_t offset) {
  if (arguments.work_storage == kInArguments) return reinterpret_cast<const char*>(&arguments) + offset;
  return arguments.work_buffer + (offset & arguments.work_mask);
}

}  // namespace

const Batch* first_batch(const KernelArguments& arguments, int block) {
  return reinterpret_cast<const Batch*>(&arguments + 1) + block;
}

void append_works(const KernelArguments& arguments, const Batch& batch, Works& works) {
  works.kind = batch.work_kind();
  const std::size_t bytes = kWorkBytes[works.kind];
  if (bytes == 0) not_emulated("work kind " + std::to_string(works.kind));
  for (std::uint32_t i = 0; i < 64; i++) {
    if ((batch.offset_set >> i & 1) == 0) continue;
    const std::size_t end = works.records.size();
    works.records.resize(end + bytes);
    const auto begin = batch.offset_base + i * std::uint32_t(bytes);
    for (std::size_t done = 0; done < bytes; done += kPieceBytes) {
      std::memcpy(works.records.data() + end + done, piece_at(arguments, begin + std::uint32_t(done)), kPieceBytes);
    }
    works.count++;
  }
}

int channel_of_block(std::uint64_t channel_mask, int block) {
  for (int channel = 0; channel < kMaxChannels; channel++)
    if ((channel_mask >> channel & 1) != 0 && block-- == 0) return channel;
  not_emulated("more blocks than channels");
}

}  // namespace weft::nccl_kernels
