#include "tests/rig/soft_rnic/engine/connection.h"

#include <algorithm>
#include <cerrno>

#include "tests/rig/soft_rnic/engine/state_transition.h"

namespace weft::soft_rnic {
namespace {

constexpr std::uint8_t kMaxReads = 16;

std::uint32_t bytes_of(ibv_mtu mtu) {
  return 128U << mtu;
}

bool in_range(const Nic& nic, const ibv_qp_attr& wanted, int mask) {
  const auto at_most = [&](int bit, std::uint32_t value, std::uint32_t limit) {
    return (mask & bit) == 0 || value <= limit;
  };
  const bool mtu =
      (mask & IBV_QP_PATH_MTU) == 0 || (wanted.path_mtu >= IBV_MTU_256 && wanted.path_mtu <= nic.device().mtu);
  const bool port = (mask & IBV_QP_PORT) == 0 || wanted.port_num == 1;
  return mtu && port && at_most(IBV_QP_PKEY_INDEX, wanted.pkey_index, 0) &&
         at_most(IBV_QP_TIMEOUT, wanted.timeout, 31) && at_most(IBV_QP_RETRY_CNT, wanted.retry_cnt, 7) &&
         at_most(IBV_QP_RNR_RETRY, wanted.rnr_retry, 7) && at_most(IBV_QP_MIN_RNR_TIMER, wanted.min_rnr_timer, 31) &&
         at_most(IBV_QP_DEST_QPN, wanted.dest_qp_num, 0xffffff) &&
         at_most(IBV_QP_MAX_QP_RD_ATOMIC, wanted.max_rd_atomic, kMaxReads) &&
         at_most(IBV_QP_MAX_DEST_RD_ATOMIC, wanted.max_dest_rd_atomic, kMaxReads);
}

void store(ibv_qp_attr& attributes, const ibv_qp_attr& wanted, int mask) {
  if (mask & IBV_QP_PKEY_INDEX) attributes.pkey_index = wanted.pkey_index;
  if (mask & IBV_QP_PORT) attributes.port_num = wanted.port_num;
  if (mask & IBV_QP_ACCESS_FLAGS) attributes.qp_access_flags = wanted.qp_access_flags;
  if (mask & IBV_QP_AV) attributes.ah_attr = wanted.ah_attr;
  if (mask & IBV_QP_PATH_MTU) attributes.path_mtu = wanted.path_mtu;
  if (mask & IBV_QP_DEST_QPN) attributes.dest_qp_num = wanted.dest_qp_num;
  if (mask & IBV_QP_RQ_PSN) attributes.rq_psn = wanted.rq_psn;
  if (mask & IBV_QP_SQ_PSN) attributes.sq_psn = wanted.sq_psn;
  if (mask & IBV_QP_MAX_QP_RD_ATOMIC) attributes.max_rd_atomic = wanted.max_rd_atomic;
  if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) attributes.max_dest_rd_atomic = wanted.max_dest_rd_atomic;
  if (mask & IBV_QP_MIN_RNR_TIMER) attributes.min_rnr_timer = wanted.min_rnr_timer;
  if (mask & IBV_QP_TIMEOUT) attributes.timeout = wanted.timeout;
  if (mask & IBV_QP_RETRY_CNT) attributes.retry_cnt = wanted.retry_cnt;
  if (mask & IBV_QP_RNR_RETRY) attributes.rnr_retry = wanted.rnr_retry;
}

void reset(QueuePair& queue_pair) {
  queue_pair.requester().reset();
  queue_pair.responder().reset();
  if (queue_pair.parts().shared_receives == nullptr) queue_pair.receives().clear();
  queue_pair.parts().send_completions->forget(queue_pair.number());
  queue_pair.parts().receive_completions->forget(queue_pair.number());
  queue_pair.attributes() = {};
  queue_pair.retry_send_at = kNever;
  queue_pair.drain_event_due = false;
  queue_pair.set_state(IBV_QPS_RESET);
}

void configure(const Nic& nic, QueuePair& queue_pair) {
  const ibv_qp_attr& attributes = queue_pair.attributes();
  const std::uint32_t mtu = bytes_of(attributes.path_mtu);
  ResponderSettings responder;
  responder.source_queue_pair = attributes.dest_qp_num;
  responder.mtu = mtu;
  responder.access = static_cast<int>(attributes.qp_access_flags);
  responder.receiver_not_ready_timer = attributes.min_rnr_timer;
  queue_pair.responder().configure(responder);

  RequesterSettings& requester = queue_pair.requester().settings();
  requester.destination_queue_pair = attributes.dest_qp_num;
  requester.mtu = mtu;
  requester.window_packets = nic.window_packets(mtu);
  requester.max_outstanding_reads = attributes.max_rd_atomic;
  requester.timeout = attributes.timeout;
  requester.retry_count = attributes.retry_cnt;
  requester.receiver_retry_count = attributes.rnr_retry;
  requester.never_retransmit = nic.never_retransmit();
}

}  // namespace

int modify(Nic& nic, QueuePair& queue_pair, const ibv_qp_attr& wanted, int mask) {
  const ibv_qp_state from = queue_pair.state();
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? wanted.qp_state : from;
  if (const int refused = check_transition(from, to, mask)) return refused;
  if (to == IBV_QPS_RESET) {
    reset(queue_pair);
    return 0;
  }
  if (to == IBV_QPS_ERR) {
    queue_pair.enter_error_state();
    return 0;
  }
  if (!in_range(nic, wanted, mask)) return EINVAL;
  if ((mask & IBV_QP_AV) != 0) {
    if ((mask & IBV_QP_DEST_QPN) != 0) queue_pair.attributes().dest_qp_num = wanted.dest_qp_num;
    if (auto path = nic.set_path(queue_pair, wanted.ah_attr); !path) return path.error().code;
  }
  store(queue_pair.attributes(), wanted, mask);
  configure(nic, queue_pair);
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) queue_pair.responder().start_at(wanted.rq_psn);
  if (from == IBV_QPS_RTR && to == IBV_QPS_RTS) queue_pair.requester().start_at(wanted.sq_psn);
  queue_pair.requester().set_draining(to == IBV_QPS_SQD);
  if (to == IBV_QPS_SQD && (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0) {
    queue_pair.drain_event_due = wanted.en_sqd_async_notify != 0;
  }
  queue_pair.set_state(to);
  nic.settle(queue_pair);
  return 0;
}

}  // namespace weft::soft_rnic
