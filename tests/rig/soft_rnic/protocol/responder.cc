#include "tests/rig/soft_rnic/protocol/responder.h"

#include <algorithm>
#include <cstring>

namespace weft::soft_rnic {

Responder::Responder(RemoteMemory& memory, ReceiveQueue& receives, CompletionSink& completions,
                     std::uint32_t queue_pair)
    : memory_(&memory), receives_(&receives), completions_(&completions), queue_pair_(queue_pair) {}

void Responder::reset() {
  expected_ = kPsnOrigin;
  message_sequence_number_ = 0;
  message_ = {};
  held_.clear();
  gap_deadline_ = kNever;
  asked_again_ = false;
  atomic_results_ = {};
  responses_.clear();
  failure_.reset();
}

void Responder::configure(const ResponderSettings& settings) {
  settings_ = settings;
  responses_.set_peer(settings.source_queue_pair, settings.mtu);
}

void Responder::on_request(const Packet& packet, std::span<const std::uint8_t> udp_payload, Nanoseconds now) {
  if (failure_) return;
  const Psn psn = nearest_psn(expected_, packet.base.psn);
  if (psn > expected_) {
    on_gap(psn, udp_payload, now);
    return;
  }
  if (psn < expected_) {
    on_duplicate(packet, psn);
    return;
  }
  accept(packet);
  while (!held_.empty() && !failure_ && !asked_again_) {
    const auto bytes = held_.find(expected_);
    if (bytes.empty()) break;
    const Psn taken = expected_;
    if (const auto held = parse_packet(bytes)) accept(*held);
    held_.drop(taken);
  }
  gap_deadline_ = held_.empty() ? kNever : now + kReorderTime;
}

void Responder::on_gap(Psn psn, std::span<const std::uint8_t> udp_payload, Nanoseconds now) {
  if (asked_again_) return;
  ++counters_.overtaken;
  if (!held_.keep(psn, expected_, udp_payload)) {
    report_gap();
  } else if (gap_deadline_ == kNever) {
    gap_deadline_ = now + kReorderTime;
  }
}

void Responder::on_time(Nanoseconds now) {
  if (now >= gap_deadline_) report_gap();
}

void Responder::report_gap() {
  ++counters_.gaps;
  held_.clear();
  gap_deadline_ = kNever;
  asked_again_ = true;
  responses_.refuse(kSyndromePsnError, expected_, message_sequence_number_);
}

void Responder::receiver_not_ready() {
  ++counters_.receiver_not_ready;
  held_.clear();
  asked_again_ = true;
  const auto syndrome =
      static_cast<std::uint8_t>(kSyndromeReceiverNotReady | (settings_.receiver_not_ready_timer & 31));
  responses_.refuse(syndrome, expected_, message_sequence_number_);
}

void Responder::fail(std::uint8_t syndrome, ibv_event_type event) {
  responses_.refuse(syndrome, expected_, message_sequence_number_);
  failure_ = event;
}

void Responder::on_duplicate(const Packet& packet, Psn psn) {
  ++counters_.duplicates;
  switch (packet.layout.operation) {
    case Operation::read_request: {
      responses_.forget_reads_from(psn);
      answer_read(packet, psn);
      return;
    }
    case Operation::atomic:
      for (const AtomicResult& result : atomic_results_) {
        if (result.psn == psn) responses_.atomic(psn, result.original, message_sequence_number_);
      }
      return;
    default:
      responses_.acknowledge(expected_ - 1, message_sequence_number_);
  }
}

void Responder::accept(const Packet& packet) {
  asked_again_ = false;
  switch (packet.layout.operation) {
    case Operation::read_request:
      answer_read(packet, expected_);
      return;
    case Operation::atomic:
      execute_atomic(packet);
      return;
    default:
      on_message_packet(packet);
  }
}

void Responder::on_message_packet(const Packet& packet) {
  const OpcodeLayout& layout = packet.layout;
  const bool continues = message_.open && message_.operation == layout.operation;
  if (layout.first ? message_.open : !continues) {
    fail(kSyndromeInvalidRequest, IBV_EVENT_QP_REQ_ERR);
    return;
  }
  const bool needs_receive = layout.operation == Operation::send ? layout.first : layout.last && layout.immediate;
  if (needs_receive && receives_->empty()) {
    receiver_not_ready();
    return;
  }
  if (layout.first && !begin_message(packet)) return;

  const std::size_t size = packet.payload.size();
  const bool full = size == settings_.mtu;
  const bool fits = message_.arrived + size <= message_.length;
  const bool complete = layout.operation == Operation::send || message_.arrived + size == message_.length;
  if ((!layout.last && !full) || size > settings_.mtu || !fits || (layout.last && !complete)) {
    if (layout.operation == Operation::send && !fits) {
      complete_too_long();
    }
    fail(kSyndromeInvalidRequest, IBV_EVENT_QP_REQ_ERR);
    return;
  }
  store(packet);
  ++expected_;
  if (layout.last) end_message(packet);
  if (packet.base.acknowledge_request) responses_.acknowledge(expected_ - 1, message_sequence_number_);
}

bool Responder::begin_message(const Packet& packet) {
  message_ = {};
  message_.operation = packet.layout.operation;
  if (message_.operation == Operation::write) {
    message_.length = packet.rdma.length;
    if (message_.length > 0) {
      const bool granted = (settings_.access & IBV_ACCESS_REMOTE_WRITE) != 0;
      message_.target =
          granted ? memory_->find(packet.rdma.key, packet.rdma.address, message_.length, IBV_ACCESS_REMOTE_WRITE)
                  : nullptr;
      if (message_.target == nullptr) {
        fail(kSyndromeRemoteAccess, IBV_EVENT_QP_ACCESS_ERR);
        return false;
      }
    }
  } else {
    message_.receive = receives_->take();
    message_.length = message_.receive.memory.total();
  }
  message_.open = true;
  return true;
}

void Responder::store(const Packet& packet) {
  std::span<const std::uint8_t> payload = packet.payload;
  if (payload.empty()) return;
  if (message_.operation == Operation::write) {
    memory_->store(message_.target + message_.arrived, payload);
  } else {
    const PieceList target = message_.receive.memory.part(message_.arrived, static_cast<std::uint32_t>(payload.size()));
    for (std::uint32_t index = 0; index < target.count; ++index) {
      const Piece& piece = target.pieces[index];
      memory_->store(piece.data, payload.first(piece.size));
      payload = payload.subspan(piece.size);
    }
  }
  message_.arrived += packet.payload.size();
}

void Responder::end_message(const Packet& packet) {
  message_.open = false;
  count_message();
  if (message_.operation == Operation::send) {
    complete(message_.receive, IBV_WC_SUCCESS, IBV_WC_RECV, message_.arrived, &packet);
  } else if (packet.layout.immediate) {
    complete(receives_->take(), IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM, message_.length, &packet);
  }
}

void Responder::complete_too_long() {
  message_.open = false;
  complete(message_.receive, IBV_WC_LOC_LEN_ERR, IBV_WC_RECV, 0, nullptr);
}

void Responder::complete(const ReceiveRequest& receive, ibv_wc_status status, ibv_wc_opcode opcode, std::uint64_t bytes,
                         const Packet* packet) {
  ibv_wc completion{};
  completion.wr_id = receive.id;
  completion.status = status;
  completion.opcode = opcode;
  completion.vendor_err = vendor_error_of(status);
  completion.byte_len = static_cast<std::uint32_t>(bytes);
  completion.qp_num = queue_pair_;
  completion.src_qp = settings_.source_queue_pair;
  if (packet != nullptr && packet->layout.immediate) {
    completion.imm_data = packet->immediate;
    completion.wc_flags = IBV_WC_WITH_IMM;
  }
  completions_->add(completion, packet == nullptr || packet->base.solicited);
}

void Responder::answer_read(const Packet& packet, Psn psn) {
  std::uint8_t* data = nullptr;
  const RdmaHeader& rdma = packet.rdma;
  if (rdma.length > 0) {
    memory_->before_read();
    const bool granted = (settings_.access & IBV_ACCESS_REMOTE_READ) != 0;
    data = granted ? memory_->find(rdma.key, rdma.address, rdma.length, IBV_ACCESS_REMOTE_READ) : nullptr;
    if (data == nullptr) {
      fail(kSyndromeRemoteAccess, IBV_EVENT_QP_ACCESS_ERR);
      return;
    }
  }
  if (psn == expected_) count_message();
  expected_ = std::max(expected_, psn + packets_of(rdma.length, settings_.mtu));
  responses_.read(psn, data, rdma.length, message_sequence_number_);
}

void Responder::execute_atomic(const Packet& packet) {
  const AtomicHeader& atomic = packet.atomic;
  memory_->before_read();
  const bool granted = (settings_.access & IBV_ACCESS_REMOTE_ATOMIC) != 0;
  const bool aligned = atomic.address % sizeof(std::uint64_t) == 0;
  std::uint8_t* place = granted && aligned
                            ? memory_->find(atomic.key, atomic.address, sizeof(std::uint64_t), IBV_ACCESS_REMOTE_ATOMIC)
                            : nullptr;
  if (place == nullptr) {
    const auto syndrome = aligned ? kSyndromeRemoteAccess : kSyndromeInvalidRequest;
    fail(syndrome, aligned ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
    return;
  }
  // The application may look at this word at any time: a real atomic, as on a device with IBV_ATOMIC_GLOB.
  auto* word = reinterpret_cast<std::uint64_t*>(place);
  std::uint64_t original = atomic.compare;
  if (packet.base.opcode == Opcode::fetch_add) {
    original = __atomic_fetch_add(word, atomic.swap_or_add, __ATOMIC_SEQ_CST);
  } else {
    __atomic_compare_exchange_n(word, &original, atomic.swap_or_add, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }
  atomic_results_[next_atomic_result_++ % atomic_results_.size()] = {expected_, original};
  count_message();
  responses_.atomic(expected_, original, message_sequence_number_);
  ++expected_;
}

void Responder::revoke(const MemoryRange& range) {
  responses_.revoke(range);
  if (!message_.open) return;
  const bool hit = message_.operation == Operation::write
                       ? message_.target != nullptr && range.overlaps(message_.target, message_.length)
                       : message_.receive.memory.touches(range);
  if (hit) fail(kSyndromeRemoteAccess, IBV_EVENT_QP_ACCESS_ERR);
}

void Responder::flush() {
  held_.clear();
  gap_deadline_ = kNever;
  if (message_.open && message_.operation == Operation::send) {
    complete(message_.receive, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV, 0, nullptr);
  }
  message_.open = false;
}

}  // namespace weft::soft_rnic
