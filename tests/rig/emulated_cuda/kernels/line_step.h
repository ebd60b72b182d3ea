// The step of the two protocols that carry their flags within the data, in lines: LL and LL128. `Lines` says how a line
// is made.
#pragma once

#include <algorithm>
#include <cstring>

#include "tests/rig/emulated_cuda/kernels/merge.h"
#include "tests/rig/emulated_cuda/kernels/primitives.h"

namespace weft::nccl_kernels {

// Lines::kLineBytes, kDataBytes      size of a line, and of the data in it
// Lines::kGroup                      lines come in multiples of this
// Lines::kStoresTail                 whether a sender counts in *tail
// Lines::kWaitsForTail               whether a receiver waits for *tail before it looks at lines
// Lines::buffer_bytes(communicator)  of a whole FIFO
// Lines::write(line, data, step)     with the step's flag, which must become visible last
// Lines::read(line, data, step)      false while the line does not carry the step's flag
template <class Lines>
class LineStep {
 public:
  LineStep(Primitives& primitives, const Step& step)
      : primitives_(primitives), reduction_(primitives.reduction_), step_(step) {}

  void run() {
    const std::size_t bytes = std::size_t(step_.elements) * reduction_.element_bytes();
    constexpr std::size_t kGroupBytes = Lines::kDataBytes * Lines::kGroup;
    lines_ = (bytes + kGroupBytes - 1) / kGroupBytes * Lines::kGroup;
    if (step_.send && !open_slots()) return;
    if (Lines::kWaitsForTail && step_.receive && !wait_for_tails()) return;
    for (std::size_t line = 0; line < lines_; line += kBlockLines)
      if (!run_block(line, std::min(kBlockLines, lines_ - line), bytes)) return;
    close_slots();
  }

 private:
  // Lines handled at a time: a small multiple of every element's size and of both protocols' groups.
  static constexpr std::size_t kBlockBytes = 1920;
  static constexpr std::size_t kBlockLines = kBlockBytes / Lines::kDataBytes;

  std::size_t slot_bytes() const {
    return std::size_t(primitives_.block_.communicator->buffer_bytes[Lines::kProtocol]) / kSteps;
  }

  char* slot(const Connection& connection) const {
    return connection.info->buffers[Lines::kProtocol] + connection.step % kSteps * slot_bytes();
  }

  bool open_slots() {
    for (Connection& sender : primitives_.senders_) {
      const std::size_t lines = Lines::fills_slot(sender.step) ? slot_bytes() / Lines::kLineBytes : lines_;
      if (!primitives_.wait_for_slot(sender, ssize_t(lines * Lines::kLineBytes))) return false;
    }
    return true;
  }

  bool wait_for_tails() {
    for (const Connection& receiver : primitives_.receivers_) {
      const std::uint64_t* tail = receiver.info->tail;
      if (!wait_until(primitives_.block_, [&] { return load_acquire(tail) > receiver.step; })) {
        primitives_.aborted_ = true;
        return false;
      }
    }
    return true;
  }

  bool run_block(std::size_t first, std::size_t lines, std::size_t total_bytes) {
    const std::size_t offset = first * Lines::kDataBytes;
    const std::size_t bytes = std::min(lines * Lines::kDataBytes, total_bytes - std::min(offset, total_bytes));
    alignas(64) char received[kMaxConnections][kBlockBytes];
    alignas(64) char result[kBlockBytes];
    Inputs inputs;
    if (step_.source) inputs.own = step_.source + offset;
    if (step_.receive) {
      for (Connection& receiver : primitives_.receivers_) {
        char* data = received[inputs.received_count];
        if (!read_lines(receiver, first, lines, data)) return false;
        inputs.received[std::size_t(inputs.received_count++)] = data;
      }
    }
    Outputs outputs;
    outputs.add(result);
    if (step_.destination) outputs.add(step_.destination + offset);
    merge(reduction_, inputs, outputs, bytes / reduction_.element_bytes(), step_.last_reduction);
    if (step_.send) {
      std::memset(result + bytes, 0, lines * Lines::kDataBytes - bytes);
      for (Connection& sender : primitives_.senders_)
        write_lines(sender, first, lines, result);
    }
    return true;
  }

  bool read_lines(const Connection& receiver, std::size_t first, std::size_t lines, char* data) {
    const char* line = slot(receiver) + first * Lines::kLineBytes;
    for (std::size_t i = 0; i < lines; i++, line += Lines::kLineBytes, data += Lines::kDataBytes) {
      if (!wait_until(primitives_.block_, [&] { return Lines::read(line, data, receiver.step); })) {
        primitives_.aborted_ = true;
        return false;
      }
    }
    return true;
  }

  void write_lines(const Connection& sender, std::size_t first, std::size_t lines, const char* data) {
    char* line = slot(sender) + first * Lines::kLineBytes;
    for (std::size_t i = 0; i < lines; i++, line += Lines::kLineBytes, data += Lines::kDataBytes)
      Lines::write(line, data, sender.step);
  }

  void close_slots() {
    if (step_.receive)
      for (Connection& receiver : primitives_.receivers_)
        store_release(receiver.info->head, ++receiver.step);
    if (!step_.send) return;
    for (Connection& sender : primitives_.senders_) {
      if (Lines::fills_slot(sender.step)) fill_rest(sender);
      sender.step++;
      if (Lines::kStoresTail) store_release(sender.info->tail, sender.step);
    }
  }

  void fill_rest(const Connection& sender) {
    const char nothing[Lines::kDataBytes] = {};
    for (std::size_t i = lines_; i < slot_bytes() / Lines::kLineBytes; i++)
      write_lines(sender, i, 1, nothing);
  }

  Primitives& primitives_;
  const Reduction& reduction_;
  const Step& step_;
  std::size_t lines_ = 0;
};

}  // namespace weft::nccl_kernels
