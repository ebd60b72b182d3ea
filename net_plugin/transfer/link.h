// What both ends of a connection have: the device, the paths, the state of the peer, and the one failure that ends it.
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
#include "net_plugin/verbs/handles.h"

namespace weft::transfer {

// The word through which the control thread tells the data path about the peer.
class PeerState {
 public:
  enum class Word : int { present, closed, lost };

  Word word() const { return word_.load(std::memory_order_acquire); }
  // Control thread only. The first news counts; lost wins over closed.
  void set_closed();
  void set_lost(std::string why);
  // Only after word() was `lost`.
  const std::string& why() const { return why_; }

 private:
  std::atomic<Word> word_{Word::present};
  std::string why_;
};

struct DataPath {
  verbs::QueuePair qp;
  std::uint16_t port = 0;       // UDP source port of what we send
  std::uint16_t peer_port = 0;  // of what the peer sends, its acknowledgements included
};

// Why a connection has ended. `remote`: the peer or the way to it (ncclRemoteError), else this host (ncclSystemError).
struct Failure {
  Error error;
  bool remote = true;
};

class Link {
 public:
  Link(std::shared_ptr<setup::OpenDevice> opened, std::string text, std::shared_ptr<PeerState> state)
      : device(std::move(opened)), description(std::move(text)), peer(std::move(state)) {}

  std::shared_ptr<setup::OpenDevice> device;
  std::string description;  // "mlx5_0:1 10.1.1.2 -> node-b mlx5_0:1 10.1.2.2", for messages
  std::shared_ptr<PeerState> peer;
  // Queue pairs go before the queues that they report to.
  verbs::CompletionQueue cq;
  verbs::SharedReceiveQueue srq;
  std::vector<DataPath> paths;

  bool failed() const { return failure_.has_value(); }
  const std::optional<Failure>& failure() const { return failure_; }
  // The first failure counts. Returns false, for the caller to return.
  bool fail(Error error, bool remote = true);
  bool fail_completion(const ibv_wc& completion);
  bool fail_post(const char* call, int code, int path);
  // Looks at the peer and the device; false when one of them is gone. `waiting` says whether something is outstanding:
  // a peer that has closed in order is no failure for who waits for nothing.
  bool healthy(bool waiting, Nanoseconds now);

 private:
  std::optional<Failure> failure_;
  Nanoseconds closed_since_ = 0;
};

// Nanoseconds of the steady clock.
Nanoseconds steady_now();

}  // namespace weft::transfer
