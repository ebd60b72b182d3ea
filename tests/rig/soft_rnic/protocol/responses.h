// The answers a responder owes, in order: acknowledgements (the newest of a run stands for all before it), READ
// responses and atomic results.
#pragma once

#include <cstdint>
#include <deque>

#include "tests/rig/soft_rnic/protocol/packet_source.h"
#include "tests/rig/soft_rnic/protocol/psn.h"

namespace weft::soft_rnic {

class Responses final : public PacketSource {
 public:
  void set_peer(std::uint32_t destination_queue_pair, std::uint32_t mtu);
  void clear();
  bool empty() const { return answers_.empty(); }

  void acknowledge(Psn psn, std::uint32_t message_sequence_number);
  // Any syndrome but a plain acknowledgement.
  void refuse(std::uint8_t syndrome, Psn psn, std::uint32_t message_sequence_number);
  // `data` must stay registered until the answer has left.
  void read(Psn first, std::uint8_t* data, std::uint32_t length, std::uint32_t message_sequence_number);
  void atomic(Psn psn, std::uint64_t original, std::uint32_t message_sequence_number);
  // Forgets READ responses not sent yet that touch packets from `psn` on: the requester has asked for them again.
  void forget_reads_from(Psn psn);

  // This memory is no longer registered: READ responses from it are not sent.
  void revoke(const MemoryRange& range);

  bool take(OutgoingPacket& packet) override;
  void commit(std::size_t sent, Nanoseconds now) override;

 private:
  enum class Kind { acknowledge, refuse, read, atomic };
  struct Answer {
    Kind kind = Kind::acknowledge;
    Psn first = 0;
    std::uint8_t syndrome = kSyndromeAcknowledge;
    std::uint32_t message_sequence_number = 0;
    std::uint8_t* data = nullptr;
    std::uint32_t length = 0;
    std::uint64_t original = 0;
  };
  struct Position {
    std::size_t answer = 0;
    std::uint64_t packet = 0;
  };

  std::uint64_t packets_in(const Answer& answer) const;
  void advance(Position& position) const;
  void add(const Answer& answer);
  template <class Predicate>
  void remove_if(Predicate matches);

  std::uint32_t destination_queue_pair_ = 0;
  std::uint32_t mtu_ = 1024;
  std::deque<Answer> answers_;
  std::uint64_t committed_packet_ = 0;  // packets of the oldest answer that have left
  Position taken_;
};

}  // namespace weft::soft_rnic
