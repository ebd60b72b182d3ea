// Which changes of a queue pair's state modify_qp allows and what each must bring along (table 91 and 11.2.5.2 of the
// specification, reliable connection).
#pragma once

#include <infiniband/verbs.h>

namespace weft::soft_rnic {

// 0, or EINVAL where the change or its attribute mask is not allowed. `to` is `from` where IBV_QP_STATE is not in the
// mask.
int check_transition(ibv_qp_state from, ibv_qp_state to, int mask);

}  // namespace weft::soft_rnic
