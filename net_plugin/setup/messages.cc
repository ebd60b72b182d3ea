#include "net_plugin/setup/messages.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "common/nccl_abi/net_types.h"
#include "common/text/format.h"
#include "net_plugin/setup/bytes.h"

namespace weft::setup {
namespace {

constexpr std::uint32_t kFrameMagic = 0x54464557;            // "WEFT"
constexpr std::uint64_t kHandleMagic = 0x31656c646e614857;   // "WHandle1"
constexpr std::uint64_t kRefusalMagic = 0x6573756665524857;  // "WHRefuse"
// NCCL's own handles begin with a socket address of the size of sockaddr_in6, padded to 8 bytes, and a magic number.
constexpr std::size_t kHandleAddress = 32;
static_assert(sizeof(sockaddr_in6) == 28);
constexpr std::size_t kConnectingSide = 112;  // from here on the handle is for the connecting side's own use
constexpr std::size_t kMostPaths = 128;

bool is_link_local(const std::array<std::uint8_t, 16>& gid) {
  return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

bool is_mapped_ipv4(const std::array<std::uint8_t, 16>& gid) {
  static constexpr std::uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.data(), kPrefix, sizeof kPrefix) == 0;
}

const char* family(const std::array<std::uint8_t, 16>& gid) {
  if (is_link_local(gid)) return "link-local IPv6";
  return is_mapped_ipv4(gid) ? "IPv4" : "IPv6";
}

std::string gid_text(const std::array<std::uint8_t, 16>& gid) {
  char buffer[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, gid.data(), buffer, sizeof buffer);
  return buffer;
}

const char* link_layer_name(std::uint8_t layer) {
  return layer == 2 ? "Ethernet" : layer == 1 ? "InfiniBand" : "unknown";
}

}  // namespace

std::vector<std::byte> encode_frame(MessageType type, const std::vector<std::byte>& payload) {
  ByteWriter writer;
  writer.u32(kFrameMagic);
  writer.u16(kWireVersion);
  writer.u8(std::uint8_t(type));
  writer.u8(0);
  writer.u32(std::uint32_t(payload.size()));
  writer.raw(payload.data(), payload.size());
  return writer.take();
}

std::vector<std::byte> encode_text(MessageType type, const std::string& text) {
  ByteWriter writer;
  writer.text(text);
  return encode_frame(type, writer.take());
}

std::string decode_text(const Frame& frame) {
  return ByteReader(frame.payload.data(), frame.payload.size()).text();
}

Result<std::optional<Frame>> take_frame(std::vector<std::byte>& received) {
  ByteReader reader(received.data(), received.size());
  const std::uint32_t magic = reader.u32();
  // Judge as soon as the first bytes are there: a foreign peer may never send more.
  const std::size_t known = std::min<std::size_t>(received.size(), sizeof magic);
  if (known == 0) return std::optional<Frame>();
  if (std::memcmp(received.data(), &kFrameMagic, known) != 0) {
    return Error{"the other side does not speak Weft's handshake",
                 {},
                 0,
                 "all ranks need NCCL_NET_PLUGIN=weft NCCL_NET=Weft and the same version of the plugin"};
  }
  reader.u16();
  const std::uint8_t type = reader.u8();
  reader.u8();
  const std::uint32_t length = reader.u32();
  if (!reader.complete()) return std::optional<Frame>();
  if (length > kMaxFrame) return Error{text::format("a handshake message of {} bytes", length), {}, 0, {}};
  if (received.size() < kFrameHeader + length) return std::optional<Frame>();
  Frame frame;
  frame.type = MessageType(type);
  frame.payload.assign(received.begin() + kFrameHeader, received.begin() + kFrameHeader + length);
  received.erase(received.begin(), received.begin() + kFrameHeader + length);
  return std::optional<Frame>(std::move(frame));
}

std::vector<std::byte> encode_hello(const Hello& hello) {
  ByteWriter writer;
  // The first two fields stay first in every version: they decide how the rest is read.
  writer.u16(hello.wire_version);
  writer.u16(hello.oldest_wire_version);
  writer.text(hello.plugin_version);
  writer.u64(hello.listener);
  writer.text(hello.host);
  writer.u32(hello.process);
  writer.text(hello.device);
  writer.u8(hello.link_layer);
  writer.raw(hello.gid.data(), hello.gid.size());
  writer.u8(hello.gid_version);
  writer.u8(hello.path_mtu);
  writer.u8(hello.traffic_class);
  writer.u64(hello.settings_digest);
  writer.u64(hello.ring_address);
  writer.u32(hello.ring_key);
  writer.u64(hello.proof_address);
  writer.u32(hello.proof_key);
  writer.u16(std::uint16_t(hello.paths.size()));
  for (const PathOffer& path : hello.paths) {
    writer.u32(path.queue_pair);
    writer.u32(path.first_psn);
    writer.u16(path.port);
  }
  return encode_frame(MessageType::hello, writer.take());
}

Result<Hello> decode_hello(const Frame& frame) {
  ByteReader reader(frame.payload.data(), frame.payload.size());
  Hello hello;
  hello.wire_version = reader.u16();
  hello.oldest_wire_version = reader.u16();
  hello.plugin_version = reader.text();
  if (hello.oldest_wire_version > kWireVersion || hello.wire_version < kOldestWireVersion) {
    return Error{
        text::format("the peer has Weft {} (wire versions {} to {}), this side speaks {} to {}", hello.plugin_version,
                     hello.oldest_wire_version, hello.wire_version, kOldestWireVersion, kWireVersion),
        {},
        0,
        "bring all hosts to the same release"};
  }
  hello.listener = reader.u64();
  hello.host = reader.text();
  hello.process = reader.u32();
  hello.device = reader.text();
  hello.link_layer = reader.u8();
  reader.raw(hello.gid.data(), hello.gid.size());
  hello.gid_version = reader.u8();
  hello.path_mtu = reader.u8();
  hello.traffic_class = reader.u8();
  hello.settings_digest = reader.u64();
  hello.ring_address = reader.u64();
  hello.ring_key = reader.u32();
  hello.proof_address = reader.u64();
  hello.proof_key = reader.u32();
  const std::size_t paths = reader.u16();
  if (paths == 0 || paths > kMostPaths) return Error{text::format("a peer with {} paths", paths), {}, 0, {}};
  for (std::size_t i = 0; i < paths && reader.complete(); i++) {
    PathOffer path;
    path.queue_pair = reader.u32();
    path.first_psn = reader.u32();
    path.port = reader.u16();
    hello.paths.push_back(path);
  }
  const bool newer = hello.wire_version > kWireVersion;  // may have fields that this version does not know
  if (!(newer ? reader.complete() : reader.exact())) return Error{"a handshake message of the wrong length", {}, 0, {}};
  return hello;
}

std::optional<std::string> objection(const Hello& mine, const Hello& peers) {
  const auto differ = [&](const char* what, const std::string& left, const std::string& right) {
    return text::format("{}: {} on {} has {}, {} on {} has {}", what, mine.device, mine.host, left, peers.device,
                        peers.host, right);
  };
  if (mine.link_layer != peers.link_layer) {
    return differ("link layer mismatch", link_layer_name(mine.link_layer), link_layer_name(peers.link_layer));
  }
  if (is_mapped_ipv4(mine.gid) != is_mapped_ipv4(peers.gid) || is_link_local(mine.gid) != is_link_local(peers.gid)) {
    return differ("GID family mismatch", text::format("{} ({})", gid_text(mine.gid), family(mine.gid)),
                  text::format("{} ({}); check its addresses", gid_text(peers.gid), family(peers.gid)));
  }
  if (mine.gid_version != peers.gid_version) {
    return differ("RoCE version mismatch", text::format("v{}", mine.gid_version),
                  text::format("v{}", peers.gid_version));
  }
  if (mine.paths.size() != peers.paths.size()) {
    return differ("different numbers of paths", std::to_string(mine.paths.size()),
                  text::format("{}; set the same WEFT_PATHS on all ranks", peers.paths.size()));
  }
  return std::nullopt;
}

void encode_handle(const Handle& handle, void* out) {
  ByteWriter writer;
  writer.raw(&handle.address, kHandleAddress);
  writer.u64(handle.listener);
  writer.u64(kHandleMagic);
  writer.u16(handle.wire_version);
  const std::vector<std::byte> bytes = writer.take();
  static_assert(kHandleAddress + 18 <= kConnectingSide && kConnectingSide < NCCL_NET_HANDLE_MAXSIZE);
  std::memset(out, 0, NCCL_NET_HANDLE_MAXSIZE);
  std::memcpy(out, bytes.data(), bytes.size());
}

bool is_another_transport_of_nccl(const std::vector<std::byte>& received, std::uint64_t listener) {
  return received.size() >= sizeof listener && std::memcmp(received.data(), &listener, sizeof listener) == 0;
}

void encode_refusing_handle(const std::string& why, void* out) {
  ByteWriter writer;
  const sockaddr_storage nowhere{};
  writer.raw(&nowhere, kHandleAddress);
  writer.u64(0);
  writer.u64(kRefusalMagic);
  // A text is a length of 16 bits and its bytes.
  constexpr std::size_t kMostText =
      kConnectingSide - kHandleAddress - 2 * sizeof(std::uint64_t) - sizeof(std::uint16_t);
  writer.text(why.substr(0, kMostText));
  const std::vector<std::byte> bytes = writer.take();
  std::memset(out, 0, NCCL_NET_HANDLE_MAXSIZE);
  std::memcpy(out, bytes.data(), bytes.size());
}

Result<Handle> decode_handle(const void* handle) {
  ByteReader reader(static_cast<const std::byte*>(handle), NCCL_NET_HANDLE_MAXSIZE);
  Handle out;
  reader.raw(&out.address, kHandleAddress);
  out.listener = reader.u64();
  const std::uint64_t magic = reader.u64();
  if (magic == kRefusalMagic) {
    return Error{
        text::format("the peer cannot receive: {}", reader.text()), {}, 0, "the peer's log has the whole text"};
  }
  if (magic != kHandleMagic) {
    return Error{"the listener of the peer is not Weft's",
                 {},
                 0,
                 "all ranks need NCCL_NET_PLUGIN=weft NCCL_NET=Weft: a rank without them uses another transport"};
  }
  out.wire_version = reader.u16();
  if (out.address.ss_family != AF_INET && out.address.ss_family != AF_INET6) {
    return Error{text::format("a listener with address family {}", out.address.ss_family), {}, 0, {}};
  }
  return out;
}

}  // namespace weft::setup
