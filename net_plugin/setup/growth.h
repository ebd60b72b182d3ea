// More paths for a connection that is up, in the background: the data path goes on with what it has until the new paths
// have proven themselves. Driven by the connection's session on the control thread; messages go over its socket.
//
//   sender                               receiver
//   grow (queue pairs in INIT) ────────► queue pairs to RTS
//   queue pairs to RTS ◄──────────────── grown
//   grow_ready ────────────────────────► (its writes may start)
//   first write on each new path         first write on each new path
//   grow_proven ───────────────────────► ◄──────────── grow_proven
//   paths offered to NCCL's thread       paths offered to NCCL's thread
//
// Either side may say grow_stop instead; the connection then keeps the paths it has.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net_plugin/setup/control.h"
#include "net_plugin/setup/queue_pairs.h"

namespace weft::setup {

struct GrowthSetup {
  Role role = Role::sender;
  const transfer::Link* link = nullptr;  // outlives the growth; only its devices are looked at
  Options options;
  PortStates here;
  PeerDevices peer;
  ReceiveQueues receive_queues;
  std::size_t first = 0;             // place of the first new path in the connection
  std::vector<std::uint16_t> ports;  // for the new paths
};

class Growth {
 public:
  // What to send to the peer; nothing to send is an empty one.
  using Reply = Result<std::vector<std::byte>>;

  explicit Growth(GrowthSetup setup) : setup_(std::move(setup)) {}

  // Sender: the first message.
  Reply begin();
  Reply handle(const Frame& frame);
  // While proving(): call it often.
  Reply continue_proof();
  bool proving() const { return proving_ && !proven_; }
  // Both sides have proven all paths: what NCCL's thread gets.
  std::unique_ptr<transfer::PathBatch> take_finished();

 private:
  Reply answer(const Frame& frame);
  Reply start_proof();
  Result<void> create();

  GrowthSetup setup_;
  std::optional<Batch> batch_;
  PathOffers peer_offers_;
  bool proving_ = false;
  bool proven_ = false;
  bool peer_proven_ = false;
};

}  // namespace weft::setup
