// Queue pairs of a connection from creation to ready-to-send.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "net_plugin/setup/messages.h"
#include "net_plugin/setup/open_device.h"
#include "net_plugin/setup/options.h"
#include "net_plugin/transfer/link.h"
#include "net_plugin/transfer/receiver.h"

namespace weft::setup {

enum class Role { sender, receiver };

// A connection's verbs objects while it is being set up. Control thread only.
struct Endpoint {
  std::unique_ptr<transfer::Link> link;
  std::vector<std::uint32_t> first_psns;
  int receives = 0;  // receiver: work requests to queue
  // Eight bytes a path that the peer writes to, and eight that we write from, to prove that the path carries data.
  std::unique_ptr<std::uint64_t[]> proof;
  verbs::MemoryRegion proof_region;
};

// Creates the queues and queue pairs (RESET -> INIT); ports: one UDP source port for each path.
Result<Endpoint> create_endpoint(std::shared_ptr<OpenDevice> device, Role role, const Options& options,
                                 const std::vector<std::uint16_t>& ports, std::shared_ptr<transfer::PeerState> peer);

// INIT -> RTR -> RTS towards the peer's queue pairs. May block while the kernel resolves the peer's address.
Result<void> connect_paths(Endpoint& endpoint, Role role, const Options& options, const Hello& peer);

// One 8-byte RDMA WRITE on each path.
Result<void> start_proof(Endpoint& endpoint, const Hello& peer);
// Takes completions; how many paths are proven so far is kept in *proven.
Result<void> continue_proof(Endpoint& endpoint, int* proven);

// A queue pair connected to itself, for flushes.
Result<transfer::FlushPath> create_flush_path(const OpenDevice& device, const transfer::Link& link,
                                              const Options& options);

}  // namespace weft::setup
