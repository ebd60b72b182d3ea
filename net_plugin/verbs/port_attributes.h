// ibv_query_port(3) with what newer releases of rdma-core have behind the structure that we are built with.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace weft::verbs {

struct PortAttributes : ibv_port_attr {
  // active_speed_ex: the speed's code where it may have more than 8 bits. 0: the library does not say.
  std::uint32_t wide_speed = 0;

  std::uint32_t speed_code() const { return wide_speed != 0 ? wide_speed : active_speed; }
};

// Asks through the context's extended operations. `plain`: the library's exported function, which fills in the older,
// shorter structure only; for contexts that have no such operation, or where it fails.
int query_port(ibv_context* context, std::uint8_t port, PortAttributes* out,
               int (*plain)(ibv_context*, std::uint8_t, ibv_port_attr*));

}  // namespace weft::verbs
