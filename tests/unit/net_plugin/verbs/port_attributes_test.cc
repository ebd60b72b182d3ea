// What is read of a port through libraries that know more than the headers we are built with, as much, or less.
#include "net_plugin/verbs/port_attributes.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

namespace weft::verbs {
namespace {

constexpr std::uint8_t kCutOff = 128;

int plain(ibv_context*, std::uint8_t port, ibv_port_attr* attributes) {
  attributes->lid = port;
  attributes->active_speed = kCutOff;
  return 0;
}

// A context with this operation.
struct Extended {
  verbs_context context{};
  explicit Extended(decltype(verbs_context::query_port) operation) {
    context.query_port = operation;
    context.sz = sizeof context;
    context.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  }
};

PortAttributes ask(ibv_context& context, int code = 0) {
  PortAttributes out;
  out.wide_speed = 77;
  EXPECT_EQ(query_port(&context, 3, &out, plain), code);
  return out;
}

TEST(PortAttributes, F65_ALibraryWithTheWideSpeedIsAskedForIt) {
  Extended newer([](ibv_context*, std::uint8_t port, ibv_port_attr* attributes, std::size_t room) {
    if (room < 56) return EINVAL;
    attributes->lid = port;
    attributes->active_speed = kCutOff;
    const std::uint32_t code = 256;
    std::memcpy(reinterpret_cast<char*>(attributes) + 52, &code, sizeof code);
    return 0;
  });
  const PortAttributes got = ask(newer.context.context);
  EXPECT_EQ(got.lid, 3);
  EXPECT_EQ(got.wide_speed, 256u);
  EXPECT_EQ(got.speed_code(), 256u);
}

TEST(PortAttributes, F65_OlderLibrariesHaveTheNarrowOne) {
  Extended older([](ibv_context*, std::uint8_t, ibv_port_attr* attributes, std::size_t) {
    attributes->active_speed = 64;
    return 0;
  });
  EXPECT_EQ(ask(older.context.context).speed_code(), 64u);
  // One that does not take a structure of another size, and one without extended operations.
  Extended strict([](ibv_context*, std::uint8_t, ibv_port_attr* attributes, std::size_t) {
    std::memset(static_cast<void*>(attributes), 0xff, 56);
    return EINVAL;
  });
  ibv_context bare{};
  for (ibv_context* context : {&strict.context.context, &bare}) {
    const PortAttributes got = ask(*context);
    EXPECT_EQ(got.lid, 3);
    EXPECT_EQ(got.wide_speed, 0u);
    EXPECT_EQ(got.speed_code(), kCutOff);
  }
}

TEST(PortAttributes, AFailureIsReported) {
  ibv_context bare{};
  PortAttributes out;
  EXPECT_EQ(query_port(&bare, 1, &out, [](ibv_context*, std::uint8_t, ibv_port_attr*) { return ENODEV; }), ENODEV);
}

}  // namespace
}  // namespace weft::verbs
