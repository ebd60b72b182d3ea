// What both ends of a connection have: devices, paths, the state of the peer, and the one failure that ends it.
//
// Threads: made by the control thread, then used by the NCCL thread that calls isend, irecv and test, alone. Only
// PeerState is shared with the control thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result/result.h"
#include "net_plugin/setup/open_device.h"
#include "net_plugin/transfer/path_scheduler.h"
#include "net_plugin/transfer/wire.h"
#include "net_plugin/verbs/handles.h"

namespace weft::transfer {

struct DataPath {
  verbs::QueuePair qp;
  std::uint16_t port = 0;       // UDP source port of what we send
  std::uint16_t peer_port = 0;  // of what the peer sends, its acknowledgements included
  std::uint8_t device = 0;      // which of this side's devices
  std::uint8_t peer_device = 0;
  std::uint32_t inline_bytes = 0;  // what a work request may carry by itself
};

// Paths that come to a connection together, and the completion queues that they report to, one for each device.
struct PathBatch {
  // Queue pairs go before the queues that they report to.
  std::vector<verbs::CompletionQueue> cqs;
  std::vector<DataPath> paths;
};

// The words through which the control thread and the data path tell each other about a connection.
class PeerState {
 public:
  ~PeerState() { delete offered_.load(); }

  // Nothing to look at: no news of the peer, no paths on offer, no failure.
  bool undisturbed() const { return news_.load(std::memory_order_acquire) == 0; }
  bool closed() const { return has(kClosed); }
  bool lost() const { return has(kLost); }
  // Control thread only. The first news counts; lost wins over closed.
  void set_closed() { tell(kClosed); }
  void set_lost(std::string why);
  // Only after lost().
  const std::string& why() const { return why_; }
  // The connection has failed. Data path.
  void set_failed() { tell(kFailed); }

  // More paths, ready for use. Control thread; there must be none on offer.
  void offer(std::unique_ptr<PathBatch> paths);
  bool has_offer() const { return has(kOffer); }
  std::unique_ptr<PathBatch> take_offer();

  // Bytes sent so far: written by the data path, read by the control thread.
  void count_sent(std::size_t bytes) {
    sent_.store(sent_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  std::uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }

 private:
  enum News : unsigned { kClosed = 1, kLost = 2, kOffer = 4, kFailed = 8 };
  bool has(News news) const { return (news_.load(std::memory_order_acquire) & news) != 0; }
  void tell(News news) { news_.fetch_or(news, std::memory_order_acq_rel); }

  std::atomic<unsigned> news_{0};
  std::atomic<PathBatch*> offered_{nullptr};
  std::string why_;
  // On a line of its own: it changes with every message, the words above hardly ever.
  alignas(64) std::atomic<std::uint64_t> sent_{0};
};

// Why a connection has ended. `remote`: the peer or the way to it (ncclRemoteError), else this host (ncclSystemError).
struct Failure {
  Error error;
  bool remote = true;
};

// What a connection has of one of this side's devices.
struct LinkDevice {
  std::shared_ptr<setup::OpenDevice> opened;
  verbs::SharedReceiveQueue srq;  // null: on the sending side, and where the device has none
};

class Link {
 public:
  // `most_paths`: so many will there be at most, so that paths which come later need no memory.
  Link(std::vector<std::shared_ptr<setup::OpenDevice>> opened, std::string text, std::shared_ptr<PeerState> state,
       std::size_t most_paths);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  std::string description;  // "mlx5_0:1 10.1.1.2 -> node-b mlx5_0:1 10.1.2.2", for messages
  std::shared_ptr<PeerState> peer;
  std::vector<LinkDevice> devices;
  std::vector<verbs::CompletionQueue> cqs;
  std::vector<DataPath> paths;

  std::size_t most_paths() const { return most_paths_; }
  verbs::Verbs& verbs() const { return devices.front().opened->verbs(); }
  // Takes what `batch` has.
  void add(PathBatch& batch);

  bool failed() const { return failure_.has_value(); }
  const std::optional<Failure>& failure() const { return failure_; }
  // The first failure counts. Returns false, for the caller to return.
  bool fail(Error error, bool remote = true);
  bool fail_completion(const ibv_wc& completion);
  bool fail_post(const char* call, int code, int path);
  // Nothing to look at: no failure, no event of a device, no news of the peer. Asked in every call, hence in the
  // header.
  bool undisturbed() const { return peer->undisturbed() && !setup::OpenDevice::any_fatal_event(); }
  // Looks at the peer and the devices; false when one of them is gone. `waiting` says whether something is outstanding:
  // a peer that has closed in order is no failure for who waits for nothing.
  bool healthy(bool waiting);

 private:
  std::size_t most_paths_;
  std::optional<Failure> failure_;
  Nanoseconds closed_since_ = 0;
};

// "queue pair 17 (path 3, …) completed with …": the one line about a completion that is not a success.
// `vendor_id`: of the device, for the vendor's code.
Error completion_error(const ibv_wc& completion, const std::vector<DataPath>& paths, verbs::Verbs& verbs,
                       const std::string& where, std::uint32_t vendor_id);

// Nanoseconds of the steady clock.
Nanoseconds steady_now();

}  // namespace weft::transfer
