#include "tests/rig/soft_rnic/wire/icrc.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace weft::soft_rnic {
namespace {

// The definition, bit by bit, over a packet written out in full.
std::uint32_t crc32_by_definition(const std::vector<std::uint8_t>& bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc;
}

Flow example_flow() {
  Flow flow;
  flow.source_address = inet_addr("10.1.1.2");
  flow.destination_address = inet_addr("10.1.5.2");
  flow.source_port = 49165;
  flow.destination_port = 4791;
  return flow;
}

std::vector<std::uint8_t> random_bytes(std::size_t size, std::uint32_t seed) {
  std::minstd_rand random(seed);
  std::vector<std::uint8_t> bytes(size);
  for (std::uint8_t& byte : bytes)
    byte = static_cast<std::uint8_t>(random() >> 8);
  return bytes;
}

std::uint32_t icrc_by_definition(std::uint16_t identification, const std::vector<std::uint8_t>& transport) {
  const auto length = static_cast<std::uint16_t>(transport.size() + 4);
  const auto ip_length = static_cast<std::uint16_t>(28 + length);
  const auto udp_length = static_cast<std::uint16_t>(8 + length);
  const auto high = [](std::uint16_t value) { return static_cast<std::uint8_t>(value >> 8); };
  const auto low = [](std::uint16_t value) { return static_cast<std::uint8_t>(value & 0xff); };
  std::vector<std::uint8_t> covered(8, 0xff);
  const std::vector<std::uint8_t> network = {0x45,
                                             0xff,
                                             high(ip_length),
                                             low(ip_length),
                                             high(identification),
                                             low(identification),
                                             0x40,
                                             0,
                                             0xff,
                                             17,
                                             0xff,
                                             0xff,
                                             10,
                                             1,
                                             1,
                                             2,
                                             10,
                                             1,
                                             5,
                                             2,
                                             high(49165),
                                             low(49165),
                                             high(4791),
                                             low(4791),
                                             high(udp_length),
                                             low(udp_length),
                                             0xff,
                                             0xff};
  covered.insert(covered.end(), network.begin(), network.end());
  covered.insert(covered.end(), transport.begin(), transport.end());
  covered[8 + 28 + 4] = 0xff;
  return crc32_by_definition(covered);
}

std::vector<std::uint8_t> with_icrc(std::vector<std::uint8_t> transport, std::uint16_t identification) {
  const std::uint32_t crc = icrc_by_definition(identification, transport);
  for (int byte = 0; byte < 4; ++byte)
    transport.push_back(static_cast<std::uint8_t>(crc >> 8 * byte));
  return transport;
}

TEST(Icrc, AgreesWithTheDefinition) {
  for (const std::size_t size : {12U, 16U, 28U, 1036U, 4108U}) {
    const auto transport = random_bytes(size, static_cast<std::uint32_t>(size));
    Icrc icrc(example_flow(), 5, size + 4, std::span(transport).first(12));
    icrc.add(std::span(transport).subspan(12));
    EXPECT_EQ(icrc.value(), icrc_by_definition(5, transport)) << size;
  }
}

TEST(Icrc, PiecesAddUp) {
  const auto transport = random_bytes(512, 1);
  Icrc whole(example_flow(), 0, 516, std::span(transport).first(28));
  whole.add(std::span(transport).subspan(28));
  Icrc pieces(example_flow(), 0, 516, std::span(transport).first(28));
  pieces.add(std::span(transport).subspan(28, 3));
  pieces.add({});
  pieces.add(std::span(transport).subspan(31));
  EXPECT_EQ(pieces.value(), whole.value());
}

TEST(Icrc, EveryIdentificationOfASegmentedSendIsRecognised) {
  for (const std::size_t size : {16U, 1040U, 4136U}) {
    const auto transport = random_bytes(size, 3);
    for (std::uint16_t identification = 0; identification < kIdentifications; ++identification) {
      const auto packet = with_icrc(transport, identification);
      EXPECT_TRUE(icrc_right(example_flow(), 0, packet)) << size << " " << identification;
      EXPECT_TRUE(icrc_right(example_flow(), 17, packet)) << size << " " << identification;
    }
    EXPECT_FALSE(icrc_right(example_flow(), 0, with_icrc(transport, 64)));
    EXPECT_FALSE(icrc_right(example_flow(), 0, with_icrc(transport, 300)));
  }
}

TEST(Icrc, EveryFlippedBitIsNoticed) {
  auto packet = with_icrc(random_bytes(96, 9), 2);
  for (std::size_t byte = 0; byte < packet.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      if (byte == 4) continue;  // FECN and BECN are not covered
      packet[byte] ^= static_cast<std::uint8_t>(1 << bit);
      EXPECT_FALSE(icrc_right(example_flow(), 2, packet)) << byte << "." << bit;
      packet[byte] ^= static_cast<std::uint8_t>(1 << bit);
    }
  }
  packet[4] = 0xc0;
  EXPECT_TRUE(icrc_right(example_flow(), 2, packet));
}

TEST(Icrc, AnotherFlowIsNoticed) {
  const auto packet = with_icrc(random_bytes(64, 4), 0);
  Flow flow = example_flow();
  flow.source_port ^= 1;
  EXPECT_FALSE(icrc_right(flow, 0, packet));
}

TEST(Icrc, TooShortIsWrong) {
  EXPECT_FALSE(icrc_right(example_flow(), 0, std::vector<std::uint8_t>(15, 0)));
}

}  // namespace
}  // namespace weft::soft_rnic
