// A libibverbs.so.1 with one NIC that carries work out at once, between queue pairs of its own process: no wire, no
// thread, no time. What a transport costs the CPU can then be counted without the NIC (bench/net_compare).
//
// Only what Weft and NCCL's own transport call (facts/nccl-abi.md section 5.1); RC queue pairs, writes with and without
// immediate, reads, shared receive queues. Not thread-safe: one thread drives both ends.
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#undef ibv_query_port
#undef ibv_reg_mr

namespace {

constexpr std::uint8_t kGid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 9, 9};
constexpr int kMostObjects = 1 << 20, kMostWork = 1 << 15;

struct Context : ibv_context {
  int pipe[2] = {-1, -1};  // nobody ever writes: there are no asynchronous events
};

struct CompletionQueue : ibv_cq {
  std::deque<ibv_wc> completions;
};

struct ReceiveQueue {
  std::deque<std::uint64_t> ids;
};

struct SharedReceiveQueue : ibv_srq {
  ReceiveQueue receives;
};

struct QueuePair : ibv_qp {
  bool report_all = false;
  std::uint32_t peer = 0;
  ReceiveQueue own;
  ReceiveQueue* receives = nullptr;
};

struct Nic {
  std::mutex mutex;  // of set-up; the data path is one thread's
  ibv_device device{};
  std::map<std::uint32_t, QueuePair*> queue_pairs;
  std::uint32_t next_number = 17;
  std::uint32_t next_key = 1;
  bool hold = false;
  // Writes with immediate that are held back, each with the queue pair that posted it.
  std::vector<std::pair<QueuePair*, ibv_send_wr>> held;
  std::vector<std::vector<ibv_sge>> held_segments;
};

// Never destroyed: users may call in while the process ends.
Nic& nic() {
  static Nic& only = *new Nic;
  return only;
}

void complete(ibv_cq* queue, const QueuePair& queue_pair, std::uint64_t id, ibv_wc_opcode opcode, std::uint32_t bytes,
              std::uint32_t immediate) {
  ibv_wc completion{};
  completion.wr_id = id;
  completion.status = IBV_WC_SUCCESS;
  completion.opcode = opcode;
  completion.byte_len = bytes;
  completion.imm_data = immediate;
  completion.wc_flags = opcode == IBV_WC_RECV_RDMA_WITH_IMM ? unsigned(IBV_WC_WITH_IMM) : 0u;
  completion.qp_num = queue_pair.qp_num;
  static_cast<CompletionQueue*>(queue)->completions.push_back(completion);
}

std::uint32_t copy(const ibv_send_wr& work) {
  auto* remote = reinterpret_cast<char*>(work.wr.rdma.remote_addr);
  std::uint32_t bytes = 0;
  for (int i = 0; i < work.num_sge; i++) {
    auto* local = reinterpret_cast<char*>(work.sg_list[i].addr);
    const std::uint32_t length = work.sg_list[i].length;
    if (work.opcode == IBV_WR_RDMA_READ)
      std::memcpy(local, remote + bytes, length);
    else
      std::memcpy(remote + bytes, local, length);
    bytes += length;
  }
  return bytes;
}

int carry_out(QueuePair& from, const ibv_send_wr& work) {
  const auto found = nic().queue_pairs.find(from.peer);
  if (found == nic().queue_pairs.end()) return EINVAL;
  QueuePair& to = *found->second;
  const std::uint32_t bytes = copy(work);
  if (work.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
    if (to.receives->ids.empty()) return ENOMEM;
    const std::uint64_t id = to.receives->ids.front();
    to.receives->ids.pop_front();
    complete(to.recv_cq, to, id, IBV_WC_RECV_RDMA_WITH_IMM, bytes, work.imm_data);
  }
  if (from.report_all || (work.send_flags & IBV_SEND_SIGNALED) != 0)
    complete(from.send_cq, from, work.wr_id, work.opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE,
             bytes, 0);
  return 0;
}

int post_send(ibv_qp* qp, ibv_send_wr* work, ibv_send_wr** bad) {
  auto& queue_pair = *static_cast<QueuePair*>(qp);
  for (; work; work = work->next) {
    if (nic().hold && work->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
      nic().held_segments.emplace_back(work->sg_list, work->sg_list + work->num_sge);
      nic().held.push_back({&queue_pair, *work});
      continue;
    }
    if (const int code = carry_out(queue_pair, *work)) {
      *bad = work;
      return code;
    }
  }
  return 0;
}

int queue_receives(ReceiveQueue& queue, ibv_recv_wr* work) {
  for (; work; work = work->next)
    queue.ids.push_back(work->wr_id);
  return 0;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* work, ibv_recv_wr**) {
  return queue_receives(static_cast<QueuePair*>(qp)->own, work);
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* work, ibv_recv_wr**) {
  return queue_receives(static_cast<SharedReceiveQueue*>(srq)->receives, work);
}

int poll_cq(ibv_cq* queue, int most, ibv_wc* out) {
  auto& completions = static_cast<CompletionQueue*>(queue)->completions;
  int count = 0;
  while (count < most && !completions.empty()) {
    out[count++] = completions.front();
    completions.pop_front();
  }
  return count;
}

int request_notification(ibv_cq*, int) {
  return 0;
}

ibv_mr* register_memory(ibv_pd* domain, void* address, std::size_t length) {
  const std::lock_guard lock(nic().mutex);
  auto* region = new ibv_mr{};
  region->context = domain->context;
  region->pd = domain;
  region->addr = address;
  region->length = length;
  region->lkey = region->rkey = nic().next_key++;
  return region;
}

}  // namespace

extern "C" {

// While held, writes with immediate are kept; all are carried out when the hold ends.
void null_verbs_hold(bool hold) {
  Nic& here = nic();
  here.hold = hold;
  if (hold) return;
  for (std::size_t i = 0; i < here.held.size(); i++) {
    here.held[i].second.sg_list = here.held_segments[i].data();
    carry_out(*here.held[i].first, here.held[i].second);
  }
  here.held.clear();
  here.held_segments.clear();
}

std::size_t null_verbs_queue_pairs() {
  const std::lock_guard lock(nic().mutex);
  return nic().queue_pairs.size();
}

int ibv_fork_init() {
  return 0;
}

ibv_device** ibv_get_device_list(int* count) {
  ibv_device& device = nic().device;
  device.node_type = IBV_NODE_CA;
  device.transport_type = IBV_TRANSPORT_IB;
  std::strcpy(device.name, "null_0");
  std::strcpy(device.dev_name, "uverbs0");
  if (count) *count = 1;
  auto** list = static_cast<ibv_device**>(std::calloc(2, sizeof(ibv_device*)));
  list[0] = &device;
  return list;
}

void ibv_free_device_list(ibv_device** list) {
  std::free(list);
}

const char* ibv_get_device_name(ibv_device* device) {
  return device->name;
}

ibv_context* ibv_open_device(ibv_device* device) {
  auto* context = new Context();
  if (pipe2(context->pipe, O_CLOEXEC) != 0) {
    delete context;
    return nullptr;
  }
  context->device = device;
  context->async_fd = context->pipe[0];
  context->num_comp_vectors = 1;
  context->ops.poll_cq = poll_cq;
  context->ops.req_notify_cq = request_notification;
  context->ops.post_send = post_send;
  context->ops.post_recv = post_recv;
  context->ops.post_srq_recv = post_srq_recv;
  return context;
}

int ibv_close_device(ibv_context* context) {
  auto* ours = static_cast<Context*>(context);
  close(ours->pipe[0]);
  close(ours->pipe[1]);
  delete ours;
  return 0;
}

int ibv_get_async_event(ibv_context* context, ibv_async_event*) {
  char none;
  [[maybe_unused]] const ssize_t size = read(context->async_fd, &none, 1);
  return -1;
}

void ibv_ack_async_event(ibv_async_event*) {}

const char* ibv_event_type_str(ibv_event_type) {
  return "event";
}

const char* ibv_wc_status_str(ibv_wc_status) {
  return "status";
}

int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  *attributes = {};
  attributes->sys_image_guid = attributes->node_guid = 1;
  attributes->phys_port_cnt = 1;
  attributes->max_qp = attributes->max_cq = attributes->max_mr = attributes->max_srq = kMostObjects;
  attributes->max_qp_wr = attributes->max_srq_wr = kMostWork;
  attributes->max_cqe = kMostObjects;
  attributes->max_sge = attributes->max_srq_sge = 1;
  return 0;
}

int ibv_query_port(ibv_context*, std::uint8_t, struct _compat_ibv_port_attr* compatible) {
  auto* attributes = reinterpret_cast<ibv_port_attr*>(compatible);
  std::memset(attributes, 0, offsetof(ibv_port_attr, port_cap_flags2));
  attributes->state = IBV_PORT_ACTIVE;
  attributes->max_mtu = attributes->active_mtu = IBV_MTU_4096;
  attributes->gid_tbl_len = 1;
  attributes->pkey_tbl_len = 1;
  attributes->active_speed = 128;  // 100 Gbit/s a lane
  attributes->active_width = 2;    // 4 lanes
  attributes->phys_state = 5;      // link up
  attributes->link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}

int ibv_query_gid(ibv_context*, std::uint8_t, int index, ibv_gid* gid) {
  if (index != 0) return -1;
  std::memcpy(gid->raw, kGid, sizeof kGid);
  return 0;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  auto* domain = new ibv_pd{};
  domain->context = context;
  return domain;
}

int ibv_dealloc_pd(ibv_pd* domain) {
  delete domain;
  return 0;
}

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, std::size_t length, int) {
  return register_memory(domain, address, length);
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, std::size_t length, std::uint64_t, unsigned) {
  return register_memory(domain, address, length);
}

int ibv_dereg_mr(ibv_mr* region) {
  delete region;
  return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* of, ibv_comp_channel*, int) {
  auto* queue = new CompletionQueue();
  queue->context = context;
  queue->cq_context = of;
  queue->cqe = entries;
  return queue;
}

int ibv_destroy_cq(ibv_cq* queue) {
  delete static_cast<CompletionQueue*>(queue);
  return 0;
}

ibv_srq* ibv_create_srq(ibv_pd* domain, ibv_srq_init_attr*) {
  auto* queue = new SharedReceiveQueue();
  queue->context = domain->context;
  queue->pd = domain;
  return queue;
}

int ibv_destroy_srq(ibv_srq* queue) {
  delete static_cast<SharedReceiveQueue*>(queue);
  return 0;
}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  auto* queue_pair = new QueuePair();
  queue_pair->context = domain->context;
  queue_pair->pd = domain;
  queue_pair->qp_context = wanted->qp_context;
  queue_pair->send_cq = wanted->send_cq;
  queue_pair->recv_cq = wanted->recv_cq;
  queue_pair->srq = wanted->srq;
  queue_pair->qp_type = wanted->qp_type;
  queue_pair->state = IBV_QPS_RESET;
  queue_pair->report_all = wanted->sq_sig_all != 0;
  queue_pair->receives = wanted->srq ? &static_cast<SharedReceiveQueue*>(wanted->srq)->receives : &queue_pair->own;
  const std::lock_guard lock(nic().mutex);
  queue_pair->qp_num = queue_pair->handle = nic().next_number++;
  nic().queue_pairs[queue_pair->qp_num] = queue_pair;
  return queue_pair;
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  auto& queue_pair = *static_cast<QueuePair*>(qp);
  if ((mask & IBV_QP_STATE) != 0) queue_pair.state = attributes->qp_state;
  if ((mask & IBV_QP_DEST_QPN) != 0) queue_pair.peer = attributes->dest_qp_num;
  return 0;
}

int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int, ibv_qp_init_attr* init) {
  *attributes = {};
  *init = {};
  attributes->qp_state = qp->state;
  return 0;
}

int ibv_destroy_qp(ibv_qp* qp) {
  {
    const std::lock_guard lock(nic().mutex);
    nic().queue_pairs.erase(qp->qp_num);
  }
  delete static_cast<QueuePair*>(qp);
  return 0;
}

}  // extern "C"
