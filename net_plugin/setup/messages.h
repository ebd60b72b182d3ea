// What the two ends of a connection tell each other over TCP before they use verbs. Pure: bytes in, structures out.
// docs/protocol.md describes the frames; the wire version rises with every change here or in transfer/wire.h.
#pragma once

#include <infiniband/verbs.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/result/result.h"

namespace weft::setup {

inline constexpr std::uint16_t kWireVersion = 2;        // spoken; 2: prefix lengths
inline constexpr std::uint16_t kOldestWireVersion = 1;  // understood
inline constexpr std::size_t kMaxFrame = 64 * 1024;
inline constexpr std::size_t kFrameHeader = 12;

enum class MessageType : std::uint8_t {
  hello = 1,    // who I am, my queue pairs
  refuse = 2,   // why there will be no connection
  ready = 3,    // my queue pairs can receive
  proven = 4,   // every path of mine has carried a write
  failed = 5,   // the connection has failed on my side
  closing = 6,  // orderly end
  // More paths for a connection that is up, in the order in which they are sent.
  grow = 7,          // sender: my queue pairs
  grown = 8,         // receiver: mine, they can receive
  grow_ready = 9,    // sender: mine can receive
  grow_proven = 10,  // both: every new path of mine has carried a write
  grow_stop = 11,    // either: no more paths, and why
};

struct Frame {
  MessageType type = MessageType::hello;
  std::vector<std::byte> payload;
};

std::vector<std::byte> encode_frame(MessageType type, const std::vector<std::byte>& payload);
std::vector<std::byte> encode_text(MessageType type, const std::string& text);
std::string decode_text(const Frame& frame);

// Takes one frame from the front of `received` when a whole one is there; an error when the bytes can't be Weft's.
Result<std::optional<Frame>> take_frame(std::vector<std::byte>& received);

using Gid = std::array<std::uint8_t, 16>;
// Keeps strangers out: whoever has the listen handle, which NCCL gives to the peer alone, knows it.
using Secret = std::array<std::uint8_t, 16>;

struct PathOffer {
  std::uint32_t queue_pair = 0;
  std::uint32_t first_psn = 0;
  std::uint16_t port = 0;   // UDP source port of what this side sends
  std::uint8_t device = 0;  // this side's; index into its Hello::devices
  std::uint8_t peer_device = 0;
  ibv_ece extensions{};  // all zero: none
};

// Queue pairs that one side offers, and where the other may write to prove that they work.
struct PathOffers {
  std::uint64_t proof_address = 0;        // 8 bytes a path
  std::vector<std::uint32_t> proof_keys;  // by device
  std::vector<PathOffer> paths;
};

// One side's device, as the other side has to know it.
struct PeerDevice {
  std::string name;             // "mlx5_0:1"
  std::uint8_t link_layer = 0;  // IBV_LINK_LAYER_*
  Gid gid{};
  std::uint8_t gid_version = 0;  // 1: RoCE v1, 2: RoCE v2
  std::uint8_t path_mtu = 0;     // enum ibv_mtu
  std::uint32_t speed_mbps = 0;
  std::uint32_t ring_key = 0;      // sender: of its clear-to-send ring
  std::uint8_t prefix_length = 0;  // of its address in its subnet; 0: not known
};
using PeerDevices = std::vector<PeerDevice>;

// Both sides send the same message; the fields that only one side has are zero in the other's.
struct Hello {
  std::uint16_t wire_version = kWireVersion;
  std::uint16_t oldest_wire_version = kOldestWireVersion;
  std::string plugin_version;
  std::uint64_t listener = 0;  // connecting side: the number in the handle that it got
  Secret secret{};             // connecting side: the handle's; zero in the answer
  std::string host;
  std::uint32_t process = 0;
  std::uint8_t traffic_class = 0;
  std::uint64_t settings_digest = 0;
  std::uint64_t ring_address = 0;  // sender: clear-to-send ring
  PeerDevices devices;
  PathOffers offers;
};

std::vector<std::byte> encode_hello(const Hello& hello);
// `own_devices`: of this side; the peer's paths name them.
Result<Hello> decode_hello(const Frame& frame, std::size_t own_devices);

std::vector<std::byte> encode_offers(MessageType type, const PathOffers& offers);
// `devices`, `peer_devices`: the number that the offering side and this side have.
Result<PathOffers> decode_offers(const Frame& frame, std::size_t devices, std::size_t peer_devices);

// Refuses a peer that this side can't talk to; the text names both sides' values.
std::optional<std::string> objection(const Hello& mine, const Hello& peers);
// What is worth a warning and no reason to refuse; one line each.
std::vector<std::string> remarks(const Hello& mine, const Hello& peers);

// The 128 bytes that NCCL carries from the listener to the connecting side. They begin with the listener's socket
// address, as the handles of NCCL's own transports do: a peer with another transport reaches this listener, is refused,
// and both end in seconds.
struct Handle {
  sockaddr_storage address{};  // IPv4 or IPv6
  std::uint64_t listener = 0;
  std::uint16_t wire_version = kWireVersion;
  std::uint8_t devices = 1;  // of the listening side
  Gid gid{};                 // of the first of them
  Secret secret{};
};

void encode_handle(const Handle& handle, void* out);  // 128 bytes
// Whether `received` is how one of NCCL's own transports begins after it was given our handle: with the eight bytes
// that follow the address, which it takes for its own magic number and we make the listener's.
bool is_another_transport_of_nccl(const std::vector<std::byte>& received, std::uint64_t listener);
// The handle of a side that cannot listen. NCCL gives it to the peer like any other; without it the peer would wait for
// a handle for ever. `why` is cut where it does not fit.
void encode_refusing_handle(const std::string& why, void* out);  // 128 bytes
// An error where the listener is not Weft's or refuses.
Result<Handle> decode_handle(const void* handle);

}  // namespace weft::setup
