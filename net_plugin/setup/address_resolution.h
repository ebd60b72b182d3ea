// Finds out ahead of the queue pairs whether a peer's address is reached from a NIC's, and warms up the kernel's
// neighbour entry: ibv_modify_qp(3) INIT -> RTR would resolve it as well, but holds up the control thread and every
// other connection meanwhile, for seconds where a neighbour does not answer.
//
// Control thread only. Not tried on hardware.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <optional>
#include <string>

#include "net_plugin/setup/control.h"
#include "net_plugin/setup/messages.h"
#include "net_plugin/verbs/connection_manager.h"

namespace weft::setup {

struct ResolutionSetup {
  std::string device;  // the NIC as the verbs know it: "mlx5_0"
  Gid from{};          // its GID that the queue pairs use
  Gid to{};
  TimePoint deadline;  // a neighbour that does not answer is asked again until then
};

class AddressResolution {
 public:
  // Null where the connection manager can't help: its device node is missing, or the kernel does not let it. Whoever
  // asked goes on without.
  static std::unique_ptr<AddressResolution> start(verbs::ConnectionManager& manager, ResolutionSetup setup,
                                                  TimePoint now);
  ~AddressResolution();
  AddressResolution(const AddressResolution&) = delete;
  AddressResolution& operator=(const AddressResolution&) = delete;

  // Never blocks: call it every few milliseconds. Nothing: not finished. The error says whether the route is missing,
  // the neighbour silent, or the address none of the NIC's.
  std::optional<Result<void>> step(TimePoint now);

  // Worth a line in the log although it is no error; empty where there is nothing.
  const std::string& remark() const { return remark_; }
  const Gid& from() const { return setup_.from; }
  const Gid& to() const { return setup_.to; }

 private:
  enum class Stage { address, route };

  AddressResolution(verbs::ConnectionManager& manager, ResolutionSetup setup)
      : manager_(manager), setup_(std::move(setup)) {}
  bool open();
  int begin_address(TimePoint now);
  void drop_id();
  std::optional<Result<void>> handle(rdma_cm_event_type type, int status, TimePoint now);
  std::optional<Result<void>> failed(int code, TimePoint now);

  verbs::ConnectionManager& manager_;
  ResolutionSetup setup_;
  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id* id_ = nullptr;
  Stage stage_ = Stage::address;
  TimePoint next_try_{};
  std::string remark_;
};

}  // namespace weft::setup
