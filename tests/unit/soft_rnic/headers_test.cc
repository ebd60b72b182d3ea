#include "tests/rig/soft_rnic/wire/headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace weft::soft_rnic {
namespace {

using testing::ElementsAre;

std::vector<std::uint8_t> bytes_of(const HeaderWriter& writer, std::span<const std::uint8_t, kMaxHeaderSize> place) {
  return {place.begin(), place.begin() + static_cast<std::ptrdiff_t>(writer.size())};
}

TEST(Headers, BaseHeaderLiesAsTheSpecificationSays) {
  std::array<std::uint8_t, kMaxHeaderSize> place{};
  HeaderWriter writer(place);
  BaseHeader base;
  base.opcode = Opcode::write_only_immediate;
  base.solicited = true;
  base.pad = 3;
  base.destination_queue_pair = 0x123456;
  base.acknowledge_request = true;
  base.psn = 0xabcdef;
  writer.base(base);
  EXPECT_THAT(bytes_of(writer, place),
              ElementsAre(11, 0x80 | 0x40 | 0x30, 0xff, 0xff, 0, 0x12, 0x34, 0x56, 0x80, 0xab, 0xcd, 0xef));
}

TEST(Headers, ImmediateBytesAreCarriedAsStored) {
  std::array<std::uint8_t, kMaxHeaderSize> place{};
  HeaderWriter writer(place);
  const std::uint8_t stored[4] = {1, 2, 3, 4};
  std::uint32_t immediate = 0;
  std::memcpy(&immediate, stored, sizeof stored);
  writer.immediate(immediate);
  EXPECT_THAT(bytes_of(writer, place), ElementsAre(1, 2, 3, 4));
}

class EveryOpcode : public testing::TestWithParam<int> {};

// Writes a packet with every header its opcode has and takes it apart again.
TEST_P(EveryOpcode, SurvivesTheWire) {
  const auto opcode = static_cast<Opcode>(GetParam());
  const auto layout = layout_of(opcode);
  ASSERT_TRUE(layout);
  std::array<std::uint8_t, kMaxHeaderSize> place{};
  HeaderWriter writer(place);
  const std::vector<std::uint8_t> payload = {9, 8, 7, 6, 5};
  BaseHeader base;
  base.opcode = opcode;
  base.pad = padding_of(payload.size());
  base.destination_queue_pair = 77;
  base.psn = 0xfffffe;
  writer.base(base);
  const RdmaHeader rdma{0x1122334455667788, 0x99aabbcc, 0xddeeff00};
  const AtomicHeader atomic{0x1020304050607080, 0x01020304, 5, 6};
  if (layout->rdma) writer.rdma(rdma);
  if (layout->operation == Operation::atomic) writer.atomic(atomic);
  if (layout->aeth) writer.acknowledge({kSyndromePsnError, 0x00a1b2});
  if (layout->operation == Operation::atomic_response) writer.atomic_result(0xfeedfacecafebeef);
  if (layout->immediate) writer.immediate(0x55667788);
  std::vector<std::uint8_t> bytes = bytes_of(writer, place);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  bytes.insert(bytes.end(), base.pad + kIcrcSize, 0);

  const auto packet = parse_packet(bytes);
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->base.opcode, opcode);
  EXPECT_EQ(packet->base.psn, 0xfffffeU);
  EXPECT_EQ(packet->base.destination_queue_pair, 77U);
  EXPECT_EQ(destination_queue_pair_of(bytes), 77U);
  EXPECT_THAT(std::vector<std::uint8_t>(packet->payload.begin(), packet->payload.end()), testing::Eq(payload));
  if (layout->rdma) {
    EXPECT_EQ(packet->rdma.address, rdma.address);
    EXPECT_EQ(packet->rdma.key, rdma.key);
    EXPECT_EQ(packet->rdma.length, rdma.length);
  }
  if (layout->operation == Operation::atomic) {
    EXPECT_EQ(packet->atomic.address, atomic.address);
    EXPECT_EQ(packet->atomic.swap_or_add, atomic.swap_or_add);
    EXPECT_EQ(packet->atomic.compare, atomic.compare);
  }
  if (layout->aeth) {
    EXPECT_EQ(packet->acknowledge.syndrome, kSyndromePsnError);
    EXPECT_EQ(packet->acknowledge.message_sequence_number, 0x00a1b2U);
  }
  if (layout->operation == Operation::atomic_response) {
    EXPECT_EQ(packet->atomic_result, 0xfeedfacecafebeef);
  }
  if (layout->immediate) {
    EXPECT_EQ(packet->immediate, 0x55667788U);
  }
}

TEST_P(EveryOpcode, CutShortIsRefusedNotMisread) {
  std::vector<std::uint8_t> bytes(kBaseHeaderSize + kAtomicHeaderSize + kImmediateSize + kIcrcSize, 0);
  bytes[0] = static_cast<std::uint8_t>(GetParam());
  const auto layout = layout_of(static_cast<Opcode>(GetParam()));
  std::size_t needed = kBaseHeaderSize + kIcrcSize;
  needed += layout->rdma ? kRdmaHeaderSize : 0;
  needed += layout->operation == Operation::atomic ? kAtomicHeaderSize : 0;
  needed += layout->aeth ? kAcknowledgeHeaderSize : 0;
  needed += layout->operation == Operation::atomic_response ? kAtomicResultSize : 0;
  needed += layout->immediate ? kImmediateSize : 0;
  for (std::size_t size = 0; size < needed; ++size) {
    EXPECT_FALSE(parse_packet(std::span(bytes).first(size))) << size;
  }
  EXPECT_TRUE(parse_packet(std::span(bytes).first(needed)));
}

INSTANTIATE_TEST_SUITE_P(Opcodes, EveryOpcode, testing::Range(0, 21));

TEST(Headers, UnknownOpcodesAndVersionsAreRefused) {
  std::vector<std::uint8_t> bytes(64, 0);
  for (int opcode = 21; opcode < 256; ++opcode) {
    bytes[0] = static_cast<std::uint8_t>(opcode);
    EXPECT_FALSE(parse_packet(bytes)) << opcode;
  }
  bytes[0] = static_cast<std::uint8_t>(Opcode::acknowledge);
  EXPECT_TRUE(parse_packet(bytes));
  bytes[1] = 1;  // transport header version 1
  EXPECT_FALSE(parse_packet(bytes));
}

TEST(Headers, MessageOpcodesFitTheirLayout) {
  for (const Operation operation : {Operation::send, Operation::write}) {
    for (const bool first : {false, true}) {
      for (const bool last : {false, true}) {
        const auto layout = layout_of(message_opcode(operation, first, last, last));
        ASSERT_TRUE(layout);
        EXPECT_EQ(layout->operation, operation);
        EXPECT_EQ(layout->first, first);
        EXPECT_EQ(layout->last, last);
        EXPECT_EQ(layout->immediate, last);
      }
    }
  }
}

}  // namespace
}  // namespace weft::soft_rnic
