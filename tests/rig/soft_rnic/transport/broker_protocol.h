// How a process gets its share of a NIC's UDP port 4791. The broker of a host keeps a group of sockets on that port
// (SO_REUSEPORT) with a filter that picks the socket by the top byte of the packet's destination queue pair number; it
// lends socket number `slot` to a process that connects to an abstract Unix socket, which network namespaces keep
// apart. The process's queue pair numbers have `slot` as their top byte. The loan ends when the connection does.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <optional>

#include "common/result/result.h"
#include "tests/rig/soft_rnic/transport/file_descriptor.h"

namespace weft::soft_rnic {

inline constexpr std::uint32_t kSlots = 64;  // processes that share one NIC at most
inline constexpr std::uint32_t kQueuePairsPerSlot = 1 << 16;
// Asked for every receive socket; without privilege the kernel grants at most net.core.rmem_max.
inline constexpr int kReceiveBuffer = 16 << 20;

struct LoanMessage {
  std::uint32_t slot = 0;
  std::uint32_t first_queue_pair = 0;  // low 16 bits of the first number to use
};

struct UnixAddress {
  sockaddr_un name{};
  socklen_t size = 0;
};

// Where the broker of the NIC with this address (network byte order) listens.
UnixAddress broker_address(std::uint32_t nic_address);

Result<void> send_loan(int connection, const LoanMessage& message, int socket);

// A UDP socket on port 4791 of the NIC.
Result<FileDescriptor> open_receive_socket(std::uint32_t nic_address, bool shared);

struct Loan {
  FileDescriptor socket;
  FileDescriptor connection;  // held open as long as the loan lasts; invalid without a broker
  LoanMessage terms;
};

// From the broker if there is one, else the port for this process alone.
Result<Loan> borrow_receive_socket(std::uint32_t nic_address);

}  // namespace weft::soft_rnic
