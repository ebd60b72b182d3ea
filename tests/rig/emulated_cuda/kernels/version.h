// Where the two versions behave differently beyond their layouts. Implemented once a version, in version_*.cc.
#pragma once

#include <cstddef>
#include <vector>

#include "tests/rig/emulated_cuda/kernels/block.h"
#include "tests/rig/emulated_cuda/kernels/function_table.h"
#include "tests/rig/emulated_cuda/kernels/layout.h"

namespace weft::nccl_kernels {

// A batch with the works it carries, `count` records of kWorkBytes[kind] one behind the other.
struct Works {
  int kind = kWorkSendReceive;
  int count = 0;
  std::vector<char> records;
};

// Hands the batch's part of the work FIFO back to the host, where the version does it this way.
void release_fifo(const Block& block, const KernelArguments& arguments, const Batch& batch);

// What NCCL's profiler plugins want to know.
void works_started(const Block& block, const Works& works);
void works_completed(const Block& block, const Works& works);

// Which part of a message the channel carries, counted from the first channel of the work.
int send_receive_part(const WorkSendReceive& work, int channel);

// A bit of the work that says "registered between processes": not emulated.
bool is_peer_registered(const WorkSendReceive& work, bool sending);

// Whether the NIC works on the user's buffer itself, for a work that says "registered".
bool is_nic_direct(const ConnectionInfo& connection);

// Chunk and step of a registered message.
struct MessageSteps {
  std::size_t chunk_bytes, step_bytes;
  bool one_handshake;  // the proxy moves the whole message after one
};
MessageSteps registered_message_steps(const Block& block, std::size_t chunk_bytes);

// Several broadcasts of one group, where the version has them.
void run_gathered_broadcasts(const Block& block, const Function& function, const Works& works);

}  // namespace weft::nccl_kernels
