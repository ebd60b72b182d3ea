// What NCCL's kernels do with the connections of a channel: send, receive, reduce and copy, in one of three protocols.
// README §6. The names are those of NCCL's device code, where one primitive is one combination of the four.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "tests/rig/emulated_cuda/kernels/block.h"
#include "tests/rig/emulated_cuda/kernels/reduction.h"

namespace weft::nccl_kernels {

// One end of a FIFO between two ranks, during one work.
struct Connection {
  ConnectionInfo* info;
  std::uint64_t step;  // the next one
};

// What a step does.
struct Step {
  bool receive = false, send = false;
  const char* source = nullptr;  // the rank's own input; null: none
  char* destination = nullptr;   // the user's output; null: none
  std::ptrdiff_t elements = 0;
  bool last_reduction = false;
  // Where the step's data belongs in the user's receive buffer, for a NIC that works on that buffer.
  char* place = nullptr;
};

struct PrimitivesSetup {
  Protocol protocol = kSimple;
  int slices_per_chunk = 1, steps_per_slice = 1;  // of Simple; LL and LL128 have one step a chunk
  std::vector<int> receive_from, send_to;         // ranks; negative ones are left out
  int connection = kCollectiveConnection;
  std::size_t step_bytes = 0;   // of Simple; 0: a slot of the buffer
  bool registered = false;      // the NIC may work on the user's buffers (Simple)
  bool handshake_only = false;  // then: nothing is copied between user buffer and FIFO
};

class Primitives {
 public:
  Primitives(const Block& block, PrimitivesSetup setup, const Reduction& reduction);
  ~Primitives();  // stores the steps for the next work on these connections
  Primitives(const Primitives&) = delete;
  Primitives& operator=(const Primitives&) = delete;

  void send(const char* source, std::ptrdiff_t elements, char* place = nullptr) {
    step({.send = true, .source = source, .elements = elements, .place = place});
  }
  void copy_send(const char* source, char* destination, std::ptrdiff_t elements, char* place = nullptr) {
    step({.send = true, .source = source, .destination = destination, .elements = elements, .place = place});
  }
  void recv(char* destination, std::ptrdiff_t elements, char* place = nullptr) {
    step({.receive = true, .destination = destination, .elements = elements, .place = place});
  }
  void recv_copy_send(char* destination, std::ptrdiff_t elements, char* place = nullptr) {
    step({.receive = true, .send = true, .destination = destination, .elements = elements, .place = place});
  }
  void recv_reduce_send(const char* source, std::ptrdiff_t elements, char* place = nullptr) {
    step({.receive = true, .send = true, .source = source, .elements = elements, .place = place});
  }
  void recv_reduce_copy(const char* source, char* destination, std::ptrdiff_t elements) {
    step({.receive = true,
          .source = source,
          .destination = destination,
          .elements = elements,
          .last_reduction = true,
          .place = nullptr});
  }
  void recv_reduce_copy_send(const char* source, char* destination, std::ptrdiff_t elements, char* place = nullptr) {
    step({.receive = true,
          .send = true,
          .source = source,
          .destination = destination,
          .elements = elements,
          .last_reduction = true,
          .place = place});
  }

  // Any combination. Negative `elements` count as none; the handshake takes place all the same. After an abort a step
  // does nothing, so that the loops of a collective run out.
  void step(Step step);

 private:
  template <class Lines>
  friend class LineStep;

  std::vector<Connection> connections(const std::vector<int>& ranks, bool receiving);
  void step_simple(const Step& step);
  struct Slice;
  bool wait_for_inputs(const Step& step, Slice& slice);
  bool wait_for_outputs(const Step& step, Slice& slice);
  void advance(const Step& step);
  void step_ll(const Step& step);
  void step_ll128(const Step& step);

  // A sender may fill a slot once it is free; the proxy is told how much there will be.
  bool wait_for_slot(Connection& connection, ssize_t bytes);
  bool is_nic_direct(const Connection& connection) const;
  char* simple_slot(const Connection& connection) const;

  const Block& block_;
  const PrimitivesSetup setup_;
  const Reduction reduction_;
  int slices_per_chunk_, steps_per_slice_;
  std::ptrdiff_t step_elements_;
  std::vector<Connection> receivers_, senders_;
  bool aborted_ = false;
};

}  // namespace weft::nccl_kernels
