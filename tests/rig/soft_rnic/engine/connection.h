// modify_qp: what a change of attributes does to a queue pair.
#pragma once

#include <infiniband/verbs.h>

#include "tests/rig/soft_rnic/engine/nic.h"

namespace weft::soft_rnic {

// 0 or an errno, as ibv_modify_qp returns it: EINVAL for a change that the state does not allow or a value out of
// range, ENETUNREACH and the like for a peer without a route. A failed change leaves the state as it was. Under the
// NIC's lock.
int modify(Nic& nic, QueuePair& queue_pair, const ibv_qp_attr& wanted, int mask);

}  // namespace weft::soft_rnic
