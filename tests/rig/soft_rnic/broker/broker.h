// Owns UDP port 4791 of one NIC for all processes of a host, see transport/broker_protocol.h. Needs no privilege.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

#include "common/result/result.h"
#include "tests/rig/soft_rnic/device/host_description.h"
#include "tests/rig/soft_rnic/transport/broker_protocol.h"
#include "tests/rig/soft_rnic/transport/file_descriptor.h"

namespace weft::soft_rnic {

class NicBroker {
 public:
  static Result<NicBroker> open(const DeviceDescription& device);

  // What to wait for; in the order that handle() expects the answers.
  void append_sources(std::vector<pollfd>& sources) const;
  // `sources` begins with those that append_sources() put there; returns how many they were.
  std::size_t handle(const pollfd* sources);

 private:
  struct Slot {
    FileDescriptor socket;
    FileDescriptor client;  // invalid: free
    std::uint32_t next_queue_pair = 0;
  };

  void lend(FileDescriptor client);
  void take_back(Slot& slot);

  FileDescriptor listener_;
  std::vector<Slot> slots_;
};

}  // namespace weft::soft_rnic
