#include "net_plugin/setup/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>
#include <random>

namespace weft::setup {
namespace {

using testing::HasSubstr;

Hello sample() {
  Hello hello;
  hello.plugin_version = "1.2.3";
  hello.listener = 77;
  hello.host = "node-a";
  hello.process = 42;
  hello.ring_address = 0x123456789abc;
  PeerDevice device;
  device.name = "mlx5_0:1";
  device.link_layer = 2;
  device.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1};
  device.gid_version = 2;
  device.path_mtu = 5;
  device.ring_key = 0x77;
  device.prefix_length = 24;
  hello.devices = {device};
  hello.offers.proof_address = 0x1000;
  hello.offers.proof_keys = {9};
  hello.offers.paths = {{17, 99, 49153, 0, 0, {1, 2, 3}}, {18, 100, 65535, 0, 0, {}}};
  return hello;
}

Result<Hello> round_trip(std::vector<std::byte> bytes) {
  auto frame = take_frame(bytes);
  if (!frame) return frame.take_error();
  if (!*frame) return Error{"not whole", {}, 0, {}};
  return decode_hello(**frame, 1);
}

TEST(Messages, AHelloSurvivesTheWire) {
  auto back = round_trip(encode_hello(sample()));
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(back->host, "node-a");
  EXPECT_EQ(back->listener, 77u);
  EXPECT_EQ(back->ring_address, 0x123456789abcu);
  ASSERT_EQ(back->devices.size(), 1u);
  EXPECT_EQ(back->devices[0].ring_key, 0x77u);
  EXPECT_EQ(back->devices[0].prefix_length, 24);
  ASSERT_EQ(back->offers.paths.size(), 2u);
  EXPECT_EQ(back->offers.paths[1].port, 65535);
  EXPECT_EQ(back->offers.paths[0].extensions.options, 2u);
  EXPECT_EQ(back->offers.proof_keys, std::vector<std::uint32_t>{9});
}

TEST(Messages, EveryTruncationWaitsForMoreOrIsAnError) {
  const std::vector<std::byte> whole = encode_hello(sample());
  for (std::size_t size = 0; size < whole.size(); size++) {
    std::vector<std::byte> part(whole.begin(), whole.begin() + std::ptrdiff_t(size));
    auto frame = take_frame(part);
    ASSERT_TRUE(frame.ok()) << size;
    ASSERT_FALSE(frame->has_value()) << size;
  }
  // A frame that is whole but whose payload is cut.
  for (std::size_t size = 0; size + kFrameHeader < whole.size(); size++) {
    Frame frame;
    frame.payload.assign(whole.begin() + kFrameHeader, whole.begin() + kFrameHeader + std::ptrdiff_t(size));
    ASSERT_FALSE(decode_hello(frame, 1).ok()) << size;
  }
}

TEST(Messages, AForeignPeerIsRecognisedFromItsFirstBytes) {
  std::vector<std::byte> foreign(8, std::byte{0x5a});
  auto frame = take_frame(foreign);
  ASSERT_FALSE(frame.ok());
  EXPECT_THAT(frame.error().text(), HasSubstr("does not speak Weft's handshake"));
}

TEST(Messages, RandomBytesNeverCrashTheReader) {
  std::mt19937 random(9);
  const std::vector<std::byte> whole = encode_hello(sample());
  for (int run = 0; run < 20000; run++) {
    std::vector<std::byte> bytes = whole;
    for (int i = 0; i < 4; i++)
      bytes[random() % bytes.size()] = std::byte(random());
    (void)round_trip(bytes).ok();
  }
}

TEST(Messages, AnotherWireVersionIsNamed) {
  Hello hello = sample();
  hello.wire_version = 9;
  hello.oldest_wire_version = 8;
  EXPECT_THAT(round_trip(encode_hello(hello)).error().text(), HasSubstr("Weft 1.2.3 (wire versions 8 to 9)"));
}

// A peer of the release before says nothing of prefix lengths, which come last.
TEST(Messages, AHelloOfWireVersionOneIsUnderstood) {
  Hello hello = sample();
  hello.wire_version = 1;
  std::vector<std::byte> bytes = encode_hello(hello);
  Frame frame = **take_frame(bytes);
  frame.payload.pop_back();
  auto back = decode_hello(frame, 1);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->devices[0].prefix_length, 0);
  EXPECT_EQ(back->offers.paths[1].port, 65535);
}

TEST(Messages, APrefixLongerThanItsAddressIsAnError) {
  Hello hello = sample();
  hello.devices[0].prefix_length = 33;
  EXPECT_THAT(round_trip(encode_hello(hello)).error().text(), HasSubstr("a prefix of 33 bits"));
  hello.devices[0].gid[0] = 0x20;
  EXPECT_TRUE(round_trip(encode_hello(hello)));
  hello.devices[0].prefix_length = 129;
  EXPECT_FALSE(round_trip(encode_hello(hello)));
}

TEST(Messages, ObjectionsNameBothSides) {
  const Hello mine = sample();
  EXPECT_FALSE(objection(mine, mine));
  Hello peer = sample();
  peer.devices[0].link_layer = 1;
  EXPECT_THAT(*objection(mine, peer), HasSubstr("link layer mismatch: mlx5_0:1 on node-a has Ethernet"));
  peer = sample();
  peer.devices[0].gid = {0xfe, 0x80};
  EXPECT_THAT(*objection(mine, peer), HasSubstr("link-local IPv6"));
  peer = sample();
  peer.devices[0].gid_version = 1;
  EXPECT_THAT(*objection(mine, peer), HasSubstr("RoCE version mismatch"));
}

TEST(Messages, IndicesThatPointNowhereAreErrors) {
  Hello hello = sample();
  hello.offers.paths[1].device = 1;
  EXPECT_THAT(round_trip(encode_hello(hello)).error().text(), HasSubstr("device 1 of 1"));
  hello = sample();
  hello.offers.paths[0].peer_device = 3;
  EXPECT_THAT(round_trip(encode_hello(hello)).error().text(), HasSubstr("to device 3 of 1"));
  hello = sample();
  hello.offers.proof_keys.clear();
  EXPECT_FALSE(round_trip(encode_hello(hello)).ok());
  hello = sample();
  hello.devices[0].path_mtu = 9;
  EXPECT_THAT(round_trip(encode_hello(hello)).error().text(), HasSubstr("path MTU code 9"));
  hello = sample();
  hello.devices.assign(9, hello.devices[0]);
  hello.offers.proof_keys.assign(9, 1);
  EXPECT_THAT(round_trip(encode_hello(hello)).error().text(), HasSubstr("a peer with 9 devices"));
}

// Nothing to refuse for, but worth a line: which side has what.
TEST(Messages, RemarksNameBothSides) {
  const Hello mine = sample();
  EXPECT_TRUE(remarks(mine, mine).empty());
  Hello peer = sample();
  peer.host = "node-b";
  peer.traffic_class = 106;
  peer.devices[0].path_mtu = 3;
  peer.settings_digest = 1;
  peer.plugin_version = "1.2.4";
  const std::vector<std::string> lines = remarks(mine, peer);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[0], HasSubstr("traffic classes: node-a has 0, node-b has 106"));
  EXPECT_THAT(lines[1], HasSubstr("path MTUs: node-a has 4096, node-b has 1024"));
  EXPECT_THAT(lines[2], HasSubstr("releases of Weft: node-a has 1.2.3, node-b has 1.2.4"));
  EXPECT_THAT(lines[3], HasSubstr("node-a and node-b have different values of settings"));
}

TEST(Handle, BeginsWithTheSocketAddressAsNcclsOwn) {
  Handle handle;
  auto& address = reinterpret_cast<sockaddr_in&>(handle.address);
  address.sin_family = AF_INET;
  address.sin_port = htons(4321);
  handle.listener = 5;
  std::byte bytes[128];
  encode_handle(handle, bytes);
  EXPECT_EQ(std::memcmp(bytes, &address, sizeof address), 0);
  auto back = decode_handle(bytes);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->listener, 5u);
}

// Such a rank reads a magic number at offset 32 and sends it when it has connected, followed by a type.
TEST(Handle, LetsAnotherTransportOfNcclBeKnown) {
  Handle handle;
  handle.listener = 0x1122334455667788;
  std::byte bytes[128];
  encode_handle(handle, bytes);
  std::vector<std::byte> sent(bytes + 32, bytes + 40);
  EXPECT_TRUE(is_another_transport_of_nccl(sent, handle.listener));
  EXPECT_FALSE(is_another_transport_of_nccl(sent, handle.listener + 1));
  sent.resize(7);
  EXPECT_FALSE(is_another_transport_of_nccl(sent, handle.listener));
}

TEST(Handle, OfAnotherTransportOrARefusingListenerIsAnError) {
  std::byte bytes[128] = {};
  EXPECT_THAT(decode_handle(bytes).error().text(), HasSubstr("not Weft's"));
  encode_refusing_handle(std::string(500, 'x'), bytes);
  EXPECT_THAT(decode_handle(bytes).error().text(), HasSubstr("the peer cannot receive: xxxx"));
}

}  // namespace
}  // namespace weft::setup
