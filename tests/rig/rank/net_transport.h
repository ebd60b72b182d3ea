// A transport of NCCL's net interface, chosen by the environment as NCCL chooses it: NCCL_NET=Weft loads the plugin, IB
// and Socket are NCCL's own, out of the libnccl.so.2 of the library path.
#pragma once

#include <memory>
#include <string>

#include "common/result/result.h"
#include "tests/rig/rank/net_interface.h"

namespace weft::rank {

struct NetTransport {
  std::string name;
  std::unique_ptr<versions::NetInterface> net;
};

// Loaded and initialised. `nccl`: 22203 for 2.22.3; it decides which version of the interface is used.
Result<NetTransport> load_transport(int nccl);

}  // namespace weft::rank
