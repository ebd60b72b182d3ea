#include "net_plugin/setup/queue_pairs.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/nccl_abi/net_types.h"
#include "common/text/format.h"
#include "net_plugin/paths/source_port.h"
#include "net_plugin/transfer/sender.h"

namespace weft::setup {
namespace {

// With a shared receive queue: pieces that all messages on offer may have together. 8 messages of 1 MiB need 512.
constexpr int kSharedReceives = 2048;
// Without one every queue pair must be able to take them all.
constexpr int kOwnReceives = 256;
constexpr std::uint32_t kPsnMask = 0xffffff;
// As long as routes get in IPv4 and IPv6; the kernel's default for a flow that leaves the subnet is shorter (64).
constexpr std::uint8_t kHopLimit = 255;
constexpr std::uint8_t kRnrTimer = 12;  // 0.64 ms, ibv_modify_qp(3)
constexpr std::uint8_t kRnrRetry = 7;   // for ever
constexpr std::uint8_t kOutstandingReads = 1;

// Field report F34: each errno of INIT -> RTR has its own remedy.
std::string ready_to_receive_hint(int code, const std::string& from, const std::string& to) {
  const std::string look = text::format("try: ip route get {} from {}", to, from);
  switch (code) {
    case ETIMEDOUT:
      return text::format("the peer's address could not be resolved in time; {}. Are both on the same rail?", look);
    case ENETUNREACH:
      return "there is no route to the peer; " + look;
    case EHOSTUNREACH:
      return "the peer's neighbour entry can't be resolved; " + look;
    case ENODEV:
      return "the GID's slot is empty or belongs to another network namespace";
    case EINVAL:
      return "the NIC rejected an attribute: GID type, MTU or port";
    default:
      return look;
  }
}

std::string address(const std::uint8_t* gid) {
  devices::GidEntry entry{};
  std::copy_n(gid, entry.bytes.size(), entry.bytes.begin());
  return devices::address_text(entry);
}

ibv_qp_attr address_vector(const OpenDevice& device, const Options& options, std::uint16_t port,
                           const std::uint8_t* peer_gid, std::uint8_t traffic_class) {
  ibv_qp_attr attributes{};
  ibv_ah_attr& vector = attributes.ah_attr;
  vector.is_global = 1;
  std::memcpy(vector.grh.dgid.raw, peer_gid, sizeof vector.grh.dgid.raw);
  vector.grh.flow_label = paths::label_of_port(port);
  vector.grh.sgid_index = std::uint8_t(device.port().gid.index);
  vector.grh.hop_limit = kHopLimit;
  vector.grh.traffic_class = traffic_class;
  vector.sl = options.service_level;
  vector.port_num = device.port().port;
  return attributes;
}

Result<verbs::QueuePair> create_queue_pair(const OpenDevice& device, const transfer::Link& link, Role role,
                                           int receives, const Options& options) {
  verbs::Verbs& verbs = device.verbs();
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = link.cq.get();
  init.srq = link.srq.get();
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_wr = role == Role::sender ? transfer::kSendDepth : transfer::kRecordDepth;
  init.cap.max_recv_wr = role == Role::sender || link.srq ? 0 : std::uint32_t(receives);
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  verbs::QueuePair qp(verbs.create_qp(device.protection_domain(), &init), {&verbs});
  if (!qp) return system_error("ibv_create_qp failed", errno, device.name());
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.pkey_index = options.partition_key_index;
  attributes.port_num = device.port().port;
  attributes.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  if (const int code = verbs.modify_qp(qp.get(), &attributes, mask)) {
    return system_error("ibv_modify_qp RESET -> INIT failed", code, device.name());
  }
  return qp;
}

struct Target {
  std::uint32_t queue_pair = 0;
  std::uint32_t receive_psn = 0;
  std::uint32_t send_psn = 0;
  std::uint16_t port = 0;
  std::uint8_t traffic_class = 0;
  const std::uint8_t* gid = nullptr;
  ibv_mtu path_mtu = IBV_MTU_1024;
};

Result<void> make_ready(const OpenDevice& device, ibv_qp* qp, const Options& options, const Target& target) {
  ibv_qp_attr attributes = address_vector(device, options, target.port, target.gid, target.traffic_class);
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = target.path_mtu;
  attributes.dest_qp_num = target.queue_pair;
  attributes.rq_psn = target.receive_psn;
  attributes.max_dest_rd_atomic = kOutstandingReads;
  attributes.min_rnr_timer = kRnrTimer;
  int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER;
  if (const int code = device.verbs().modify_qp(qp, &attributes, mask)) {
    const std::string from = address(device.port().gid.bytes.data()), to = address(target.gid);
    return system_error(text::format("ibv_modify_qp INIT -> RTR failed: GID index {} {} -> {}, queue pair {} -> {}, "
                                     "source port {}, path MTU {}",
                                     device.port().gid.index, from, to, qp->qp_num, target.queue_pair, target.port,
                                     128 << target.path_mtu),
                        code, device.name(), ready_to_receive_hint(code, from, to));
  }
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = options.timeout;
  attributes.retry_cnt = options.retry_count;
  attributes.rnr_retry = kRnrRetry;
  attributes.sq_psn = target.send_psn;
  attributes.max_rd_atomic = kOutstandingReads;
  mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  if (const int code = device.verbs().modify_qp(qp, &attributes, mask)) {
    return system_error("ibv_modify_qp RTR -> RTS failed", code, device.name());
  }
  return {};
}

int completion_entries(Role role, int paths, int receives, bool shared) {
  if (role == Role::sender) return paths * int(transfer::kSendDepth);
  return (shared ? receives : receives * paths) + paths * int(transfer::kRecordDepth) + NCCL_NET_MAX_REQUESTS;
}

}  // namespace

Result<Endpoint> create_endpoint(std::shared_ptr<OpenDevice> device, Role role, const Options& options,
                                 const std::vector<std::uint16_t>& ports, std::shared_ptr<transfer::PeerState> peer) {
  verbs::Verbs& verbs = device->verbs();
  Endpoint endpoint;
  endpoint.link = std::make_unique<transfer::Link>(device, device->name(), std::move(peer));
  transfer::Link& link = *endpoint.link;
  const devices::Port& port = device->port();
  const bool shared = role == Role::receiver && port.max_srq > 0;
  if (role == Role::receiver) {
    endpoint.receives = shared ? std::min(kSharedReceives, port.max_srq_wr) : std::min(kOwnReceives, port.max_qp_wr);
  }
  if (role == Role::receiver && endpoint.receives < 1) {
    return Error{"the device reports that it takes no receive work requests", device->name(), 0,
                 shared ? "max_srq_wr is 0 (ibv_devinfo -v)" : "max_qp_wr is 0 (ibv_devinfo -v)"};
  }
  const int entries = completion_entries(role, int(ports.size()), endpoint.receives, shared);
  link.cq = {verbs.create_cq(device->context(), entries), {&verbs}};
  if (!link.cq) return system_error(text::format("ibv_create_cq of {} entries failed", entries), errno, device->name());
  if (shared) {
    ibv_srq_init_attr attributes{};
    attributes.attr.max_wr = std::uint32_t(endpoint.receives);
    attributes.attr.max_sge = 1;
    link.srq = {verbs.create_srq(device->protection_domain(), &attributes), {&verbs}};
    if (!link.srq) return system_error("ibv_create_srq failed", errno, device->name());
  }
  for (std::size_t i = 0; i < ports.size(); i++) {
    auto qp = create_queue_pair(*device, link, role, endpoint.receives, options);
    if (!qp) return qp.take_error();
    link.paths.push_back({qp.take(), ports[i], 0});
    endpoint.first_psns.push_back(std::uint32_t(paths::combine_key(options.seed, ports[i])) & kPsnMask);
  }
  endpoint.proof = std::make_unique<std::uint64_t[]>(2 * ports.size());
  auto region = device->register_memory(endpoint.proof.get(), 2 * ports.size() * sizeof(std::uint64_t), false);
  if (!region) return region.take_error();
  endpoint.proof_region = region.take();
  return endpoint;
}

Result<void> connect_paths(Endpoint& endpoint, Role role, const Options& options, const Hello& peer) {
  transfer::Link& link = *endpoint.link;
  for (std::size_t i = 0; i < link.paths.size(); i++) {
    Target target;
    target.queue_pair = peer.paths[i].queue_pair;
    target.receive_psn = peer.paths[i].first_psn;
    target.send_psn = endpoint.first_psns[i];
    target.port = link.paths[i].port;
    target.traffic_class = role == Role::sender ? options.traffic_class : options.record_traffic_class;
    target.gid = peer.gid.data();
    target.path_mtu = std::min(link.device->port().path_mtu, ibv_mtu(peer.path_mtu));
    link.paths[i].peer_port = peer.paths[i].port;
    if (auto ready = make_ready(*link.device, link.paths[i].qp.get(), options, target); !ready) return ready;
  }
  return {};
}

Result<void> start_proof(Endpoint& endpoint, const Hello& peer) {
  transfer::Link& link = *endpoint.link;
  for (std::size_t i = 0; i < link.paths.size(); i++) {
    std::uint64_t& word = endpoint.proof[link.paths.size() + i];
    word = i + 1;
    ibv_sge segment{};
    segment.addr = reinterpret_cast<std::uint64_t>(&word);
    segment.length = sizeof word;
    segment.lkey = endpoint.proof_region->lkey;
    ibv_send_wr work{};
    work.wr_id = i;
    work.sg_list = &segment;
    work.num_sge = 1;
    work.opcode = IBV_WR_RDMA_WRITE;
    work.send_flags = IBV_SEND_SIGNALED;
    work.wr.rdma.remote_addr = peer.proof_address + i * sizeof word;
    work.wr.rdma.rkey = peer.proof_key;
    ibv_send_wr* bad = nullptr;
    if (const int code = ibv_post_send(link.paths[i].qp.get(), &work, &bad)) {
      link.fail_post("ibv_post_send of the first write", code, int(i));
      return link.failure()->error;
    }
  }
  return {};
}

Result<void> continue_proof(Endpoint& endpoint, int* proven) {
  ibv_wc completions[16];
  const int count = ibv_poll_cq(endpoint.link->cq.get(), 16, completions);
  if (count < 0) return Error{"ibv_poll_cq failed", endpoint.link->description, 0, {}};
  for (int i = 0; i < count; i++) {
    if (completions[i].status != IBV_WC_SUCCESS) {
      endpoint.link->fail_completion(completions[i]);
      Error error = endpoint.link->failure()->error;
      error.what = "the first write did not arrive: " + error.what;
      return error;
    }
    ++*proven;
  }
  return {};
}

Result<transfer::FlushPath> create_flush_path(const OpenDevice& device, const transfer::Link& link,
                                              const Options& options) {
  transfer::FlushPath flush;
  auto qp = create_queue_pair(device, link, Role::receiver, 1, options);
  if (!qp) return qp.take_error();
  flush.qp = qp.take();
  Target self;
  self.queue_pair = flush.qp->qp_num;
  self.port = paths::kFirstPort;
  self.gid = device.port().gid.bytes.data();
  self.path_mtu = device.port().path_mtu;
  if (auto ready = make_ready(device, flush.qp.get(), options, self); !ready) return ready.take_error();
  flush.landing = std::make_unique<std::uint64_t>(0);
  auto region = device.register_memory(flush.landing.get(), sizeof(std::uint64_t), false);
  if (!region) return region.take_error();
  flush.landing_region = region.take();
  return flush;
}

}  // namespace weft::setup
