#include "net_plugin/setup/messages.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "common/nccl_abi/net_types.h"
#include "common/text/format.h"
#include "net_plugin/setup/bytes.h"
#include "net_plugin/transfer/wire.h"

namespace weft::setup {
namespace {

constexpr std::uint32_t kFrameMagic = 0x54464557;            // "WEFT"
constexpr std::uint64_t kHandleMagic = 0x31656c646e614857;   // "WHandle1"
constexpr std::uint64_t kRefusalMagic = 0x6573756665524857;  // "WHRefuse"
// NCCL's own handles begin with a socket address of the size of sockaddr_in6, padded to 8 bytes, and a magic number.
constexpr std::size_t kHandleAddress = 32;
static_assert(sizeof(sockaddr_in6) == 28);
constexpr std::size_t kConnectingSide = 112;  // from here on the handle is for the connecting side's own use
constexpr std::size_t kMostPaths = 1024;      // of one message
constexpr std::uint16_t kPrefixLengthsSince = 2;

bool is_link_local(const Gid& gid) {
  return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

bool is_mapped_ipv4(const Gid& gid) {
  static constexpr std::uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.data(), kPrefix, sizeof kPrefix) == 0;
}

const char* family(const Gid& gid) {
  if (is_link_local(gid)) return "link-local IPv6";
  return is_mapped_ipv4(gid) ? "IPv4" : "IPv6";
}

std::string gid_text(const Gid& gid) {
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

namespace {

void write_offers(ByteWriter& writer, const PathOffers& offers) {
  writer.u64(offers.proof_address);
  writer.u8(std::uint8_t(offers.proof_keys.size()));
  for (const std::uint32_t key : offers.proof_keys)
    writer.u32(key);
  writer.u16(std::uint16_t(offers.paths.size()));
  for (const PathOffer& path : offers.paths) {
    writer.u32(path.queue_pair);
    writer.u32(path.first_psn);
    writer.u16(path.port);
    writer.u8(path.device);
    writer.u8(path.peer_device);
    writer.u32(path.extensions.vendor_id);
    writer.u32(path.extensions.options);
    writer.u32(path.extensions.comp_mask);
  }
}

// Checked: every index is one that there is, so that who uses them need not.
Result<PathOffers> read_offers(ByteReader& reader, std::size_t devices, std::size_t peer_devices) {
  PathOffers offers;
  offers.proof_address = reader.u64();
  const std::size_t keys = reader.u8();
  if (keys != devices) return Error{text::format("a peer with {} devices and {} keys", devices, keys), {}, 0, {}};
  for (std::size_t i = 0; i < keys; i++)
    offers.proof_keys.push_back(reader.u32());
  const std::size_t paths = reader.u16();
  if (paths == 0 || paths > kMostPaths) return Error{text::format("a peer with {} paths", paths), {}, 0, {}};
  for (std::size_t i = 0; i < paths && reader.complete(); i++) {
    PathOffer path;
    path.queue_pair = reader.u32();
    path.first_psn = reader.u32();
    path.port = reader.u16();
    path.device = reader.u8();
    path.peer_device = reader.u8();
    path.extensions.vendor_id = reader.u32();
    path.extensions.options = reader.u32();
    path.extensions.comp_mask = reader.u32();
    if (path.device >= devices || path.peer_device >= peer_devices) {
      return Error{text::format("a path from device {} of {} to device {} of {}", path.device, devices,
                                path.peer_device, peer_devices),
                   {},
                   0,
                   {}};
    }
    offers.paths.push_back(path);
  }
  return offers;
}

}  // namespace

std::vector<std::byte> encode_offers(MessageType type, const PathOffers& offers) {
  ByteWriter writer;
  write_offers(writer, offers);
  return encode_frame(type, writer.take());
}

Result<PathOffers> decode_offers(const Frame& frame, std::size_t devices, std::size_t peer_devices) {
  ByteReader reader(frame.payload.data(), frame.payload.size());
  auto offers = read_offers(reader, devices, peer_devices);
  if (offers && !reader.exact()) return Error{"a message of the wrong length", {}, 0, {}};
  return offers;
}

std::vector<std::byte> encode_hello(const Hello& hello) {
  ByteWriter writer;
  // The first two fields stay first in every version: they decide how the rest is read.
  writer.u16(hello.wire_version);
  writer.u16(hello.oldest_wire_version);
  writer.text(hello.plugin_version);
  writer.u64(hello.listener);
  writer.raw(hello.secret.data(), hello.secret.size());
  writer.text(hello.host);
  writer.u32(hello.process);
  writer.u8(hello.traffic_class);
  writer.u64(hello.settings_digest);
  writer.u64(hello.ring_address);
  writer.u8(std::uint8_t(hello.devices.size()));
  for (const PeerDevice& device : hello.devices) {
    writer.text(device.name);
    writer.u8(device.link_layer);
    writer.raw(device.gid.data(), device.gid.size());
    writer.u8(device.gid_version);
    writer.u8(device.path_mtu);
    writer.u32(device.speed_mbps);
    writer.u32(device.ring_key);
  }
  write_offers(writer, hello.offers);
  for (const PeerDevice& device : hello.devices)
    writer.u8(device.prefix_length);
  return encode_frame(MessageType::hello, writer.take());
}

Result<Hello> decode_hello(const Frame& frame, std::size_t own_devices) {
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
  reader.raw(hello.secret.data(), hello.secret.size());
  hello.host = reader.text();
  hello.process = reader.u32();
  hello.traffic_class = reader.u8();
  hello.settings_digest = reader.u64();
  hello.ring_address = reader.u64();
  const std::size_t devices = reader.u8();
  if (devices == 0 || devices > transfer::kMaxDevices)
    return Error{text::format("a peer with {} devices", devices), {}, 0, {}};
  for (std::size_t i = 0; i < devices; i++) {
    PeerDevice device;
    device.name = reader.text();
    device.link_layer = reader.u8();
    reader.raw(device.gid.data(), device.gid.size());
    device.gid_version = reader.u8();
    device.path_mtu = reader.u8();
    device.speed_mbps = reader.u32();
    device.ring_key = reader.u32();
    if (device.path_mtu < IBV_MTU_256 || device.path_mtu > IBV_MTU_4096)
      return Error{text::format("a peer with path MTU code {}", device.path_mtu), {}, 0, {}};
    hello.devices.push_back(device);
  }
  auto offers = read_offers(reader, devices, own_devices);
  if (!offers) return offers.take_error();
  hello.offers = offers.take();
  if (hello.wire_version >= kPrefixLengthsSince) {
    for (PeerDevice& device : hello.devices) {
      device.prefix_length = reader.u8();
      const int longest = is_mapped_ipv4(device.gid) ? 32 : 128;
      if (device.prefix_length > longest)
        return Error{text::format("a peer with a prefix of {} bits", device.prefix_length), {}, 0, {}};
    }
  }
  const bool newer = hello.wire_version > kWireVersion;  // may have fields that this version does not know
  if (!(newer ? reader.complete() : reader.exact())) return Error{"a handshake message of the wrong length", {}, 0, {}};
  return hello;
}

std::optional<std::string> objection(const Hello& mine, const Hello& peers) {
  for (const PeerDevice& own : mine.devices) {
    for (const PeerDevice& theirs : peers.devices) {
      const auto differ = [&](const char* what, const std::string& left, const std::string& right) {
        return text::format("{}: {} on {} has {}, {} on {} has {}", what, own.name, mine.host, left, theirs.name,
                            peers.host, right);
      };
      if (own.link_layer != theirs.link_layer) {
        return differ("link layer mismatch", link_layer_name(own.link_layer), link_layer_name(theirs.link_layer));
      }
      if (is_mapped_ipv4(own.gid) != is_mapped_ipv4(theirs.gid) ||
          is_link_local(own.gid) != is_link_local(theirs.gid)) {
        return differ("GID family mismatch", text::format("{} ({})", gid_text(own.gid), family(own.gid)),
                      text::format("{} ({}); check its addresses", gid_text(theirs.gid), family(theirs.gid)));
      }
      if (own.gid_version != theirs.gid_version) {
        return differ("RoCE version mismatch", text::format("v{}", own.gid_version),
                      text::format("v{}", theirs.gid_version));
      }
    }
  }
  return std::nullopt;
}

std::vector<std::string> remarks(const Hello& mine, const Hello& peers) {
  std::vector<std::string> lines;
  const auto differ = [&](const char* what, const std::string& left, const std::string& right, const char* hint) {
    lines.push_back(text::format("{}: {} has {}, {} has {}; {}", what, mine.host, left, peers.host, right, hint));
  };
  if (mine.traffic_class != peers.traffic_class) {
    differ("different traffic classes", std::to_string(mine.traffic_class), std::to_string(peers.traffic_class),
           "set the same NCCL_IB_TC on all hosts, or answers travel in another priority than data");
  }
  if (mine.devices.size() != peers.devices.size()) {
    differ("different numbers of merged NICs", std::to_string(mine.devices.size()),
           std::to_string(peers.devices.size()), "the smaller side's NICs carry more than their share");
  }
  const int own_mtu = 128 << mine.devices.front().path_mtu, their_mtu = 128 << peers.devices.front().path_mtu;
  if (own_mtu != their_mtu) {
    differ("different path MTUs", std::to_string(own_mtu), std::to_string(their_mtu),
           "the smaller one is used; give all interfaces the same MTU (4200 or more for 4096)");
  }
  if (mine.plugin_version != peers.plugin_version)
    differ("different releases of Weft", mine.plugin_version, peers.plugin_version, "bring all hosts to the same");
  if (mine.settings_digest != peers.settings_digest) {
    lines.push_back(
        text::format("{} and {} have different values of settings that belong to the whole job (WEFT_PATHS, "
                     "NCCL_IB_TC, …; docs/settings.md marks them); compare `weft settings` on both",
                     mine.host, peers.host));
  }
  return lines;
}

void encode_handle(const Handle& handle, void* out) {
  ByteWriter writer;
  writer.raw(&handle.address, kHandleAddress);
  writer.u64(handle.listener);
  writer.u64(kHandleMagic);
  writer.u16(handle.wire_version);
  writer.u8(handle.devices);
  writer.raw(handle.gid.data(), handle.gid.size());
  writer.raw(handle.secret.data(), handle.secret.size());
  const std::vector<std::byte> bytes = writer.take();
  static_assert(kHandleAddress + 19 + sizeof(Gid) + sizeof(Secret) <= kConnectingSide &&
                kConnectingSide < NCCL_NET_HANDLE_MAXSIZE);
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
  out.devices = reader.u8();
  reader.raw(out.gid.data(), out.gid.size());
  reader.raw(out.secret.data(), out.secret.size());
  if (out.devices == 0 || out.devices > transfer::kMaxDevices)
    return Error{text::format("a listener with {} devices", out.devices), {}, 0, {}};
  if (out.address.ss_family != AF_INET && out.address.ss_family != AF_INET6) {
    return Error{text::format("a listener with address family {}", out.address.ss_family), {}, 0, {}};
  }
  return out;
}

}  // namespace weft::setup
