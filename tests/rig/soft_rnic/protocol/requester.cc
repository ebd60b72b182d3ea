#include "tests/rig/soft_rnic/protocol/requester.h"

#include <algorithm>
#include <cstring>

namespace weft::soft_rnic {
namespace {

// An acknowledgement is asked for with the last packet of a message, with the one that fills the window and with every
// packet whose number is a multiple of this.
constexpr std::uint32_t kAcknowledgeEvery = 16;

// Receiver-not-ready timer codes (table 46 of the specification), in units of 10 us.
constexpr std::array<std::uint32_t, 32> kReceiverNotReadyTimer = {
    65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
    256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

ibv_wc_opcode completion_opcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
      return IBV_WC_SEND;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    default:
      return IBV_WC_RDMA_WRITE;
  }
}

void scatter(const PieceList& target, const std::uint8_t* data) {
  for (std::uint32_t index = 0; index < target.count; ++index) {
    std::memcpy(target.pieces[index].data, data, target.pieces[index].size);
    data += target.pieces[index].size;
  }
}

}  // namespace

Requester::Requester(CompletionSink& completions, std::uint32_t queue_pair, std::size_t capacity, bool signal_all)
    : completions_(&completions), queue_pair_(queue_pair), signal_all_(signal_all), requests_(capacity) {}

void Requester::reset() {
  requests_.clear();
  failure_.reset();
  draining_ = false;
  start_at(0);
}

void Requester::start_at(std::uint32_t wire) {
  oldest_ = sent_end_ = queued_end_ = initial_psn(wire);
  committed_ = taken_ = {oldest_, 0, 0};
  retries_ = settings_.retry_count;
  receiver_retries_ = settings_.receiver_retry_count;
  went_back_for_ = 0;
  acknowledge_deadline_ = kNever;
  wait_for_receiver_until_ = kNever;
  round_trip_ = {};
}

void Requester::post() {
  SendRequest& request = requests_.next();
  const std::uint64_t packets = request.is_atomic() ? 1 : packets_of(request.length, settings_.mtu);
  request.first = queued_end_;
  request.end = queued_end_ += packets;
  requests_.push();
  fail_on_local_error();
}

void Requester::fail_on_local_error() {
  if (!requests_.empty() && requests_.front().local_error != IBV_WC_SUCCESS) fail(requests_.front().local_error);
}

void Requester::revoke(const MemoryRange& range) {
  for (std::size_t index = 0; index < requests_.size(); ++index) {
    SendRequest& request = requests_[index];
    if (!request.inlined && request.memory.touches(range)) request.local_error = IBV_WC_LOC_PROT_ERR;
  }
  fail_on_local_error();
}

Requester::Position Requester::after(const Position& position) const {
  const SendRequest& request = requests_[position.request];
  if (request.wants_response()) return {request.end, position.request + 1, position.open_reads + 1};
  const bool last = position.psn + 1 == request.end;
  return {position.psn + 1, position.request + (last ? 1 : 0), position.open_reads};
}

Requester::Position Requester::position_of(Psn psn) const {
  Position position{psn, 0, 0};
  while (position.request < requests_.size() && requests_[position.request].end <= psn) {
    if (requests_[position.request].wants_response()) ++position.open_reads;
    ++position.request;
  }
  return position;
}

bool Requester::may_send(const Position& position) const {
  if (failure_ || wait_for_receiver_until_ != kNever || position.request >= requests_.size()) return false;
  const SendRequest& request = requests_[position.request];
  if (request.local_error != IBV_WC_SUCCESS) return false;
  if (draining_ && position.psn == request.first && position.psn >= sent_end_) return false;
  if (request.fenced && position.open_reads > 0) return false;
  if (request.wants_response()) return position.open_reads < std::max(settings_.max_outstanding_reads, 1U);
  return position.psn - oldest_ < settings_.window_packets;
}

bool Requester::take(OutgoingPacket& packet) {
  if (!may_send(taken_)) return false;
  fill(requests_[taken_.request], taken_.psn, packet);
  packet.retransmitted = taken_.psn < sent_end_;
  taken_ = after(taken_);
  return true;
}

void Requester::fill(const SendRequest& request, Psn psn, OutgoingPacket& packet) const {
  const std::uint64_t offset = (psn - request.first) * settings_.mtu;
  const auto left = static_cast<std::uint32_t>(request.length - offset);
  BaseHeader base;
  base.destination_queue_pair = settings_.destination_queue_pair;
  base.psn = wire_psn(psn);
  HeaderWriter headers(packet.header);
  packet.payload.count = 0;
  packet.payload_size = 0;
  if (request.is_read()) {
    base.opcode = Opcode::read_request;
    base.acknowledge_request = true;
    headers.base(base).rdma({request.remote_address + offset, request.remote_key, left});
  } else if (request.is_atomic()) {
    base.opcode = request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? Opcode::fetch_add : Opcode::compare_swap;
    base.acknowledge_request = true;
    headers.base(base).atomic({request.remote_address, request.remote_key, request.swap_or_add, request.compare});
  } else {
    const bool first = psn == request.first;
    const bool last = psn + 1 == request.end;
    const bool immediate = last && request.has_immediate();
    packet.payload_size = std::min(left, settings_.mtu);
    packet.payload = request.memory.part(offset, packet.payload_size);
    base.opcode = message_opcode(request.is_write() ? Operation::write : Operation::send, first, last, immediate);
    base.solicited = last && request.solicited;
    base.pad = packet.pad();
    base.acknowledge_request = last || psn % kAcknowledgeEvery == 0 || psn + 1 - oldest_ >= settings_.window_packets;
    headers.base(base);
    if (request.is_write() && first) {
      headers.rdma({request.remote_address, request.remote_key, request.length});
    }
    if (immediate) headers.immediate(request.immediate);
  }
  packet.header_size = headers.size();
}

void Requester::commit(std::size_t sent, Nanoseconds now) {
  for (; sent > 0; --sent) {
    if (committed_.psn >= sent_end_) round_trip_.on_sent(committed_.psn, now);
    committed_ = after(committed_);
  }
  taken_ = committed_;
  sent_end_ = std::max(sent_end_, committed_.psn);
  if (acknowledge_deadline_ == kNever && oldest_ < committed_.psn) arm(now);
}

Nanoseconds Requester::timeout() const {
  if (settings_.timeout == 0) return kNever;
  const Nanoseconds nominal = Nanoseconds{4096} << std::min<int>(settings_.timeout, 31);
  // The specification lets a device wait up to four times the nominal time (9.7.6.1.3). That room is used where the
  // path has become slow, so that a long queue is not taken for a loss.
  return std::clamp(3 * round_trip_.smoothed(), nominal, 4 * nominal);
}

void Requester::arm(Nanoseconds now) {
  const Nanoseconds wait = timeout();
  acknowledge_deadline_ = oldest_ < committed_.psn && wait != kNever ? now + wait : kNever;
}

Nanoseconds Requester::deadline() const {
  return std::min(acknowledge_deadline_, wait_for_receiver_until_);
}

void Requester::on_time(Nanoseconds now) {
  if (failure_) return;
  if (now >= wait_for_receiver_until_) {
    wait_for_receiver_until_ = kNever;
    arm(now);
  }
  if (now < acknowledge_deadline_) return;
  ++counters_.timeouts;
  if (!spend_retry()) return;
  go_back(oldest_, now);
}

bool Requester::spend_retry() {
  if (retries_-- > 0) return true;
  fail(IBV_WC_RETRY_EXC_ERR);
  return false;
}

void Requester::go_back(Psn psn, Nanoseconds now) {
  round_trip_.on_retransmission();
  if (!settings_.never_retransmit) committed_ = taken_ = position_of(psn);
  // Armed even before the packets leave again, so that a connection that cannot send still ends.
  const Nanoseconds wait = timeout();
  acknowledge_deadline_ = wait == kNever ? kNever : now + wait;
}

void Requester::complete(const SendRequest& request, ibv_wc_status status) {
  if (status == IBV_WC_SUCCESS && !request.signaled && !signal_all_) return;
  ibv_wc completion{};
  completion.wr_id = request.id;
  completion.status = status;
  completion.opcode = completion_opcode(request.opcode);
  completion.vendor_err = vendor_error_of(status);
  completion.byte_len = request.length;
  completion.qp_num = queue_pair_;
  completions_->add(completion, false);
}

void Requester::fail(ibv_wc_status status) {
  failure_ = status;
  acknowledge_deadline_ = wait_for_receiver_until_ = kNever;
  if (requests_.empty()) return;
  complete(requests_.front(), status);
  requests_.pop();
}

void Requester::flush() {
  for (; !requests_.empty(); requests_.pop())
    complete(requests_.front(), IBV_WC_WR_FLUSH_ERR);
  oldest_ = sent_end_ = queued_end_;
  committed_ = taken_ = {queued_end_, 0, 0};
  acknowledge_deadline_ = wait_for_receiver_until_ = kNever;
}

void Requester::retire(Psn end, Nanoseconds now) {
  if (end <= oldest_) return;
  oldest_ = end;
  retries_ = settings_.retry_count;
  receiver_retries_ = settings_.receiver_retry_count;
  round_trip_.on_acknowledged(end, now);
  while (!requests_.empty() && requests_.front().end <= end) {
    const SendRequest& request = requests_.front();
    complete(request, IBV_WC_SUCCESS);
    if (committed_.request > 0) {
      --committed_.request;
      if (request.wants_response()) --committed_.open_reads;
    }
    requests_.pop();
  }
  // What was about to be sent again has arrived after all.
  if (committed_.psn < oldest_) committed_ = position_of(oldest_);
  taken_ = committed_;
  arm(now);
  fail_on_local_error();
}

Psn Requester::limited_by_open_read(Psn end) const {
  for (std::size_t index = 0; index < requests_.size() && requests_[index].first < end; ++index) {
    if (requests_[index].wants_response()) return std::max(oldest_, requests_[index].first);
  }
  return end;
}

void Requester::on_acknowledge(std::uint32_t wire, const AcknowledgeHeader& header, Nanoseconds now) {
  if (failure_) return;
  const Psn psn = nearest_psn(oldest_, wire);
  const auto kind = static_cast<AcknowledgeKind>(header.syndrome >> 5);
  const Psn end = psn + (kind == AcknowledgeKind::acknowledge ? 1 : 0);
  if (end > sent_end_ || psn < oldest_) return;

  const Psn arrived = limited_by_open_read(end);
  retire(arrived, now);
  if (failure_) return;
  if (arrived < end) {
    // The peer answers in order, so the response to the open READ or atomic is lost: ask again, once.
    if (went_back_for_ != oldest_) {
      went_back_for_ = oldest_;
      go_back(oldest_, now);
    }
    return;
  }
  switch (kind) {
    case AcknowledgeKind::acknowledge:
      return;
    case AcknowledgeKind::receiver_not_ready:
      ++counters_.receiver_not_ready;
      if (settings_.receiver_retry_count != 7 && receiver_retries_-- == 0) {
        fail(IBV_WC_RNR_RETRY_EXC_ERR);
        return;
      }
      go_back(psn, now);
      acknowledge_deadline_ = kNever;
      wait_for_receiver_until_ = now + kReceiverNotReadyTimer[header.syndrome & 31] * 10 * kMicrosecond;
      return;
    case AcknowledgeKind::negative:
      break;
    default:
      return;
  }
  switch (header.syndrome) {
    case kSyndromePsnError:
      ++counters_.negative_acknowledgements;
      if (psn < committed_.psn && spend_retry()) go_back(psn, now);
      return;
    case kSyndromeInvalidRequest:
      fail(IBV_WC_REM_INV_REQ_ERR);
      return;
    case kSyndromeRemoteAccess:
      fail(IBV_WC_REM_ACCESS_ERR);
      return;
    default:
      fail(IBV_WC_REM_OP_ERR);
      return;
  }
}

const SendRequest* Requester::open_read_at(Psn psn, std::size_t& index) const {
  for (index = 0; index < requests_.size(); ++index) {
    const SendRequest& request = requests_[index];
    if (request.wants_response()) return request.first <= psn && psn < request.end ? &request : nullptr;
  }
  return nullptr;
}

void Requester::on_read_response(const Packet& packet, Nanoseconds now) {
  if (failure_) return;
  const Psn psn = nearest_psn(oldest_, packet.base.psn);
  std::size_t index = 0;
  const SendRequest* request = psn >= oldest_ && psn < sent_end_ ? open_read_at(psn, index) : nullptr;
  if (request == nullptr || !request->is_read()) return;
  retire(std::max(oldest_, request->first), now);  // a response acknowledges everything before it
  if (failure_) return;
  if (psn != oldest_) {
    if (went_back_for_ != oldest_) {
      went_back_for_ = oldest_;
      go_back(oldest_, now);
    }
    return;
  }
  const SendRequest& read = requests_.front();
  const std::uint64_t offset = (psn - read.first) * settings_.mtu;
  const auto expected = static_cast<std::uint32_t>(std::min<std::uint64_t>(read.length - offset, settings_.mtu));
  if (packet.payload.size() != expected) {
    fail(IBV_WC_BAD_RESP_ERR);
    return;
  }
  scatter(read.memory.part(offset, expected), packet.payload.data());
  retire(psn + 1, now);
}

void Requester::on_atomic_response(const Packet& packet, Nanoseconds now) {
  if (failure_) return;
  const Psn psn = nearest_psn(oldest_, packet.base.psn);
  std::size_t index = 0;
  const SendRequest* request = psn >= oldest_ && psn < sent_end_ ? open_read_at(psn, index) : nullptr;
  if (request == nullptr || !request->is_atomic()) return;
  retire(psn, now);
  std::uint8_t original[sizeof packet.atomic_result];
  std::memcpy(original, &packet.atomic_result, sizeof original);  // in this machine's order, as the application sees it
  scatter(requests_.front().memory.part(0, sizeof original), original);
  retire(psn + 1, now);
}

}  // namespace weft::soft_rnic
