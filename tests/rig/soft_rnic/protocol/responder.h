// The receiving half of a reliable connection: takes requests in order of their packet numbers, moves payload,
// completes receives and owes answers. Pure: no socket, no clock, no lock; one thread.
//
// Order: a packet that is ahead of the expected one is held for a moment (veth pairs let packets of one flow overtake
// each other when two CPUs work on them). If the gap stays, one negative acknowledgement asks for the missing packet,
// everything held is forgotten, and packets ahead are dropped until it comes: go-back-N as a real device does it.
#pragma once

#include <array>
#include <optional>

#include "tests/rig/soft_rnic/protocol/held_packets.h"
#include "tests/rig/soft_rnic/protocol/receive_queue.h"
#include "tests/rig/soft_rnic/protocol/remote_memory.h"
#include "tests/rig/soft_rnic/protocol/responses.h"
#include "tests/rig/soft_rnic/protocol/time.h"
#include "tests/rig/soft_rnic/protocol/work_request.h"
#include "tests/rig/soft_rnic/wire/headers.h"

namespace weft::soft_rnic {

// How long, and how many packets ahead, a gap is borne before it counts as loss.
inline constexpr Nanoseconds kReorderTime = 2 * kMillisecond;
inline constexpr std::size_t kReorderPackets = 128;

struct ResponderSettings {
  std::uint32_t source_queue_pair = 0;  // the peer's
  std::uint32_t mtu = 1024;
  int access = 0;                              // IBV_ACCESS_REMOTE_* of the queue pair
  std::uint8_t receiver_not_ready_timer = 12;  // min_rnr_timer
};

struct ResponderCounters {
  std::uint64_t duplicates = 0;
  std::uint64_t overtaken = 0;  // packets that came too early and were held
  std::uint64_t gaps = 0;       // negative acknowledgements sent
  std::uint64_t receiver_not_ready = 0;
};

class Responder {
 public:
  Responder(RemoteMemory& memory, ReceiveQueue& receives, CompletionSink& completions, std::uint32_t queue_pair);

  void reset();
  void start_at(std::uint32_t wire_psn) { expected_ = initial_psn(wire_psn); }
  // Settings take effect with the next packet.
  void configure(const ResponderSettings& settings);
  const ResponderSettings& settings() const { return settings_; }

  // `packet` was parsed from `udp_payload`, which is valid during the call only.
  void on_request(const Packet& packet, std::span<const std::uint8_t> udp_payload, Nanoseconds now);

  Nanoseconds deadline() const { return gap_deadline_; }
  void on_time(Nanoseconds now);

  // This memory is no longer registered: a message that is being written there breaks the connection.
  void revoke(const MemoryRange& range);

  PacketSource& answers() { return responses_; }

  // The peer broke a rule; the queue pair must go to the error state and raise this event.
  std::optional<ibv_event_type> failure() const { return failure_; }
  // Completes a receive that a half-arrived SEND holds, with IBV_WC_WR_FLUSH_ERR. The receive queue is the owner's to
  // flush.
  void flush();

  const ResponderCounters& counters() const { return counters_; }

 private:
  struct Message {
    bool open = false;
    Operation operation = Operation::send;
    ReceiveRequest receive;          // SEND
    std::uint8_t* target = nullptr;  // WRITE
    std::uint64_t length = 0;        // WRITE: announced; SEND: room in the receive
    std::uint64_t arrived = 0;
  };
  struct AtomicResult {
    Psn psn = 0;
    std::uint64_t original = 0;
  };

  void accept(const Packet& packet);
  void on_gap(Psn psn, std::span<const std::uint8_t> udp_payload, Nanoseconds now);
  void on_duplicate(const Packet& packet, Psn psn);
  void on_message_packet(const Packet& packet);
  bool begin_message(const Packet& packet);
  void store(const Packet& packet);
  void end_message(const Packet& packet);
  void complete_too_long();
  void answer_read(const Packet& packet, Psn psn);
  void execute_atomic(const Packet& packet);
  void report_gap();
  void receiver_not_ready();
  void fail(std::uint8_t syndrome, ibv_event_type event);
  void complete(const ReceiveRequest& receive, ibv_wc_status status, ibv_wc_opcode opcode, std::uint64_t bytes,
                const Packet* packet);
  void count_message() { message_sequence_number_ = (message_sequence_number_ + 1) & 0xffffff; }

  RemoteMemory* memory_;
  ReceiveQueue* receives_;
  CompletionSink* completions_;
  std::uint32_t queue_pair_;
  ResponderSettings settings_;
  ResponderCounters counters_;

  Psn expected_ = kPsnOrigin;
  std::uint32_t message_sequence_number_ = 0;
  Message message_;
  HeldPackets held_{kReorderPackets};
  Nanoseconds gap_deadline_ = kNever;
  bool asked_again_ = false;  // an answer that makes the requester come again is out; nothing ahead is taken meanwhile
  std::array<AtomicResult, 16> atomic_results_{};  // as many as max_qp_rd_atom, for repeated requests
  std::size_t next_atomic_result_ = 0;
  Responses responses_;
  std::optional<ibv_event_type> failure_;
};

}  // namespace weft::soft_rnic
