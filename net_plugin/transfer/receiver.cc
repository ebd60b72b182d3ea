#include "net_plugin/transfer/receiver.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "common/text/format.h"

namespace weft::transfer {
namespace {

constexpr int kPollBatch = 16;
// Every so many records of a path one reports its completion, which frees the places of all before it.
constexpr std::uint32_t kSignalEvery = 16;

// wr_id: what completed, and on which path, device or receive queue.
enum class Work : std::uint64_t { receive = 0, record = 1, flush = 2 };
std::uint64_t tag(Work work, int index) {
  return std::uint64_t(work) << 32 | std::uint64_t(index);
}
Work work_of(std::uint64_t id) {
  return Work(id >> 32);
}
int index_of(std::uint64_t id) {
  return int(id & 0xffffffff);
}

bool reaches_device_memory(const Receive* receives, int count) {
  return std::any_of(receives, receives + count,
                     [](const Receive& one) { return one.size != 0 && one.memory && one.memory->device_memory; });
}

}  // namespace

int queue_receives(ibv_srq* srq, ibv_qp* qp, int index, int count) {
  ibv_recv_wr list[kPollBatch];
  while (count > 0) {
    const int run = std::min(count, kPollBatch);
    for (int i = 0; i < run; i++) {
      list[i] = {};
      list[i].wr_id = tag(Work::receive, index);
      list[i].next = i + 1 < run ? &list[i + 1] : nullptr;
    }
    ibv_recv_wr* bad = nullptr;
    if (const int code = srq ? ibv_post_srq_recv(srq, list, &bad) : ibv_post_recv(qp, list, &bad)) return code;
    count -= run;
  }
  return 0;
}

Receiver::Receiver(std::unique_ptr<Link> link, const RemoteRing& ring, const ReceiveLimits& limits,
                   std::vector<FlushPath> flush)
    : link_(std::move(link)),
      remote_(ring),
      limits_(limits),
      plans_(limits.pieces),
      flush_(std::move(flush)),
      flush_state_(flush_.size()),
      records_(std::make_unique<ClearToSend[]>(kSlots)),
      groups_(std::make_unique<std::array<Group, kSlots>>()) {
  paths_.reserve(link_->most_paths());
  owed_.reserve(link_->most_paths());
  if (shared_queues()) owed_.resize(link_->devices.size());
  take_paths_of_link();
  for (Group& group : *groups_)
    group.receiver = this;
  for (Request& request : flushes_)
    request.receiver = this;
  record_work_.sg_list = &record_segment_;
  record_work_.num_sge = 1;
  record_work_.opcode = IBV_WR_RDMA_WRITE;
}

Receiver::~Receiver() {
  give_back(granted_bytes_);
}

Result<std::unique_ptr<Receiver>> Receiver::create(std::unique_ptr<Link> link, const RemoteRing& ring,
                                                   const ReceiveLimits& limits, std::vector<FlushPath> flush) {
  std::unique_ptr<Receiver> receiver(new Receiver(std::move(link), ring, limits, std::move(flush)));
  for (const LinkDevice& device : receiver->link_->devices) {
    auto region = device.opened->register_memory(receiver->records_.get(), sizeof(ClearToSend) * kSlots, false);
    if (!region) return region.take_error();
    receiver->records_regions_.push_back(region.take());
  }
  return receiver;
}

void Receiver::take_new_paths() {
  const std::unique_ptr<PathBatch> offer = link_->peer->take_offer();
  if (!offer) return;
  link_->add(*offer);
  take_paths_of_link();
}

void Receiver::take_paths_of_link() {
  for (std::size_t i = paths_.size(); i < link_->paths.size(); i++) {
    const DataPath& path = link_->paths[i];
    paths_.push_back({path.qp.get(), path.inline_bytes, path.device, path.peer_device});
  }
  if (!shared_queues()) owed_.resize(paths_.size());
}

bool Receiver::within_incast_limit(std::size_t bytes) const {
  if (limits_.incast_bytes == 0 || open_ == 0) return true;
  const std::size_t share = bytes / link_->devices.size();
  return std::all_of(link_->devices.begin(), link_->devices.end(), [&](const LinkDevice& device) {
    return device.opened->granted_bytes.load(std::memory_order_relaxed) + share <= limits_.incast_bytes;
  });
}

void Receiver::count_granted(std::size_t bytes) {
  if (limits_.incast_bytes == 0) return;
  granted_bytes_ += bytes;
  for (const LinkDevice& device : link_->devices)
    device.opened->granted_bytes.fetch_add(bytes / link_->devices.size(), std::memory_order_relaxed);
}

void Receiver::give_back(std::size_t bytes) {
  if (limits_.incast_bytes == 0) return;
  granted_bytes_ -= bytes;
  for (const LinkDevice& device : link_->devices)
    device.opened->granted_bytes.fetch_sub(bytes / link_->devices.size(), std::memory_order_relaxed);
}

// Paths take turns, but of two the one that holds less goes first: one that stands still is passed over.
std::size_t Receiver::next_record_path() {
  const std::size_t count = paths_.size();
  const std::size_t one = record_turn_ + 1 < count ? record_turn_ + 1 : 0;
  const std::size_t other = one + 1 < count ? one + 1 : 0;
  record_turn_ = paths_[other].posted < paths_[one].posted ? other : one;
  return record_turn_;
}

[[gnu::always_inline]] inline bool Receiver::post_record_run(std::size_t index, std::uint32_t slot, int count) {
  PathState& path = paths_[index];
  record_segment_.addr = reinterpret_cast<std::uint64_t>(&records_[slot]);
  record_segment_.length = std::uint32_t(sizeof(ClearToSend)) * std::uint32_t(count);
  record_segment_.lkey = records_regions_[path.device]->lkey;
  record_work_.wr_id = tag(Work::record, int(index));
  record_work_.send_flags = record_segment_.length <= path.inline_bytes ? unsigned(IBV_SEND_INLINE) : 0;
  if (++path.unsignaled == kSignalEvery) {
    record_work_.send_flags |= IBV_SEND_SIGNALED;
    path.unsignaled = 0;
  }
  record_work_.wr.rdma.remote_addr = remote_.address + slot * sizeof(ClearToSend);
  record_work_.wr.rdma.rkey = remote_.keys[path.peer_device];
  path.posted++;
  ibv_send_wr* bad = nullptr;
  const int code = ibv_post_send(path.qp, &record_work_, &bad);
  return code == 0 || link_->fail_post("ibv_post_send", code, int(index));
}

// Writes the records of a group in one go, or in two where the ring wraps. Closes the messages again where no path has
// room.
template <class Count>
bool Receiver::post_records(std::uint32_t first, Count count) {
  const std::size_t path = next_record_path();
  if (paths_[path].posted + 2 > kRecordDepth) {
    for (int i = 0; i < count; i++)
      arrivals_.close(first + std::uint32_t(i));
    return poll() && false;
  }
  const std::uint32_t slot = first % kSlots;
  const int run = std::min<int>(count, int(kSlots - slot));
  return post_record_run(path, slot, run) && (run == count || post_record_run(path, 0, count - run));
}

// How many pieces the sender may use for each message, so that it never meets an empty receive queue; 0: not now.
template <class Count>
int Receiver::grant(const Receive* receives, Count count, std::uint16_t* pieces) {
  const int available = limits_.receives - (kQueueBatch - 1) - granted_;
  if (available < count) return 0;
  int sum = 0;
  for (int i = 0; i < count; i++) {
    const int wanted = plans_.plan(receives[i].size, kMaxPieces).pieces;
    const int spare = available - sum - (count - 1 - i);
    pieces[i] = std::uint16_t(std::min(wanted, spare));
    sum += pieces[i];
  }
  return sum;
}

Progress Receiver::receive(const Receive* receives, int count, Request** request) {
  return count == 1 ? offer(receives, std::integral_constant<int, 1>(), request) : offer(receives, count, request);
}

template <class Count>
Progress Receiver::offer(const Receive* receives, Count count, Request** request) {
  *request = nullptr;
  if (!link_->undisturbed()) [[unlikely]] {
    if (!link_->healthy(true)) return Progress::failed;
    take_new_paths();
  }
  const std::uint32_t first = next_;
  std::size_t bytes = 0;
  for (int i = 0; i < count; i++) {
    bytes += receives[i].size;
    if (receives[i].size > kMaxMessage) {
      link_->fail(Error{text::format("a receive of {} bytes", receives[i].size),
                        {},
                        0,
                        "1 GiB is the most that NCCL receives at once"},
                  false);
      return Progress::failed;
    }
    if (arrivals_.is_open(first + std::uint32_t(i))) return Progress::not_yet;
  }
  Group& group = (*groups_)[first % kSlots];
  std::uint16_t pieces[kMaxGroup];
  const int granted = grant(receives, count, pieces);
  if (group.in_use || granted == 0 || !within_incast_limit(bytes)) {
    return poll() ? Progress::not_yet : Progress::failed;
  }
  for (int i = 0; i < count; i++) {
    const std::uint32_t number = first + std::uint32_t(i), slot = number % kSlots;
    ClearToSend& record = records_[slot];
    record.address = reinterpret_cast<std::uint64_t>(receives[i].data);
    std::memcpy(record.keys, receives[i].memory->remote_keys.data(), sizeof record.keys);
    record.size = std::uint32_t(receives[i].size);
    record.tag = receives[i].tag;
    record.pieces = pieces[i];
    record.group = std::uint8_t(count);
    record.index = std::uint8_t(i);
    record.number = number + 1;
    arrivals_.open(number, receives[i].size);
    group_of_[slot] = std::uint8_t(first % kSlots);
  }
  if (!post_records(first, count)) return link_->failed() ? Progress::failed : Progress::not_yet;
  granted_ += granted;
  count_granted(bytes);
  group.bytes = bytes;
  group.granted = granted;
  group.kind = RequestKind::receive;
  group.in_use = true;
  group.number = first;
  group.group = count;
  group.missing = count;
  next_ = first + std::uint32_t(count);
  open_++;
  *request = &group;
  return Progress::done;
}

bool Receiver::flushed(std::uint32_t number) const {
  return std::all_of(flush_state_.begin(), flush_state_.end(),
                     [&](const FlushState& device) { return std::int32_t(device.done - number) > 0; });
}

Progress Receiver::test(Request& request, int* sizes) {
  const bool undisturbed = link_->undisturbed();
  if (!undisturbed && link_->failed()) [[unlikely]]
    return Progress::failed;
  const bool flushing = request.kind == RequestKind::flush;
  const auto finished = [&] {
    return flushing ? flushed(request.number) : static_cast<const Group&>(request).missing == 0;
  };
  if (!finished()) {
    if (!undisturbed) take_new_paths();
    if (!poll()) return Progress::failed;
    if (!finished()) return undisturbed || link_->healthy(open_ > 0) ? Progress::not_yet : Progress::failed;
  }
  request.in_use = false;
  if (flushing) return Progress::done;
  for (int i = 0; i < request.group; i++) {
    const std::uint32_t number = request.number + std::uint32_t(i);
    if (sizes) sizes[i] = int(arrivals_.bytes(number));
    arrivals_.close(number);
  }
  const Group& group = static_cast<const Group&>(request);
  granted_ -= group.granted;
  give_back(group.bytes);
  open_--;
  return Progress::done;
}

bool Receiver::poll() {
  ibv_wc completions[kPollBatch];
  bool any = false;
  for (const verbs::CompletionQueue& cq : link_->cqs) {
    int count = kPollBatch;
    while (count == kPollBatch) {
      count = ibv_poll_cq(cq.get(), kPollBatch, completions);
      if (count < 0) return link_->fail(Error{"ibv_poll_cq failed", {}, 0, {}}, false);
      any = any || count > 0;
      for (const ibv_wc *one = completions, *end = completions + count; one != end; one++) {
        if (one->status != IBV_WC_SUCCESS) return link_->fail_completion(*one);
        const int index = index_of(one->wr_id);
        switch (work_of(one->wr_id)) {
          case Work::receive:
            if (!complete_receive(*one, index)) return false;
            break;
          case Work::record:
            paths_[std::size_t(index)].posted -= kSignalEvery;
            break;
          case Work::flush:
            flush_state_[std::size_t(index)].done++;
            break;
        }
      }
    }
  }
  return !any || queue_owed();
}

bool Receiver::complete_receive(const ibv_wc& completion, int queue) {
  owed_[std::size_t(queue)].receives++;
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
  const bool shared = shared_queues();
  for (std::size_t i = 0; i < owed_.size(); i++) {
    if (owed_[i].receives < kQueueBatch) continue;
    ibv_srq* srq = shared ? link_->devices[i].srq.get() : nullptr;
    const int code = queue_receives(srq, shared ? nullptr : link_->paths[i].qp.get(), int(i), owed_[i].receives);
    if (code != 0) return link_->fail_post(shared ? "ibv_post_srq_recv" : "ibv_post_recv", code, shared ? 0 : int(i));
    owed_[i].receives = 0;
  }
  return true;
}

Progress Receiver::flush(const Receive* receives, int count, Request** request) {
  *request = nullptr;
  if (!link_->healthy(false)) return Progress::failed;
  if (flush_.empty() || !reaches_device_memory(receives, count)) return Progress::done;
  Request& one = flushes_[flush_next_ % flushes_.size()];
  if (one.in_use) {
    link_->fail(Error{"more flushes outstanding than NCCL's limit of 32", {}, 0, {}}, false);
    return Progress::failed;
  }
  const Receive* last = receives + count - 1;
  while (last->size == 0 || !last->memory || !last->memory->device_memory)
    last--;
  // One read is enough for all buffers of the group, for it is ordered behind every earlier write of its NIC; but every
  // NIC may have written.
  for (std::size_t device = 0; device < flush_.size(); device++) {
    ibv_sge segment{};
    segment.addr = reinterpret_cast<std::uint64_t>(flush_[device].landing.get());
    segment.length = 1;
    segment.lkey = flush_[device].landing_region->lkey;
    ibv_send_wr work{};
    work.wr_id = tag(Work::flush, int(device));
    work.sg_list = &segment;
    work.num_sge = 1;
    work.opcode = IBV_WR_RDMA_READ;
    work.send_flags = IBV_SEND_SIGNALED;
    work.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(last->data);
    work.wr.rdma.rkey = last->memory->remote_keys[device];
    ibv_send_wr* bad = nullptr;
    if (const int code = ibv_post_send(flush_[device].qp.get(), &work, &bad)) {
      link_->fail(system_error("ibv_post_send of a flush failed", code, link_->devices[device].opened->name()), false);
      return Progress::failed;
    }
  }
  one.kind = RequestKind::flush;
  one.in_use = true;
  one.number = flush_next_++;
  *request = &one;
  return Progress::done;
}

}  // namespace weft::transfer
