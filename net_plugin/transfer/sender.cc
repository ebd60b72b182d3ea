#include "net_plugin/transfer/sender.h"

#include <arpa/inet.h>

#include <algorithm>
#include <atomic>

#include "common/text/format.h"

namespace weft::transfer {
namespace {

// Completions taken from the queue at a time.
constexpr int kPollBatch = 16;

}  // namespace

Result<ClearToSendRing> ClearToSendRing::create(const setup::OpenDevice& device) {
  ClearToSendRing ring;
  ring.records_ = std::make_unique<ClearToSend[]>(kSlots);
  // Records are polled: they must become visible in the order in which the NIC writes them, hence no relaxed ordering.
  auto region = device.register_memory(ring.records_.get(), sizeof(ClearToSend) * kSlots, false);
  if (!region) return region.take_error();
  ring.region_ = region.take();
  return ring;
}

const ClearToSend* ClearToSendRing::find(std::uint32_t number) const {
  ClearToSend& record = records_[number % kSlots];
  // Written by the NIC: acquire, so that the other fields are read after the number also on weakly ordered processors.
  const std::uint32_t present = std::atomic_ref<std::uint32_t>(record.number).load(std::memory_order_acquire);
  return present == number + 1 ? &record : nullptr;
}

Sender::Sender(std::unique_ptr<Link> link, ClearToSendRing ring, const PieceLimits& limits)
    : link_(std::move(link)),
      ring_(std::move(ring)),
      limits_(limits),
      scheduler_(int(link_->paths.size())),
      paths_(link_->paths.size()),
      messages_(std::make_unique<std::array<Message, kSlots>>()) {
  for (Message& message : *messages_)
    message.request.sender = this;
}

// Sends meet receives in order; inside a group the tag decides. The record of the group's first member says how many
// there are.
const ClearToSend* Sender::match(int tag, std::uint32_t* number) const {
  const ClearToSend* first = ring_.find(group_);
  if (!first) return nullptr;
  for (std::uint32_t i = 0; i < first->group; i++) {
    if (matched_ >> i & 1) continue;
    const ClearToSend* record = ring_.find(group_ + i);
    if (record && record->tag == tag) {
      *number = group_ + i;
      return record;
    }
  }
  return nullptr;
}

void Sender::advance_group() {
  const ClearToSend* first = ring_.find(group_);
  const std::uint32_t whole = (1u << first->group) - 1;
  if (matched_ != whole) return;
  group_ += first->group;
  matched_ = 0;
}

Progress Sender::send(const void* data, std::size_t size, int tag, const Registration& memory, Request** request) {
  *request = nullptr;
  const Nanoseconds now = steady_now();
  if (!link_->healthy(true, now)) return Progress::failed;
  if (size > kMaxMessage) {
    link_->fail(Error{text::format("a message of {} bytes", size), {}, 0, "1 GiB is the most that NCCL sends at once"},
                false);
    return Progress::failed;
  }
  std::uint32_t number = 0;
  const ClearToSend* record = match(tag, &number);
  if (!record) return Progress::not_yet;
  Message& message = (*messages_)[number % kSlots];
  if (message.request.in_use) return Progress::not_yet;
  if (size > record->size) {
    link_->fail(Error{text::format("a message of {} bytes meets a receive of {}", size, record->size), {}, 0, {}},
                false);
    return Progress::failed;
  }
  message.request.kind = RequestKind::send;
  message.request.in_use = true;
  message.request.number = number;
  message.data = static_cast<const std::byte*>(data);
  message.size = size;
  message.local_key = memory.local_key();
  message.remote_address = record->address;
  message.remote_key = record->keys[0];
  message.number = number;
  message.plan = plan_pieces(size, limits_, record->pieces);
  message.posted = message.acknowledged = 0;
  queue_[queue_next_++ % kSlots] = std::uint8_t(number % kSlots);
  matched_ |= 1u << (number - group_);
  advance_group();
  open_++;
  if (!pump(now)) return Progress::failed;
  *request = &message.request;
  return Progress::done;
}

Progress Sender::test(Request& request, int* size) {
  Message& message = (*messages_)[request.number % kSlots];
  if (link_->failed()) return Progress::failed;
  if (message.acknowledged != message.plan.pieces) {
    const Nanoseconds now = steady_now();
    if (!poll(now) || !pump(now)) return Progress::failed;
    if (message.acknowledged != message.plan.pieces) {
      return link_->healthy(waiting(), now) ? Progress::not_yet : Progress::failed;
    }
  }
  if (size) *size = int(message.size);
  request.in_use = false;
  open_--;
  return Progress::done;
}

bool Sender::poll(Nanoseconds now) {
  ibv_wc completions[kPollBatch];
  while (true) {
    const int count = ibv_poll_cq(link_->cq.get(), kPollBatch, completions);
    if (count < 0) return link_->fail(Error{"ibv_poll_cq failed", {}, 0, {}}, false);
    for (int i = 0; i < count; i++) {
      const auto index = std::size_t(completions[i].wr_id);
      if (completions[i].status != IBV_WC_SUCCESS) return link_->fail_completion(completions[i]);
      PathState& path = paths_[index];
      const Piece& piece = path.pieces[path.first++ % kSendDepth];
      scheduler_.completed(int(index), piece.bytes, piece.under_way, piece.posted_at, now);
      (*messages_)[piece.slot].acknowledged++;
    }
    if (count < kPollBatch) return true;
  }
}

bool Sender::pump(Nanoseconds now) {
  while (queue_first_ != queue_next_) {
    Message& message = (*messages_)[queue_[queue_first_ % kSlots]];
    while (message.posted != message.plan.pieces) {
      const std::size_t left = message.size - std::size_t(message.posted) * message.plan.bytes;
      const int path = scheduler_.choose(std::min(left, message.plan.bytes), now);
      if (path < 0 || paths_[std::size_t(path)].full()) return true;
      if (!post(message, path, now)) return false;
    }
    queue_first_++;
  }
  return true;
}

bool Sender::post(Message& message, int index, Nanoseconds now) {
  const std::size_t offset = std::size_t(message.posted) * message.plan.bytes;
  const auto bytes = std::uint32_t(std::min(message.size - offset, message.plan.bytes));
  ibv_sge segment{};
  segment.addr = reinterpret_cast<std::uint64_t>(message.data + offset);
  segment.length = bytes;
  segment.lkey = message.local_key;
  ibv_send_wr work{};
  work.wr_id = std::uint64_t(index);
  work.sg_list = &segment;
  work.num_sge = bytes != 0 ? 1 : 0;
  work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  work.send_flags = IBV_SEND_SIGNALED;
  work.imm_data = htonl(pack({std::uint16_t(message.number), std::uint8_t(message.posted), message.plan.pieces}));
  work.wr.rdma.remote_addr = message.remote_address + offset;
  work.wr.rdma.rkey = message.remote_key;
  ibv_send_wr* bad = nullptr;
  if (const int code = ibv_post_send(link_->paths[std::size_t(index)].qp.get(), &work, &bad)) {
    return link_->fail_post("ibv_post_send", code, index);
  }
  PathState& path = paths_[std::size_t(index)];
  path.pieces[path.next++ % kSendDepth] = {std::uint8_t(message.number % kSlots), bytes,
                                           scheduler_.posted(index, bytes), now};
  message.posted++;
  return true;
}

}  // namespace weft::transfer
