// The sending half of a reliable connection: turns send requests into packets, keeps a window of them, goes back on a
// negative acknowledgement or timeout, completes requests in order. Pure: no socket, no clock, no lock; one thread.
#pragma once

#include <optional>

#include "tests/rig/soft_rnic/protocol/packet_source.h"
#include "tests/rig/soft_rnic/protocol/psn.h"
#include "tests/rig/soft_rnic/protocol/ring.h"
#include "tests/rig/soft_rnic/protocol/round_trip.h"
#include "tests/rig/soft_rnic/protocol/time.h"
#include "tests/rig/soft_rnic/protocol/work_request.h"
#include "tests/rig/soft_rnic/wire/headers.h"

namespace weft::soft_rnic {

// What modify_qp sets for the requester.
struct RequesterSettings {
  std::uint32_t destination_queue_pair = 0;
  std::uint32_t mtu = 1024;                 // payload bytes of a full packet
  std::uint32_t window_packets = 64;        // unacknowledged packets at most
  std::uint32_t max_outstanding_reads = 1;  // max_rd_atomic; 0 counts as 1
  std::uint8_t timeout = 14;                // 4.096 us x 2^timeout; 0: for ever
  std::uint8_t retry_count = 7;             // further tries after the first timeout
  std::uint8_t receiver_retry_count = 7;    // rnr_retry; 7: for ever
  bool never_retransmit = false;            // the defect of that name, for tests of the tests
};

struct RequesterCounters {
  std::uint64_t timeouts = 0;
  std::uint64_t negative_acknowledgements = 0;
  std::uint64_t receiver_not_ready = 0;
};

class Requester final : public PacketSource {
 public:
  // `signal_all`: every request completes visibly (sq_sig_all). At most `capacity` requests wait at a time.
  Requester(CompletionSink& completions, std::uint32_t queue_pair, std::size_t capacity, bool signal_all);

  // RESET: forgets everything without completions.
  void reset();
  // The number of the first packet (IBV_QP_SQ_PSN). Only while nothing is queued.
  void start_at(std::uint32_t wire_psn);
  RequesterSettings& settings() { return settings_; }
  const RequesterSettings& settings() const { return settings_; }

  bool full() const { return requests_.full(); }
  bool idle() const { return requests_.empty(); }
  // The slot for the next request; fill it, then post(). Only while not full.
  SendRequest& prepare() { return requests_.next(); }
  void post();

  // This memory is no longer registered: requests that need it fail with IBV_WC_LOC_PROT_ERR when their turn comes, and
  // nothing is read from it or written to it any more.
  void revoke(const MemoryRange& range);

  // SQD: requests that have not begun do not begin.
  void set_draining(bool draining) { draining_ = draining; }
  // Nothing that has begun is unacknowledged.
  bool drained() const { return oldest_ == sent_end_; }

  bool take(OutgoingPacket& packet) override;
  void commit(std::size_t sent, Nanoseconds now) override;

  void on_acknowledge(std::uint32_t wire_psn, const AcknowledgeHeader& header, Nanoseconds now);
  void on_read_response(const Packet& packet, Nanoseconds now);
  void on_atomic_response(const Packet& packet, Nanoseconds now);

  // When on_time() wants to be called; kNever where nothing is waited for.
  Nanoseconds deadline() const;
  void on_time(Nanoseconds now);

  // The status of the request that broke the connection; the queue pair must then go to the error state.
  std::optional<ibv_wc_status> failure() const { return failure_; }
  // Completes what is queued with IBV_WC_WR_FLUSH_ERR.
  void flush();

  const RequesterCounters& counters() const { return counters_; }

 private:
  // Where sending goes on: the packet, the request it belongs to (index into requests_), READs and atomics begun before
  // it.
  struct Position {
    Psn psn = 0;
    std::size_t request = 0;
    std::uint32_t open_reads = 0;
  };

  Position after(const Position& position) const;
  Position position_of(Psn psn) const;
  bool may_send(const Position& position) const;
  void fill(const SendRequest& request, Psn psn, OutgoingPacket& packet) const;
  void complete(const SendRequest& request, ibv_wc_status status);
  void fail(ibv_wc_status status);
  // The oldest request may be one that post() found broken: its turn has come.
  void fail_on_local_error();
  // All packets before `end` have arrived.
  void retire(Psn end, Nanoseconds now);
  // The first packet at or after `oldest_` whose response is still missing, up to `end`.
  Psn limited_by_open_read(Psn end) const;
  void go_back(Psn psn, Nanoseconds now);
  bool spend_retry();
  void arm(Nanoseconds now);
  Nanoseconds timeout() const;
  const SendRequest* open_read_at(Psn psn, std::size_t& index) const;

  CompletionSink* completions_;
  std::uint32_t queue_pair_;
  bool signal_all_;
  RequesterSettings settings_;
  Ring<SendRequest> requests_;
  RequesterCounters counters_;

  Psn oldest_ = kPsnOrigin;      // first packet not acknowledged
  Psn sent_end_ = kPsnOrigin;    // one past the newest packet ever sent
  Psn queued_end_ = kPsnOrigin;  // one past the newest packet of the newest request
  Position committed_{kPsnOrigin, 0, 0};
  Position taken_{kPsnOrigin, 0, 0};

  bool draining_ = false;
  int retries_ = 0;
  int receiver_retries_ = 0;
  Psn went_back_for_ = 0;  // the missing response that was already asked for again
  Nanoseconds acknowledge_deadline_ = kNever;
  Nanoseconds wait_for_receiver_until_ = kNever;
  RoundTrip round_trip_;
  std::optional<ibv_wc_status> failure_;
};

}  // namespace weft::soft_rnic
