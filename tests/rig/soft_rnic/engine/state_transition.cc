#include "tests/rig/soft_rnic/engine/state_transition.h"

#include <algorithm>
#include <array>
#include <cerrno>

namespace weft::soft_rnic {
namespace {

struct Transition {
  ibv_qp_state from;
  ibv_qp_state to;
  int required;
  int optional;
};

constexpr int kToReadyToReceive =
    IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kToReadyToSend =
    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr int kAlternatePath = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
constexpr int kWhileReady = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | kAlternatePath;
constexpr int kInitial = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

// A new address (IBV_QP_AV) for a connected queue pair is taken in SQD only, as by rdma_rxe and real devices.
constexpr std::array<Transition, 8> kTransitions = {{
    {IBV_QPS_RESET, IBV_QPS_INIT, kInitial, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, kInitial},
    {IBV_QPS_INIT, IBV_QPS_RTR, kToReadyToReceive, IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | kAlternatePath},
    {IBV_QPS_RTR, IBV_QPS_RTS, kToReadyToSend, kWhileReady},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, kWhileReady},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY | IBV_QP_CUR_STATE},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0,
     IBV_QP_AV | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
         IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | kWhileReady},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0, kWhileReady},
}};

}  // namespace

int check_transition(ibv_qp_state from, ibv_qp_state to, int mask) {
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return 0;
  const auto found = std::find_if(kTransitions.begin(), kTransitions.end(), [&](const Transition& transition) {
    return transition.from == from && transition.to == to;
  });
  if (found == kTransitions.end() || (mask & found->required) != found->required) return EINVAL;
  return (mask & ~(found->required | found->optional | IBV_QP_STATE)) == 0 ? 0 : EINVAL;
}

}  // namespace weft::soft_rnic
