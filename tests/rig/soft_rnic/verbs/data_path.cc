// The fast path: posting work, polling and arming completion queues.
#include <cerrno>
#include <cstring>
#include <mutex>

#include "tests/rig/soft_rnic/verbs/handles.h"

namespace weft::soft_rnic {
namespace {

// Turns scatter/gather elements into addresses; false where one is not registered for `access`.
bool resolve(QueuePair& queue_pair, const ibv_sge* elements, int count, int access, PieceList& pieces) {
  pieces.count = 0;
  for (int index = 0; index < count; ++index) {
    const ibv_sge& element = elements[index];
    if (element.length == 0) continue;
    std::uint8_t* place = queue_pair.find(element.lkey, element.addr, element.length, access);
    if (place == nullptr) return false;
    pieces.pieces[pieces.count++] = {place, element.length};
  }
  return true;
}

void copy_inline(const ibv_send_wr& work, SendRequest& request) {
  request.inline_data.resize(request.length);
  std::uint8_t* place = request.inline_data.data();
  for (int index = 0; index < work.num_sge; ++index) {
    const ibv_sge& element = work.sg_list[index];
    if (element.length == 0) continue;
    std::memcpy(place, reinterpret_cast<const void*>(element.addr), element.length);
    place += element.length;
  }
  request.memory.count = request.length > 0 ? 1 : 0;
  request.memory.pieces[0] = {request.inline_data.data(), request.length};
}

bool known_opcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return true;
    default:
      return false;
  }
}

std::uint64_t total_length(const ibv_send_wr& work) {
  std::uint64_t length = 0;
  for (int index = 0; index < work.num_sge; ++index)
    length += work.sg_list[index].length;
  return length;
}

constexpr std::uint64_t kMaxMessage = std::uint64_t{1} << 31;

int queue_send(QueuePair& queue_pair, const ibv_send_wr& work) {
  Requester& requester = queue_pair.requester();
  if (work.num_sge < 0 || work.num_sge > static_cast<int>(kMaxPieces) || !known_opcode(work.opcode)) return EINVAL;
  if (requester.full()) return ENOMEM;
  const std::uint64_t length = total_length(work);
  if (length > kMaxMessage) return EINVAL;

  SendRequest& request = requester.prepare();
  request.id = work.wr_id;
  request.opcode = work.opcode;
  request.signaled = (work.send_flags & IBV_SEND_SIGNALED) != 0;
  request.solicited = (work.send_flags & IBV_SEND_SOLICITED) != 0;
  request.fenced = (work.send_flags & IBV_SEND_FENCE) != 0;
  request.immediate = work.imm_data;
  request.length = static_cast<std::uint32_t>(length);
  request.local_error = IBV_WC_SUCCESS;
  request.inlined = false;
  if (request.is_atomic()) {
    if (length != sizeof(std::uint64_t)) return EINVAL;
    request.remote_address = work.wr.atomic.remote_addr;
    request.remote_key = work.wr.atomic.rkey;
    const bool swap = work.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    request.compare = swap ? work.wr.atomic.compare_add : 0;
    request.swap_or_add = swap ? work.wr.atomic.swap : work.wr.atomic.compare_add;
  } else {
    request.remote_address = work.wr.rdma.remote_addr;
    request.remote_key = work.wr.rdma.rkey;
  }
  if ((work.send_flags & IBV_SEND_INLINE) != 0 && !request.wants_response()) {
    if (length > queue_pair.parts().capabilities.max_inline_data) return EINVAL;
    request.inlined = true;
    copy_inline(work, request);
  } else {
    const int access = request.wants_response() ? IBV_ACCESS_LOCAL_WRITE : 0;
    if (!resolve(queue_pair, work.sg_list, work.num_sge, access, request.memory)) {
      request.local_error = IBV_WC_LOC_PROT_ERR;
    }
  }
  requester.post();
  return 0;
}

int post_send(ibv_qp* qp, ibv_send_wr* work, ibv_send_wr** bad) {
  QueuePair& queue_pair = *handle_of(qp).engine;
  Nic& nic = *handle_of(qp->context).nic;
  const std::lock_guard lock(nic.mutex());
  const ibv_qp_state state = queue_pair.state();
  int failed = state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_ERR ? 0 : EINVAL;
  for (; work != nullptr && failed == 0; work = work->next) {
    failed = queue_send(queue_pair, *work);
    if (failed != 0) break;
  }
  if (work != nullptr) *bad = work;
  if (state == IBV_QPS_ERR) {
    queue_pair.requester().flush();
  } else {
    nic.settle(queue_pair);
  }
  return failed;
}

int queue_receive(QueuePair& queue_pair, ReceiveQueue& queue, const ibv_recv_wr& work) {
  if (work.num_sge < 0 || work.num_sge > static_cast<int>(kMaxPieces)) return EINVAL;
  if (queue.full()) return ENOMEM;
  ReceiveRequest request;
  request.id = work.wr_id;
  if (!resolve(queue_pair, work.sg_list, work.num_sge, IBV_ACCESS_LOCAL_WRITE, request.memory)) return EINVAL;
  queue.post(request);
  return 0;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* work, ibv_recv_wr** bad) {
  QueuePair& queue_pair = *handle_of(qp).engine;
  const std::lock_guard lock(handle_of(qp->context).nic->mutex());
  int failed = queue_pair.state() == IBV_QPS_RESET || queue_pair.parts().shared_receives != nullptr ? EINVAL : 0;
  for (; work != nullptr && failed == 0; work = work->next) {
    failed = queue_receive(queue_pair, queue_pair.receives(), *work);
    if (failed != 0) break;
  }
  if (work != nullptr) *bad = work;
  if (queue_pair.state() == IBV_QPS_ERR) queue_pair.flush_receives();
  return failed;
}

int post_shared_receive(ibv_srq* srq, ibv_recv_wr* work, ibv_recv_wr** bad) {
  SharedReceiveQueueHandle& handle = handle_of(srq);
  Nic& nic = *handle_of(srq->context).nic;
  const std::lock_guard lock(nic.mutex());
  for (; work != nullptr; work = work->next) {
    ReceiveRequest request;
    request.id = work->wr_id;
    int failed = work->num_sge < 0 || work->num_sge > static_cast<int>(handle.max_pieces) ? EINVAL : 0;
    if (failed == 0 && handle.receives.queue.full()) failed = ENOMEM;
    for (int index = 0; index < work->num_sge && failed == 0; ++index) {
      const ibv_sge& element = work->sg_list[index];
      if (element.length == 0) continue;
      std::uint8_t* place =
          nic.regions().find(srq->pd, element.lkey, element.addr, element.length, IBV_ACCESS_LOCAL_WRITE);
      if (place == nullptr) failed = EINVAL;
      request.memory.pieces[request.memory.count++] = {place, element.length};
    }
    if (failed != 0) {
      *bad = work;
      return failed;
    }
    handle.receives.queue.post(request);
  }
  return 0;
}

int poll_cq(ibv_cq* queue, int count, ibv_wc* completions) {
  CompletionQueue& engine = handle_of(queue).queue;
  if (engine.empty()) handle_of(queue->context).nic->poll();
  return engine.poll(count, completions);
}

int request_notification(ibv_cq* queue, int solicited_only) {
  handle_of(queue).queue.request_notification(solicited_only != 0);
  return 0;
}

}  // namespace

ibv_context_ops data_path_operations() {
  ibv_context_ops operations{};
  operations.poll_cq = poll_cq;
  operations.req_notify_cq = request_notification;
  operations.post_srq_recv = post_shared_receive;
  operations.post_send = post_send;
  operations.post_recv = post_recv;
  return operations;
}

}  // namespace weft::soft_rnic
