#include "net_plugin/transfer/receiver.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "common/text/format.h"

namespace weft::transfer {
namespace {

constexpr int kPollBatch = 16;
// Every so many records of a path one reports its completion, which frees the places of all before it.
constexpr std::uint32_t kSignalEvery = 16;
// Receives are queued again in lists of at least so many, to ring the doorbell less often.
constexpr int kQueueBatch = 16;

// wr_id: what completed, and on which path.
enum class Work : std::uint64_t { receive = 0, record = 1, flush = 2 };
std::uint64_t tag(Work work, int path) {
  return std::uint64_t(work) << 32 | std::uint64_t(path);
}
Work work_of(std::uint64_t id) {
  return Work(id >> 32);
}
int path_of(std::uint64_t id) {
  return int(id & 0xffffffff);
}

bool reaches_device_memory(const Receive* receives, int count) {
  return std::any_of(receives, receives + count,
                     [](const Receive& one) { return one.size != 0 && one.memory && one.memory->device_memory; });
}

}  // namespace

Receiver::Receiver(std::unique_ptr<Link> link, const RemoteRing& ring, const PieceLimits& limits, int receives,
                   std::optional<FlushPath> flush)
    : link_(std::move(link)),
      remote_(ring),
      limits_(limits),
      receives_(receives),
      flush_(std::move(flush)),
      paths_(link_->paths.size()),
      records_(std::make_unique<ClearToSend[]>(kSlots)),
      groups_(std::make_unique<std::array<Group, kSlots>>()) {
  for (Group& group : *groups_)
    group.request.receiver = this;
  for (Request& request : flushes_)
    request.receiver = this;
}

Result<std::unique_ptr<Receiver>> Receiver::create(std::unique_ptr<Link> link, const RemoteRing& ring,
                                                   const PieceLimits& limits, int receives,
                                                   std::optional<FlushPath> flush) {
  std::unique_ptr<Receiver> receiver(new Receiver(std::move(link), ring, limits, receives, std::move(flush)));
  auto region = receiver->link_->device->register_memory(receiver->records_.get(), sizeof(ClearToSend) * kSlots, false);
  if (!region) return region.take_error();
  receiver->records_region_ = region.take();
  const int queues = receiver->link_->srq ? 1 : int(receiver->paths_.size());
  for (int path = 0; path < queues; path++) {
    if (!receiver->queue_receives(path, receives)) return receiver->link_->failure()->error;
  }
  return receiver;
}

// How many pieces the sender may use for each message, so that it never meets an empty receive queue; 0: not now.
int Receiver::grant(const Receive* receives, int count, std::uint16_t* pieces) const {
  int owed = 0;
  for (const PathState& path : paths_)
    owed = std::max(owed, path.receives_owed);
  const int available = receives_ - granted_ - owed;
  if (available < count) return 0;
  int sum = 0;
  for (int i = 0; i < count; i++) {
    const int wanted = plan_pieces(receives[i].size, limits_, kMaxPieces).pieces;
    const int spare = available - sum - (count - 1 - i);
    pieces[i] = std::uint16_t(std::min(wanted, spare));
    sum += pieces[i];
  }
  return sum;
}

Progress Receiver::receive(const Receive* receives, int count, Request** request) {
  *request = nullptr;
  if (!link_->healthy(true, steady_now())) return Progress::failed;
  for (int i = 0; i < count; i++) {
    if (receives[i].size > kMaxMessage) {
      link_->fail(Error{text::format("a receive of {} bytes", receives[i].size),
                        {},
                        0,
                        "1 GiB is the most that NCCL receives at once"},
                  false);
      return Progress::failed;
    }
    if (arrivals_.is_open(next_ + std::uint32_t(i))) return Progress::not_yet;
  }
  Group& group = (*groups_)[next_ % kSlots];
  std::uint16_t pieces[kMaxGroup];
  const int granted = grant(receives, count, pieces);
  if (group.request.in_use || granted == 0) {
    return poll() ? Progress::not_yet : Progress::failed;
  }
  for (int i = 0; i < count; i++) {
    const std::uint32_t number = next_ + std::uint32_t(i), slot = number % kSlots;
    ClearToSend& record = records_[slot];
    record.address = reinterpret_cast<std::uint64_t>(receives[i].data);
    record.keys[0] = receives[i].memory->remote_key();
    record.size = std::uint32_t(receives[i].size);
    record.tag = receives[i].tag;
    record.pieces = pieces[i];
    record.group = std::uint8_t(count);
    record.index = std::uint8_t(i);
    record.number = number + 1;
    arrivals_.open(number, receives[i].size);
    group_of_[slot] = std::uint8_t(next_ % kSlots);
    granted_of_[slot] = pieces[i];
  }
  if (!post_records(next_, count)) return link_->failed() ? Progress::failed : Progress::not_yet;
  granted_ += granted;
  group.request.kind = RequestKind::receive;
  group.request.in_use = true;
  group.request.number = next_;
  group.request.group = count;
  group.missing = count;
  next_ += std::uint32_t(count);
  open_++;
  *request = &group.request;
  return Progress::done;
}

int Receiver::least_busy_path() const {
  int best = 0;
  for (int i = 1; i < int(paths_.size()); i++) {
    const int candidate = int((next_ + std::uint32_t(i)) % paths_.size());
    if (paths_[std::size_t(candidate)].posted < paths_[std::size_t(best)].posted) best = candidate;
  }
  return best;
}

// Writes the records of a group in one go, or in two where the ring wraps. Closes the messages again where no path has
// room.
bool Receiver::post_records(std::uint32_t first, int count) {
  const int index = least_busy_path();
  PathState& path = paths_[std::size_t(index)];
  if (path.posted + 2 > kRecordDepth) {
    for (int i = 0; i < count; i++)
      arrivals_.close(first + std::uint32_t(i));
    return poll() && false;
  }
  int left = count;
  std::uint32_t number = first;
  while (left > 0) {
    const std::uint32_t slot = number % kSlots;
    const int run = std::min(left, int(kSlots - slot));
    ibv_sge segment{};
    segment.addr = reinterpret_cast<std::uint64_t>(&records_[slot]);
    segment.length = std::uint32_t(sizeof(ClearToSend)) * std::uint32_t(run);
    segment.lkey = records_region_->lkey;
    ibv_send_wr work{};
    work.wr_id = tag(Work::record, index);
    work.sg_list = &segment;
    work.num_sge = 1;
    work.opcode = IBV_WR_RDMA_WRITE;
    path.unsignaled++;
    if (path.unsignaled == kSignalEvery) {
      work.send_flags = IBV_SEND_SIGNALED;
      path.unsignaled = 0;
    }
    work.wr.rdma.remote_addr = remote_.address + slot * sizeof(ClearToSend);
    work.wr.rdma.rkey = remote_.key;
    ibv_send_wr* bad = nullptr;
    if (const int code = ibv_post_send(link_->paths[std::size_t(index)].qp.get(), &work, &bad)) {
      return link_->fail_post("ibv_post_send", code, index);
    }
    path.posted++;
    number += std::uint32_t(run);
    left -= run;
  }
  return true;
}

Progress Receiver::test(Request& request, int* sizes) {
  if (link_->failed()) return Progress::failed;
  const bool flushing = request.kind == RequestKind::flush;
  Group& group = (*groups_)[request.number % kSlots];
  const auto finished = [&] { return flushing ? std::int32_t(flush_done_ - request.number) > 0 : group.missing == 0; };
  if (!finished()) {
    if (!poll()) return Progress::failed;
    if (!finished()) return link_->healthy(open_ > 0, steady_now()) ? Progress::not_yet : Progress::failed;
  }
  request.in_use = false;
  if (flushing) return Progress::done;
  for (int i = 0; i < request.group; i++) {
    const std::uint32_t number = request.number + std::uint32_t(i);
    if (sizes) sizes[i] = int(arrivals_.bytes(number));
    granted_ -= granted_of_[number % kSlots];
    arrivals_.close(number);
  }
  open_--;
  return Progress::done;
}

bool Receiver::poll() {
  ibv_wc completions[kPollBatch];
  while (true) {
    const int count = ibv_poll_cq(link_->cq.get(), kPollBatch, completions);
    if (count < 0) return link_->fail(Error{"ibv_poll_cq failed", {}, 0, {}}, false);
    for (int i = 0; i < count; i++) {
      const ibv_wc& completion = completions[i];
      const int path = path_of(completion.wr_id);
      if (completion.status != IBV_WC_SUCCESS) return link_->fail_completion(completion);
      switch (work_of(completion.wr_id)) {
        case Work::receive:
          if (!complete_receive(completion, path)) return false;
          break;
        case Work::record:
          paths_[std::size_t(path)].posted -= kSignalEvery;
          break;
        case Work::flush:
          flush_done_++;
          break;
      }
    }
    if (count < kPollBatch) return queue_owed();
  }
}

bool Receiver::complete_receive(const ibv_wc& completion, int path) {
  paths_[std::size_t(path)].receives_owed++;
  const Immediate immediate = unpack(ntohl(completion.imm_data));
  switch (arrivals_.arrived(immediate, completion.byte_len)) {
    case Arrivals::Verdict::completed:
      (*groups_)[group_of_[immediate.message % kSlots]].missing--;
      break;
    case Arrivals::Verdict::invalid:
      return link_->fail(Error{text::format("a piece that can't be: message {}, piece {} of {}, {} bytes",
                                            immediate.message, immediate.piece, immediate.pieces, completion.byte_len),
                               {},
                               0,
                               "the peer does not follow docs/protocol.md"});
    default:
      break;
  }
  return true;
}

bool Receiver::queue_owed() {
  for (int i = 0; i < int(paths_.size()); i++) {
    PathState& path = paths_[std::size_t(i)];
    if (path.receives_owed < kQueueBatch) continue;
    if (!queue_receives(i, path.receives_owed)) return false;
    path.receives_owed = 0;
  }
  return true;
}

bool Receiver::queue_receives(int path, int count) {
  ibv_recv_wr list[kPollBatch];
  while (count > 0) {
    const int run = std::min(count, kPollBatch);
    for (int i = 0; i < run; i++) {
      list[i] = {};
      list[i].wr_id = tag(Work::receive, path);
      list[i].next = i + 1 < run ? &list[i + 1] : nullptr;
    }
    ibv_recv_wr* bad = nullptr;
    const int code = link_->srq ? ibv_post_srq_recv(link_->srq.get(), list, &bad)
                                : ibv_post_recv(link_->paths[std::size_t(path)].qp.get(), list, &bad);
    if (code) return link_->fail_post(link_->srq ? "ibv_post_srq_recv" : "ibv_post_recv", code, path);
    count -= run;
  }
  return true;
}

Progress Receiver::flush(const Receive* receives, int count, Request** request) {
  *request = nullptr;
  if (!link_->healthy(false, steady_now())) return Progress::failed;
  if (!flush_ || !reaches_device_memory(receives, count)) return Progress::done;
  Request& one = flushes_[flush_next_ % flushes_.size()];
  if (one.in_use) {
    link_->fail(Error{"more flushes outstanding than NCCL's limit of 32", {}, 0, {}}, false);
    return Progress::failed;
  }
  // One read is enough for all buffers of the group: it is ordered behind every earlier write of this NIC.
  const Receive* last = receives + count - 1;
  while (last->size == 0 || !last->memory->device_memory)
    last--;
  ibv_sge segment{};
  segment.addr = reinterpret_cast<std::uint64_t>(flush_->landing.get());
  segment.length = 1;
  segment.lkey = flush_->landing_region->lkey;
  ibv_send_wr work{};
  work.wr_id = tag(Work::flush, 0);
  work.sg_list = &segment;
  work.num_sge = 1;
  work.opcode = IBV_WR_RDMA_READ;
  work.send_flags = IBV_SEND_SIGNALED;
  work.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(last->data);
  work.wr.rdma.rkey = last->memory->remote_key();
  ibv_send_wr* bad = nullptr;
  if (const int code = ibv_post_send(flush_->qp.get(), &work, &bad)) {
    link_->fail(system_error("ibv_post_send of a flush failed", code), false);
    return Progress::failed;
  }
  one.kind = RequestKind::flush;
  one.in_use = true;
  one.number = flush_next_++;
  *request = &one;
  return Progress::done;
}

}  // namespace weft::transfer
