#include "net_plugin/verbs/port_attributes.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace weft::verbs {
namespace {

// Where releases that have active_speed_ex have it, whichever release we are built with.
constexpr std::size_t kWideSpeed = 52;
constexpr std::size_t kRoom = kWideSpeed + sizeof(std::uint32_t);
static_assert(offsetof(ibv_port_attr, port_cap_flags2) + sizeof(std::uint16_t) <= kWideSpeed &&
              sizeof(ibv_port_attr) <= kRoom);

}  // namespace

int query_port(ibv_context* context, std::uint8_t port, PortAttributes* out,
               int (*plain)(ibv_context*, std::uint8_t, ibv_port_attr*)) {
  alignas(ibv_port_attr) std::array<std::byte, kRoom> room{};
  auto* attributes = reinterpret_cast<ibv_port_attr*>(room.data());
  // Libraries that know less leave the end alone.
  verbs_context* extended = verbs_get_ctx_op(context, query_port);
  int code = extended ? extended->query_port(context, port, attributes, room.size()) : ENOSYS;
  if (code != 0) {
    room = {};
    code = plain(context, port, attributes);
  }
  std::memcpy(static_cast<ibv_port_attr*>(out), room.data(), sizeof(ibv_port_attr));
  std::memcpy(&out->wide_speed, room.data() + kWideSpeed, sizeof out->wide_speed);
  return code;
}

}  // namespace weft::verbs
