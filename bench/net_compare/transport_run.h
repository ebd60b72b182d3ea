// One transport driven through NCCL's net interface (v11) over the NIC that is none, both ends on one thread. Run in a
// process of its own, with the transport's libraries on the library path.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "common/result/result.h"

namespace weft::net_compare {

struct RunOptions {
  std::string transport;     // "Weft" or "IB"
  std::size_t bytes = 4096;  // of a message
  int messages = 20;         // in the stretch that is counted
  int connections = 0;       // instead of messages: set up so many
  bool first_bytes = false;  // and let each carry a byte
};

// With messages the three stretches between the markers of step_counter.h are: nothing at all; `messages` messages,
// each by the same calls (irecv, isend, one test of each in vain, test of each until done); `messages` pairs of tests
// in vain. With connections the result says how long they took to set up and what memory
// they hold, and with first bytes how long until all of those had come and how many queue pairs there are then.
Result<nlohmann::json> run_transport(const RunOptions& options);

}  // namespace weft::net_compare
