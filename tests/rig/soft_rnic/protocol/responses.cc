#include "tests/rig/soft_rnic/protocol/responses.h"

#include <algorithm>

namespace weft::soft_rnic {
namespace {

// More answers than any requester may have open; a peer that floods with repeated requests gets no more than this.
constexpr std::size_t kMaxAnswers = 1024;

}  // namespace

void Responses::set_peer(std::uint32_t destination_queue_pair, std::uint32_t mtu) {
  destination_queue_pair_ = destination_queue_pair;
  mtu_ = mtu;
}

void Responses::clear() {
  answers_.clear();
  committed_packet_ = 0;
  taken_ = {};
}

void Responses::add(const Answer& answer) {
  if (answers_.size() < kMaxAnswers) answers_.push_back(answer);
}

void Responses::acknowledge(Psn psn, std::uint32_t message_sequence_number) {
  Answer answer;
  answer.first = psn;
  answer.message_sequence_number = message_sequence_number;
  if (!answers_.empty() && answers_.back().kind == Kind::acknowledge) {
    answers_.back() = answer;
  } else {
    add(answer);
  }
}

void Responses::refuse(std::uint8_t syndrome, Psn psn, std::uint32_t message_sequence_number) {
  Answer answer;
  answer.kind = Kind::refuse;
  answer.first = psn;
  answer.syndrome = syndrome;
  answer.message_sequence_number = message_sequence_number;
  add(answer);
}

void Responses::read(Psn first, std::uint8_t* data, std::uint32_t length, std::uint32_t message_sequence_number) {
  Answer answer;
  answer.kind = Kind::read;
  answer.first = first;
  answer.data = data;
  answer.length = length;
  answer.message_sequence_number = message_sequence_number;
  add(answer);
}

void Responses::atomic(Psn psn, std::uint64_t original, std::uint32_t message_sequence_number) {
  Answer answer;
  answer.kind = Kind::atomic;
  answer.first = psn;
  answer.original = original;
  answer.message_sequence_number = message_sequence_number;
  add(answer);
}

template <class Predicate>
void Responses::remove_if(Predicate matches) {
  if (!answers_.empty() && matches(answers_.front())) committed_packet_ = 0;
  answers_.erase(std::remove_if(answers_.begin(), answers_.end(), matches), answers_.end());
  taken_ = {0, committed_packet_};
}

void Responses::forget_reads_from(Psn psn) {
  remove_if([&](const Answer& answer) { return answer.kind == Kind::read && answer.first + packets_in(answer) > psn; });
}

void Responses::revoke(const MemoryRange& range) {
  remove_if([&](const Answer& answer) {
    return answer.kind == Kind::read && answer.length > 0 && range.overlaps(answer.data, answer.length);
  });
}

std::uint64_t Responses::packets_in(const Answer& answer) const {
  return answer.kind == Kind::read ? packets_of(answer.length, mtu_) : 1;
}

void Responses::advance(Position& position) const {
  if (++position.packet < packets_in(answers_[position.answer])) return;
  ++position.answer;
  position.packet = 0;
}

bool Responses::take(OutgoingPacket& packet) {
  if (taken_.answer >= answers_.size()) return false;
  const Answer& answer = answers_[taken_.answer];
  const bool first = taken_.packet == 0;
  const bool last = taken_.packet + 1 == packets_in(answer);
  BaseHeader base;
  base.destination_queue_pair = destination_queue_pair_;
  base.psn = wire_psn(answer.first + taken_.packet);
  HeaderWriter headers(packet.header);
  packet.payload.count = 0;
  packet.payload_size = 0;
  packet.retransmitted = false;
  if (answer.kind == Kind::read) {
    const std::uint64_t offset = taken_.packet * mtu_;
    packet.payload_size = static_cast<std::uint32_t>(std::min<std::uint64_t>(answer.length - offset, mtu_));
    if (packet.payload_size > 0) {
      packet.payload.pieces[0] = {answer.data + offset, packet.payload_size};
      packet.payload.count = 1;
    }
    base.opcode = read_response_opcode(first, last);
    base.pad = packet.pad();
    headers.base(base);
    if (first || last) headers.acknowledge({kSyndromeAcknowledge, answer.message_sequence_number});
  } else {
    base.opcode = answer.kind == Kind::atomic ? Opcode::atomic_acknowledge : Opcode::acknowledge;
    headers.base(base).acknowledge({answer.syndrome, answer.message_sequence_number});
    if (answer.kind == Kind::atomic) headers.atomic_result(answer.original);
  }
  packet.header_size = headers.size();
  advance(taken_);
  return true;
}

void Responses::commit(std::size_t sent, Nanoseconds) {
  for (; sent > 0; --sent) {
    if (++committed_packet_ < packets_in(answers_.front())) continue;
    answers_.pop_front();
    committed_packet_ = 0;
  }
  taken_ = {0, committed_packet_};
}

}  // namespace weft::soft_rnic
