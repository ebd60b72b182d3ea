#include "net_plugin/transfer/link.h"

#include <cerrno>
#include <chrono>

#include "common/text/format.h"
#include "net_plugin/transfer/completion_hint.h"

namespace weft::transfer {
namespace {

// After the peer has closed in order, acknowledgements of the last pieces may still be under way.
constexpr Nanoseconds kGrace = 2'000'000'000;

}  // namespace

Nanoseconds steady_now() {
  return Nanoseconds(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

void PeerState::set_lost(std::string why) {
  if (lost()) return;
  why_ = std::move(why);
  tell(kLost);
}

void PeerState::offer(std::unique_ptr<PathBatch> paths) {
  offered_.store(paths.release(), std::memory_order_release);
  tell(kOffer);
}

std::unique_ptr<PathBatch> PeerState::take_offer() {
  // The word first: an offer that comes in between is taken all the same, and asked for once more in vain.
  news_.fetch_and(~unsigned(kOffer), std::memory_order_acq_rel);
  return std::unique_ptr<PathBatch>(offered_.exchange(nullptr, std::memory_order_acquire));
}

Link::Link(std::vector<std::shared_ptr<setup::OpenDevice>> opened, std::string text, std::shared_ptr<PeerState> state,
           std::size_t most_paths)
    : description(std::move(text)), peer(std::move(state)), most_paths_(most_paths) {
  for (auto& device : opened)
    devices.push_back({std::move(device), {}});
  paths.reserve(most_paths);
  cqs.reserve(2 * devices.size());
}

Link::~Link() {
  // Paths on offer refer to this link's receive queues.
  peer->take_offer();
  paths.clear();
  cqs.clear();
}

void Link::add(PathBatch& batch) {
  for (verbs::CompletionQueue& cq : batch.cqs)
    cqs.push_back(std::move(cq));
  for (DataPath& path : batch.paths)
    paths.push_back(std::move(path));
  batch.cqs.clear();
  batch.paths.clear();
}

Error completion_error(const ibv_wc& completion, const std::vector<DataPath>& paths, verbs::Verbs& verbs,
                       const std::string& where, std::uint32_t vendor_id) {
  std::string which = text::format("queue pair {}", completion.qp_num);
  for (std::size_t i = 0; i < paths.size(); i++) {
    if (paths[i].qp->qp_num != completion.qp_num) continue;
    which = text::format("path {} (source port {}, the peer's {}, queue pair {})", i, paths[i].port, paths[i].peer_port,
                         completion.qp_num);
  }
  // Only these fields of a completion are defined after an error (ibv_poll_cq(3); field report F67).
  return Error{text::format("{} completed with {} ({}), {}", which, verbs.wc_status_str(completion.status),
                            int(completion.status), vendor_error_text(completion.vendor_err, vendor_id)),
               where, 0, completion_hint(completion.status)};
}

bool Link::fail(Error error, bool remote) {
  if (!failure_) {
    if (error.where.empty()) error.where = description;
    failure_ = Failure{std::move(error), remote};
    peer->set_failed();
  }
  return false;
}

bool Link::fail_completion(const ibv_wc& completion) {
  return fail(completion_error(completion, paths, verbs(), description, devices.front().opened->port().vendor_id));
}

bool Link::fail_post(const char* call, int code, int path) {
  const char* hint = code == ENOMEM ? "the queue is full: a defect of Weft's own bookkeeping, please report it"
                     : code == EINVAL
                         ? "the queue pair takes no work requests (any more), or the driver none of this kind"
                         : "";
  return fail(
      system_error(text::format("{} on path {} (source port {}) failed", call, path, paths[std::size_t(path)].port),
                   code, description, hint),
      false);
}

// Off the fast path: something has happened, which may be no more than an orderly end of the peer.
bool Link::healthy(bool waiting) {
  if (failure_) return false;
  for (const LinkDevice& one : devices) {
    const int event = one.opened->fatal_event();
    if (event == 0) continue;
    return fail(Error{text::format("fatal event on {}: {}", one.opened->name(),
                                   verbs().event_type_str(ibv_event_type(event - 1))),
                      description, 0, "look at the kernel log of this host"},
                false);
  }
  if (peer->lost()) return fail(Error{text::format("the peer is lost: {}", peer->why()), description, 0, {}});
  if (!peer->closed() || !waiting) return true;
  const Nanoseconds now = steady_now();
  if (closed_since_ == 0) closed_since_ = now;
  if (now - closed_since_ < kGrace) return true;
  return fail(Error{"the peer has closed the connection while requests were outstanding", description, 0, {}});
}

}  // namespace weft::transfer
