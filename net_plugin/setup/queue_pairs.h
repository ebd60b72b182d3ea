// Queue pairs from creation to ready-to-send, a batch at a time: what a connection begins with, and what it gets later.
// Control thread only.
#pragma once

#include <memory>
#include <vector>

#include "net_plugin/setup/messages.h"
#include "net_plugin/setup/open_device.h"
#include "net_plugin/setup/options.h"
#include "net_plugin/transfer/link.h"
#include "net_plugin/transfer/receiver.h"

namespace weft::setup {

enum class Role { sender, receiver };

// Receive work requests that a connection over these devices queues: in each shared receive queue, or in each queue
// pair where the devices have none.
struct ReceiveQueues {
  bool shared = false;
  int receives = 0;
};
Result<ReceiveQueues> plan_receive_queues(const std::vector<std::shared_ptr<OpenDevice>>& devices);
// Creates and fills the shared receive queues where the plan has them.
Result<void> create_shared_queues(transfer::Link& link, const ReceiveQueues& plan);

// The path at place `index` of a connection: the devices at both ends take turns, so that each of the larger side's
// devices has one path before any has two.
struct PathPlace {
  std::uint8_t device = 0;
  std::uint8_t peer_device = 0;
};
PathPlace path_place(std::size_t index, std::size_t devices, std::size_t peer_devices);

// Which rails the two ends of a path are on, for the message where they don't reach each other.
std::string rails_of(const OpenDevice& device, const devices::PortState& here, const PeerDevice& there);

class Batch {
 public:
  // Creates completion queues and queue pairs (RESET -> INIT), one path for each of `ports`, the first of which has
  // place `first` in the connection.
  static Result<Batch> create(const transfer::Link& link, Role role, const Options& options,
                              const std::vector<std::uint16_t>& ports, std::size_t first, std::size_t peer_devices,
                              const ReceiveQueues& receive_queues);

  // What the peer has to know.
  PathOffers offers() const;
  // Extended connection establishment (ibv_query_ece(3)): the accepting side takes what the peer offers, and has what
  // became of it in its offers() after connect(); the connecting side takes that. Before connect().
  void take_extensions(const PathOffers& peer);
  // INIT -> RTR -> RTS towards the peer's queue pairs. May block while the kernel resolves the peer's address.
  Result<void> connect(const Options& options, const PortStates& here, const PeerDevices& peer,
                       const PathOffers& offers);
  // One 8-byte RDMA WRITE on each path.
  Result<void> start_proof(const PathOffers& peer);
  // Takes completions; true when every path has carried its write.
  Result<bool> continue_proof();

  std::size_t size() const { return made_.paths.size(); }
  std::unique_ptr<transfer::PathBatch> take() { return std::make_unique<transfer::PathBatch>(std::move(made_)); }
  // A queue pair connected to itself, for flushes on a device. Before take().
  Result<transfer::FlushPath> create_flush_path(std::size_t device, const Options& options,
                                                const devices::PortState& here) const;

 private:
  Batch() = default;

  Role role_ = Role::sender;
  std::vector<std::shared_ptr<OpenDevice>> devices_;
  // Eight bytes a path that the peer writes to, and eight that we write from.
  std::unique_ptr<std::uint64_t[]> proof_;
  std::vector<verbs::MemoryRegion> proof_regions_;  // by device
  transfer::PathBatch made_;
  std::vector<PathOffer> own_;
  PortStates here_;    // since connect()
  PeerDevices peers_;  // the same
  std::size_t proven_ = 0;
};

}  // namespace weft::setup
