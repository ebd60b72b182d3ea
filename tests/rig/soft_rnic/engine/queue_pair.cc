#include "tests/rig/soft_rnic/engine/queue_pair.h"

#include <algorithm>

namespace weft::soft_rnic {

QueuePair::QueuePair(const QueuePairParts& parts, MemoryRegions& regions)
    : parts_(parts),
      regions_(&regions),
      own_receives_(parts.shared_receives ? 1 : std::max<std::uint32_t>(parts.capabilities.max_recv_wr, 1)),
      requester_(*parts.send_completions, parts.number, std::max<std::uint32_t>(parts.capabilities.max_send_wr, 1),
                 parts.signal_all),
      responder_(*this, receives(), *parts.receive_completions, parts.number) {}

void QueuePair::set_path(const Path& path, std::shared_ptr<FileDescriptor> socket, PortStatistics& statistics) {
  path_ = path;
  socket_ = std::move(socket);
  statistics_ = &statistics;
}

bool QueuePair::answers_requests() const {
  return state_ == IBV_QPS_RTR || state_ == IBV_QPS_RTS || state_ == IBV_QPS_SQD;
}

void QueuePair::raise(ibv_event_type event) {
  ibv_async_event entry{};
  entry.event_type = event;
  entry.element.qp = parts_.handle;
  parts_.events->add(entry);
}

void QueuePair::enter_error_state() {
  if (state_ == IBV_QPS_ERR) return;
  state_ = IBV_QPS_ERR;
  retry_send_at = kNever;
  requester_.flush();
  responder_.flush();
  if (parts_.shared_receives) {
    raise(IBV_EVENT_QP_LAST_WQE_REACHED);
  } else {
    flush_receives();
  }
}

void QueuePair::flush_receives() {
  while (!own_receives_.empty()) {
    ibv_wc completion{};
    completion.wr_id = own_receives_.take().id;
    completion.status = IBV_WC_WR_FLUSH_ERR;
    completion.opcode = IBV_WC_RECV;
    completion.vendor_err = vendor_error_of(IBV_WC_WR_FLUSH_ERR);
    completion.qp_num = parts_.number;
    parts_.receive_completions->add(completion, true);
  }
}

Nanoseconds QueuePair::deadline() const {
  return std::min({requester_.deadline(), responder_.deadline(), retry_send_at});
}

std::uint8_t* QueuePair::find(std::uint32_t key, std::uint64_t address, std::uint64_t length, int access) {
  return regions_->find(parts_.protection_domain, key, address, length, access);
}

void QueuePair::store(std::uint8_t* destination, std::span<const std::uint8_t> payload) {
  regions_->store(destination, payload);
}

void QueuePair::before_read() {
  regions_->make_visible();
}

}  // namespace weft::soft_rnic
