#include "net_plugin/transfer/link.h"

#include <chrono>

#include "common/text/format.h"

namespace weft::transfer {
namespace {

// After the peer has closed in order, acknowledgements of the last pieces may still be under way.
constexpr Nanoseconds kGrace = 2'000'000'000;

const char* completion_hint(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return "nothing came back from the peer: a link, a spine or the peer is down, or the GIDs can't reach each other";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "the peer had no receive queued";
    case IBV_WC_REM_ACCESS_ERR:
      return "the peer's memory was not registered for this address";
    case IBV_WC_LOC_PROT_ERR:
      return "local memory was not registered for this address";
    case IBV_WC_WR_FLUSH_ERR:
      return "the queue pair was already in the error state";
    default:
      return "";
  }
}

}  // namespace

Nanoseconds steady_now() {
  return Nanoseconds(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

void PeerState::set_closed() {
  Word expected = Word::present;
  word_.compare_exchange_strong(expected, Word::closed, std::memory_order_release);
}

void PeerState::set_lost(std::string why) {
  if (word_.load(std::memory_order_relaxed) == Word::lost) return;
  why_ = std::move(why);
  word_.store(Word::lost, std::memory_order_release);
}

bool Link::fail(Error error, bool remote) {
  if (!failure_) {
    if (error.where.empty()) error.where = description;
    failure_ = Failure{std::move(error), remote};
  }
  return false;
}

bool Link::fail_completion(const ibv_wc& completion) {
  std::string which = text::format("queue pair {}", completion.qp_num);
  for (std::size_t i = 0; i < paths.size(); i++) {
    if (paths[i].qp->qp_num != completion.qp_num) continue;
    which = text::format("path {} (source port {}, the peer's {}, queue pair {})", i, paths[i].port, paths[i].peer_port,
                         completion.qp_num);
  }
  return fail(Error{text::format("{} completed with {} ({}), vendor error 0x{:x} ({})", which,
                                 device->verbs().wc_status_str(completion.status), int(completion.status),
                                 completion.vendor_err, completion.vendor_err),
                    description, 0, completion_hint(completion.status)});
}

bool Link::fail_post(const char* call, int code, int path) {
  return fail(
      system_error(text::format("{} on path {} (source port {}) failed", call, path, paths[std::size_t(path)].port),
                   code, description),
      false);
}

bool Link::healthy(bool waiting, Nanoseconds now) {
  if (failure_) return false;
  if (const int event = device->fatal_event.load(std::memory_order_relaxed)) {
    return fail(Error{text::format("fatal event on {}: {}", device->name(),
                                   device->verbs().event_type_str(ibv_event_type(event - 1))),
                      description, 0, "look at the kernel log of this host"},
                false);
  }
  const PeerState::Word word = peer->word();
  if (word == PeerState::Word::present) return true;
  if (word == PeerState::Word::lost)
    return fail(Error{text::format("the peer is lost: {}", peer->why()), description, 0, {}});
  if (!waiting) return true;
  if (closed_since_ == 0) closed_since_ = now;
  if (now - closed_since_ < kGrace) return true;
  return fail(Error{"the peer has closed the connection while requests were outstanding", description, 0, {}});
}

}  // namespace weft::transfer
