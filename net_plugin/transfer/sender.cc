#include "net_plugin/transfer/sender.h"

#include <arpa/inet.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "common/text/format.h"

namespace weft::transfer {
namespace {

// Completions taken from the queue at a time.
constexpr int kPollBatch = 16;

// wr_id of the last work request of a doorbell, the one that reports: its path, and how many it stands for.
std::uint64_t report_id(int path, std::uint32_t pieces) {
  return std::uint64_t(pieces) << 32 | std::uint64_t(path);
}
std::size_t path_of(std::uint64_t id) {
  return std::size_t(id & 0xffffffff);
}
std::uint32_t pieces_of(std::uint64_t id) {
  return std::uint32_t(id >> 32);
}

// Asks for the time once, and only where it matters: a look at the clock costs as much as a small message's
// bookkeeping.
class LazyClock {
 public:
  Nanoseconds operator()() {
    if (time_ == 0) time_ = steady_now();
    return time_;
  }

 private:
  Nanoseconds time_ = 0;
};

}  // namespace

Result<ClearToSendRing> ClearToSendRing::create(const std::vector<LinkDevice>& devices) {
  ClearToSendRing ring;
  ring.records_ = std::make_unique<ClearToSend[]>(kSlots);
  for (const LinkDevice& device : devices) {
    // Records are polled: they must become visible in the order in which the NIC writes them, hence no relaxed
    // ordering.
    auto region = device.opened->register_memory(ring.records_.get(), sizeof(ClearToSend) * kSlots, false);
    if (!region) return region.take_error();
    ring.regions_.push_back(region.take());
  }
  return ring;
}

const ClearToSend* ClearToSendRing::find(std::uint32_t number) const {
  ClearToSend& record = records_[number % kSlots];
  // Written by the NIC: acquire, so that the other fields are read after the number also on weakly ordered processors.
  const std::uint32_t present = std::atomic_ref<std::uint32_t>(record.number).load(std::memory_order_acquire);
  return present == number + 1 ? &record : nullptr;
}

Sender::PathState::PathState(int index, const DataPath& where)
    : qp(where.qp.get()),
      inline_bytes(where.inline_bytes),
      device(where.device),
      peer_device(where.peer_device),
      pieces(std::make_unique<std::array<Piece, kSendDepth>>()) {
  work.request.wr_id = report_id(index, 1);
  work.request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
}

Sender::Sender(std::unique_ptr<Link> link, ClearToSendRing ring, const PieceLimits& limits)
    : link_(std::move(link)),
      ring_(std::move(ring)),
      plans_(limits),
      scheduler_(int(link_->paths.size()), int(link_->most_paths())),
      messages_(std::make_unique<std::array<Message, kSlots>>()) {
  paths_.reserve(link_->most_paths());
  take_paths_of_link();
  for (Message& message : *messages_)
    message.sender = this;
  for (Work& work : work_)
    work.request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
}

// Sends meet receives in order; inside a group the tag decides. The record of the group's first member says how many
// there are.
const ClearToSend* Sender::match(int tag, std::uint32_t* number) const {
  const ClearToSend* first = ring_.find(group_);
  *number = group_;
  if (!first || (first->group == 1 && first->tag == tag)) return first;
  for (std::uint32_t i = 0; i < first->group; i++) {
    if (matched_ >> i & 1) continue;
    *number = group_ + i;
    const ClearToSend* record = ring_.find(*number);
    if (record && record->tag == tag) return record;
  }
  return nullptr;
}

// The next group's turn comes when all of this one have met their sends.
void Sender::count_matched(std::uint32_t number, std::uint32_t members) {
  if (members == 1) {
    group_++;
    return;
  }
  matched_ |= 1u << (number - group_);
  if (matched_ != (1u << members) - 1) return;
  group_ += members;
  matched_ = 0;
}

Progress Sender::send(const void* data, std::size_t size, int tag, const Registration& memory, Request** request) {
  *request = nullptr;
  if (!link_->undisturbed()) [[unlikely]] {
    if (!link_->healthy(true)) return Progress::failed;
    take_new_paths();
  }
  if (size > kMaxMessage) {
    link_->fail(Error{text::format("a message of {} bytes", size), {}, 0, "1 GiB is the most that NCCL sends at once"},
                false);
    return Progress::failed;
  }
  std::uint32_t number = 0;
  const ClearToSend* offer = match(tag, &number);
  if (!offer) return Progress::not_yet;
  Message& message = (*messages_)[number % kSlots];
  if (message.in_use) return Progress::not_yet;
  if (size > offer->size) {
    link_->fail(Error{text::format("a message of {} bytes meets a receive of {}", size, offer->size), {}, 0, {}},
                false);
    return Progress::failed;
  }
  message.kind = RequestKind::send;
  message.in_use = true;
  message.number = number;
  message.data = static_cast<const std::byte*>(data);
  message.size = size;
  message.memory = &memory;
  message.offer = offer;
  message.plan = plans_.plan(size, offer->pieces);
  message.immediate = pack({std::uint16_t(number), 0, message.plan.pieces});
  message.offset = 0;
  message.posted = message.acknowledged = 0;
  queue_[queue_next_++ % kSlots] = std::uint8_t(number % kSlots);
  count_matched(number, offer->group);
  open_++;
  waiting_bytes_ += size;
  link_->peer->count_sent(size);
  if (!pump()) return Progress::failed;
  *request = &message;
  return Progress::done;
}

Progress Sender::test(Request& request, int* size) {
  Message& message = static_cast<Message&>(request);
  const bool undisturbed = link_->undisturbed();
  if (!undisturbed && link_->failed()) [[unlikely]]
    return Progress::failed;
  if (message.acknowledged != message.plan.pieces) {
    if (!undisturbed) take_new_paths();
    if (!poll() || (queue_first_ != queue_next_ && !pump())) return Progress::failed;
    if (message.acknowledged != message.plan.pieces) {
      return undisturbed || link_->healthy(open_ > 0) ? Progress::not_yet : Progress::failed;
    }
  }
  if (size) *size = int(message.size);
  message.in_use = false;
  open_--;
  return Progress::done;
}

void Sender::take_paths_of_link() {
  while (paths_.size() < link_->paths.size())
    paths_.emplace_back(int(paths_.size()), link_->paths[paths_.size()]);
}

void Sender::take_new_paths() {
  const std::unique_ptr<PathBatch> offer = link_->peer->take_offer();
  if (!offer) return;
  link_->add(*offer);
  take_paths_of_link();
  scheduler_.grow(int(link_->paths.size()));
  plans_.set_paths(int(link_->paths.size()));
}

bool Sender::poll() {
  ibv_wc completions[kPollBatch];
  LazyClock now;
  for (const verbs::CompletionQueue& cq : link_->cqs) {
    int count = kPollBatch;
    while (count == kPollBatch) {
      count = ibv_poll_cq(cq.get(), kPollBatch, completions);
      if (count < 0) return link_->fail(Error{"ibv_poll_cq failed", {}, 0, {}}, false);
      for (const ibv_wc *one = completions, *end = completions + count; one != end; one++) {
        if (one->status != IBV_WC_SUCCESS) return link_->fail_completion(*one);
        const std::size_t index = path_of(one->wr_id);
        PathState& path = paths_[index];
        // A queue pair completes in order: what reports stands for all before it.
        for (std::uint32_t left = pieces_of(one->wr_id); left > 0; left--) {
          const Piece& piece = (*path.pieces)[path.first++ % kSendDepth];
          piece.message->acknowledged++;
          scheduler_.completed(int(index), piece.bytes, piece.under_way, piece.posted_at,
                               piece.posted_at != 0 ? now() : 0);
        }
      }
    }
  }
  return true;
}

[[gnu::always_inline]] inline void Sender::fill(Work& work, Message& message, PathState& path, std::size_t bytes) {
  work.segment.addr = reinterpret_cast<std::uint64_t>(message.data + message.offset);
  work.segment.length = std::uint32_t(bytes);
  work.segment.lkey = message.memory->local_keys[path.device];
  ibv_send_wr& request = work.request;
  request.sg_list = &work.segment;
  request.num_sge = bytes != 0 ? 1 : 0;
  // The processor copies an inlined message itself, which it can't from GPU memory.
  request.send_flags = bytes <= path.inline_bytes && !message.memory->device_memory ? unsigned(IBV_SEND_INLINE) : 0;
  request.imm_data = htonl(with_piece(message.immediate, std::uint8_t(message.posted)));
  request.wr.rdma.remote_addr = message.offer->address + message.offset;
  request.wr.rdma.rkey = message.offer->keys[path.peer_device];
}

[[gnu::always_inline]] inline void Sender::remember(Message& message, PathState& path, std::size_t bytes,
                                                    std::size_t under_way, Nanoseconds now) {
  Piece& piece = (*path.pieces)[path.next++ % kSendDepth];
  piece.message = &message;
  piece.bytes = std::uint32_t(bytes);
  piece.under_way = under_way;
  piece.posted_at = now;
  message.posted++;
  message.offset += bytes;
  waiting_bytes_ -= bytes;
}

[[gnu::always_inline]] inline bool Sender::post(Message& message, int index, std::size_t bytes, Nanoseconds now) {
  PathState& path = paths_[std::size_t(index)];
  fill(path.work, message, path, bytes);
  path.work.request.send_flags |= IBV_SEND_SIGNALED;
  remember(message, path, bytes, scheduler_.holds(index, bytes), now);
  ibv_send_wr* bad = nullptr;
  const int code = ibv_post_send(path.qp, &path.work.request, &bad);
  return code == 0 || link_->fail_post("ibv_post_send", code, index);
}

template <class Clock>
bool Sender::post_on_good_paths(Message& message, Clock& now) {
  const PiecePlan plan = message.plan;
  while (message.posted != plan.pieces) {
    const PathScheduler::Turn turn = scheduler_.next_good();
    PathScheduler::Turn left = turn;
    for (; left.paths != 0 && message.posted != plan.pieces; left.paths &= left.paths - 1) {
      const int path = left.next();
      const std::size_t bytes = std::min(message.size - message.offset, plan.bytes);
      if (!post(message, path, bytes, scheduler_.measures(path, bytes, plan.pieces == 1) ? now() : 0)) return false;
    }
    if (turn.paths == 0) return true;
    scheduler_.taken({turn.first, turn.paths ^ left.paths});
  }
  return true;
}

bool Sender::pump() {
  LazyClock now;
  while (queue_first_ != queue_next_) {
    Message& message = (*messages_)[queue_[queue_first_ % kSlots]];
    const PiecePlan plan = message.plan;
    if (scheduler_.plenty(std::min(plan.bytes, message.size), waiting_bytes_) && !post_on_good_paths(message, now))
      return false;
    while (message.posted != plan.pieces) {
      const std::size_t bytes = std::min(message.size - message.offset, plan.bytes);
      const int path = scheduler_.choose(bytes, waiting_bytes_ - bytes);
      if (path < 0 || paths_[std::size_t(path)].full()) return ring_doorbells();
      prepare(message, path, bytes, scheduler_.measures(path, bytes, plan.pieces == 1) ? now() : 0);
      if (next_work_ == work_.data() + kMostWork && !ring_doorbells()) return false;
    }
    queue_first_++;
  }
  return ring_doorbells();
}

void Sender::prepare(Message& message, int index, std::size_t bytes, Nanoseconds now) {
  PathState& path = paths_[std::size_t(index)];
  Work& work = *next_work_++;
  fill(work, message, path, bytes);
  work.request.wr_id = std::uint64_t(index);
  work.request.next = nullptr;
  if (path.chained++ != 0) path.chain_last->next = &work.request;
  path.chain_last = &work.request;
  remember(message, path, bytes, scheduler_.posted(index, bytes), now);
}

// One list of work requests for each path; only the last of a list reports its completion.
bool Sender::ring_doorbells() {
  const Work* const end = std::exchange(next_work_, work_.data());
  for (Work* work = work_.data(); work != end; work++) {
    const std::size_t index = path_of(work->request.wr_id);
    PathState& path = paths_[index];
    // Not the first of its path: on its list, which has gone already.
    if (path.chained == 0) continue;
    path.chain_last->wr_id = report_id(int(index), std::exchange(path.chained, 0));
    path.chain_last->send_flags |= IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    if (const int code = ibv_post_send(path.qp, &work->request, &bad)) {
      return link_->fail_post("ibv_post_send", code, int(index));
    }
  }
  return true;
}

}  // namespace weft::transfer
