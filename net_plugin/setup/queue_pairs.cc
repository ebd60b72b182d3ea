#include "net_plugin/setup/queue_pairs.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/nccl_abi/net_types.h"
#include "common/text/format.h"
#include "net_plugin/devices/rails.h"
#include "net_plugin/paths/source_port.h"
#include "net_plugin/setup/verbs_hint.h"
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
// What a work request may carry by itself: a clear-to-send record, or a small message. More makes every entry of the
// send queue larger.
constexpr std::uint32_t kInlineBytes = sizeof(transfer::ClearToSend);

std::string address(const std::array<std::uint8_t, 16>& gid) {
  devices::GidEntry entry{};
  entry.bytes = gid;
  return devices::address_text(entry);
}

ibv_qp_attr address_vector(const OpenDevice& device, const Options& options, int gid_index, std::uint16_t port,
                           const std::array<std::uint8_t, 16>& peer_gid, std::uint8_t traffic_class) {
  ibv_qp_attr attributes{};
  ibv_ah_attr& vector = attributes.ah_attr;
  vector.is_global = 1;
  std::memcpy(vector.grh.dgid.raw, peer_gid.data(), sizeof vector.grh.dgid.raw);
  vector.grh.flow_label = paths::label_of_port(port);
  vector.grh.sgid_index = std::uint8_t(gid_index);
  vector.grh.hop_limit = kHopLimit;
  vector.grh.traffic_class = traffic_class;
  vector.sl = options.service_level;
  vector.port_num = device.port().port;
  return attributes;
}

struct Wanted {
  ibv_cq* cq = nullptr;
  ibv_srq* srq = nullptr;
  std::uint32_t send_depth = 0;
  std::uint32_t receive_depth = 0;
};

// *inline_bytes: what the queue pair takes inline.
Result<verbs::QueuePair> create_queue_pair(const OpenDevice& device, const Wanted& wanted, const Options& options,
                                           std::uint32_t* inline_bytes) {
  verbs::Verbs& verbs = device.verbs();
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = wanted.cq;
  init.srq = wanted.srq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {wanted.send_depth, wanted.receive_depth, 1, 1, kInlineBytes};
  const ibv_qp_init_attr asked = init;
  verbs::QueuePair qp(verbs.create_qp(device.protection_domain(), &init), {&verbs});
  if (!qp && errno == EINVAL) {
    init = asked;
    init.cap.max_inline_data = 0;
    qp.reset(verbs.create_qp(device.protection_domain(), &init));
  }
  if (!qp) {
    const int code = errno;
    return system_error(text::format("ibv_create_qp of {} send and {} receive work requests failed", wanted.send_depth,
                                     wanted.receive_depth),
                        code, device.name(), create_hint(code, "queue pairs", device.port().max_qp));
  }
  *inline_bytes = init.cap.max_inline_data;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.pkey_index = options.partition_key_index;
  attributes.port_num = device.port().port;
  attributes.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  if (const int code = verbs.modify_qp(qp.get(), &attributes, mask)) {
    return system_error(text::format("ibv_modify_qp RESET -> INIT failed: queue pair {}, partition key index {}",
                                     qp->qp_num, options.partition_key_index),
                        code, device.name(), initialise_hint(code));
  }
  return qp;
}

struct Target {
  devices::GidEntry own_gid;
  std::uint32_t queue_pair = 0;
  std::uint32_t receive_psn = 0;
  std::uint32_t send_psn = 0;
  std::uint16_t port = 0;
  std::uint8_t traffic_class = 0;
  std::array<std::uint8_t, 16> gid{};
  ibv_mtu path_mtu = IBV_MTU_1024;
};

Result<void> make_ready(const OpenDevice& device, ibv_qp* qp, const Options& options, const Target& target) {
  ibv_qp_attr attributes =
      address_vector(device, options, target.own_gid.index, target.port, target.gid, target.traffic_class);
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = target.path_mtu;
  attributes.dest_qp_num = target.queue_pair;
  attributes.rq_psn = target.receive_psn;
  attributes.max_dest_rd_atomic = kOutstandingReads;
  attributes.min_rnr_timer = kRnrTimer;
  int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER;
  if (const int code = device.verbs().modify_qp(qp, &attributes, mask)) {
    const std::string from = address(target.own_gid.bytes), to = address(target.gid);
    return system_error(text::format("ibv_modify_qp INIT -> RTR failed: GID index {} {} -> {}, queue pair {} -> {}, "
                                     "source port {}, path MTU {}",
                                     target.own_gid.index, from, to, qp->qp_num, target.queue_pair, target.port,
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
    return system_error(text::format("ibv_modify_qp RTR -> RTS failed: queue pair {}, timeout {}, retries {}",
                                     qp->qp_num, options.timeout, options.retry_count),
                        code, device.name(), ready_to_send_hint(code));
  }
  return {};
}

int completion_entries(Role role, int paths, const ReceiveQueues& queues) {
  if (role == Role::sender) return paths * int(transfer::kSendDepth);
  // Every receive of a shared queue may complete through this batch.
  const int receives = queues.shared ? queues.receives : queues.receives * paths;
  return receives + paths * int(transfer::kRecordDepth) + NCCL_NET_MAX_REQUESTS;
}

}  // namespace

PathPlace path_place(std::size_t index, std::size_t devices, std::size_t peer_devices) {
  return {std::uint8_t(index % devices), std::uint8_t(index % peer_devices)};
}

std::string rails_of(const OpenDevice& device, const devices::PortState& here, const PeerDevice& there) {
  devices::GidEntry gid;
  gid.bytes = there.gid;
  return devices::describe_rails({device.name(), here.gid, here.prefix_length}, {there.name, gid, there.prefix_length});
}

Result<ReceiveQueues> plan_receive_queues(const std::vector<std::shared_ptr<OpenDevice>>& devices) {
  ReceiveQueues plan;
  plan.shared = std::all_of(devices.begin(), devices.end(), [](const auto& one) { return one->port().max_srq > 0; });
  plan.receives = plan.shared ? kSharedReceives : kOwnReceives;
  for (const auto& one : devices) {
    const int most = plan.shared ? one->port().max_srq_wr : one->port().max_qp_wr;
    if (most < transfer::kFewestReceives) {
      return Error{
          text::format("the device takes {} receive work requests in a queue, fewer than the {} that are needed", most,
                       transfer::kFewestReceives),
          one->name(), 0, text::format("{} (ibv_devinfo -v)", plan.shared ? "max_srq_wr" : "max_qp_wr")};
    }
    plan.receives = std::min(plan.receives, most);
  }
  return plan;
}

Result<void> create_shared_queues(transfer::Link& link, const ReceiveQueues& plan) {
  if (!plan.shared) return {};
  for (std::size_t i = 0; i < link.devices.size(); i++) {
    transfer::LinkDevice& device = link.devices[i];
    verbs::Verbs& verbs = device.opened->verbs();
    ibv_srq_init_attr attributes{};
    attributes.attr.max_wr = std::uint32_t(plan.receives);
    attributes.attr.max_sge = 1;
    device.srq = {verbs.create_srq(device.opened->protection_domain(), &attributes), {&verbs}};
    if (!device.srq) {
      const int code = errno;
      return system_error(text::format("ibv_create_srq of {} work requests failed", plan.receives), code,
                          device.opened->name(),
                          create_hint(code, "shared receive queues", device.opened->port().max_srq));
    }
    if (const int code = transfer::queue_receives(device.srq.get(), nullptr, int(i), plan.receives))
      return system_error("ibv_post_srq_recv failed", code, device.opened->name());
  }
  return {};
}

Result<Batch> Batch::create(const transfer::Link& link, Role role, const Options& options,
                            const std::vector<std::uint16_t>& ports, std::size_t first, std::size_t peer_devices,
                            const ReceiveQueues& receive_queues) {
  Batch batch;
  batch.role_ = role;
  const std::size_t devices = link.devices.size();
  std::vector<int> paths_of(devices, 0);
  for (std::size_t i = 0; i < ports.size(); i++)
    paths_of[path_place(first + i, devices, peer_devices).device]++;
  for (std::size_t i = 0; i < devices; i++) {
    const std::shared_ptr<OpenDevice>& device = link.devices[i].opened;
    verbs::Verbs& verbs = device->verbs();
    const int entries = completion_entries(role, std::max(1, paths_of[i]), receive_queues);
    batch.made_.cqs.push_back({verbs.create_cq(device->context(), entries), {&verbs}});
    if (!batch.made_.cqs.back()) {
      const int code = errno;
      return system_error(text::format("ibv_create_cq of {} entries failed", entries), code, device->name(),
                          create_hint(code, "entries of a completion queue", device->port().max_cqe));
    }
    batch.devices_.push_back(device);
  }
  for (std::size_t i = 0; i < ports.size(); i++) {
    const PathPlace place = path_place(first + i, devices, peer_devices);
    const OpenDevice& device = *batch.devices_[place.device];
    ibv_srq* srq = link.devices[place.device].srq.get();
    const bool own_receives = role == Role::receiver && !receive_queues.shared;
    std::uint32_t inline_bytes = 0;
    auto qp = create_queue_pair(
        device,
        {batch.made_.cqs[place.device].get(), srq, role == Role::sender ? transfer::kSendDepth : transfer::kRecordDepth,
         own_receives ? std::uint32_t(receive_queues.receives) : 0},
        options, &inline_bytes);
    if (!qp) return qp.take_error();
    batch.made_.paths.push_back({qp.take(), ports[i], 0, place.device, place.peer_device, inline_bytes});
    ibv_qp* made = batch.made_.paths.back().qp.get();
    if (own_receives) {
      if (const int code = transfer::queue_receives(nullptr, made, int(first + i), receive_queues.receives))
        return system_error("ibv_post_recv failed", code, device.name());
    }
    PathOffer offer;
    offer.queue_pair = made->qp_num;
    offer.first_psn = std::uint32_t(paths::combine_key(options.seed, ports[i])) & kPsnMask;
    offer.port = ports[i];
    offer.device = place.device;
    offer.peer_device = place.peer_device;
    if (options.extended_establishment) device.verbs().query_ece(made, &offer.extensions);
    batch.own_.push_back(offer);
  }
  const std::size_t words = 2 * ports.size();
  batch.proof_ = std::make_unique<std::uint64_t[]>(words);
  for (const auto& device : batch.devices_) {
    auto region = device->register_memory(batch.proof_.get(), words * sizeof(std::uint64_t), false);
    if (!region) return region.take_error();
    batch.proof_regions_.push_back(region.take());
  }
  return batch;
}

PathOffers Batch::offers() const {
  PathOffers offers;
  offers.proof_address = reinterpret_cast<std::uint64_t>(proof_.get());
  for (const verbs::MemoryRegion& region : proof_regions_)
    offers.proof_keys.push_back(region->rkey);
  offers.paths = own_;
  return offers;
}

void Batch::take_extensions(const PathOffers& peer) {
  for (std::size_t i = 0; i < own_.size(); i++) {
    const transfer::DataPath& path = made_.paths[i];
    verbs::Verbs& verbs = devices_[path.device]->verbs();
    ibv_ece wanted = peer.paths[i].extensions;
    const bool both = wanted.vendor_id != 0 && own_[i].extensions.vendor_id != 0;
    // A device that refuses what its peer offers goes on without extensions, as it would with an older peer.
    if (!both || verbs.set_ece(path.qp.get(), &wanted) != 0) own_[i].extensions = {};
  }
}

Result<void> Batch::connect(const Options& options, const PortStates& here, const PeerDevices& peer,
                            const PathOffers& offers) {
  here_ = here;
  peers_ = peer;
  for (std::size_t i = 0; i < made_.paths.size(); i++) {
    transfer::DataPath& path = made_.paths[i];
    if (offers.paths[i].device != path.peer_device || offers.paths[i].peer_device != path.device) {
      return Error{
          text::format("the two sides join path {} to different devices", i), devices_[path.device]->name(), 0, {}};
    }
    const PeerDevice& there = peer[path.peer_device];
    const OpenDevice& device = *devices_[path.device];
    Target target;
    target.queue_pair = offers.paths[i].queue_pair;
    target.receive_psn = offers.paths[i].first_psn;
    target.send_psn = own_[i].first_psn;
    target.port = path.port;
    target.traffic_class = role_ == Role::sender ? options.traffic_class : options.record_traffic_class;
    target.own_gid = here[path.device].gid;
    target.gid = there.gid;
    target.path_mtu = std::min(here[path.device].path_mtu, ibv_mtu(there.path_mtu));
    path.peer_port = offers.paths[i].port;
    if (auto ready = make_ready(device, path.qp.get(), options, target); !ready) {
      Error error = ready.take_error();
      error.hint += "; " + rails_of(device, here[path.device], there);
      return error;
    }
    // What the two devices have in common is known now; the connecting side is told (ibv_query_ece(3)).
    ibv_ece& extensions = own_[i].extensions;
    if (role_ == Role::receiver && extensions.vendor_id != 0 &&
        device.verbs().query_ece(path.qp.get(), &extensions) != 0)
      extensions = {};
  }
  return {};
}

Result<void> Batch::start_proof(const PathOffers& peer) {
  for (std::size_t i = 0; i < made_.paths.size(); i++) {
    const transfer::DataPath& path = made_.paths[i];
    std::uint64_t& word = proof_[made_.paths.size() + i];
    word = i + 1;
    ibv_sge segment{};
    segment.addr = reinterpret_cast<std::uint64_t>(&word);
    segment.length = sizeof word;
    segment.lkey = proof_regions_[path.device]->lkey;
    ibv_send_wr work{};
    work.wr_id = i;
    work.sg_list = &segment;
    work.num_sge = 1;
    work.opcode = IBV_WR_RDMA_WRITE;
    work.send_flags = IBV_SEND_SIGNALED;
    work.wr.rdma.remote_addr = peer.proof_address + i * sizeof word;
    work.wr.rdma.rkey = peer.proof_keys[path.peer_device];
    ibv_send_wr* bad = nullptr;
    if (const int code = ibv_post_send(path.qp.get(), &work, &bad)) {
      return system_error(
          text::format("ibv_post_send of the first write on path {} (source port {}) failed", i, path.port), code,
          devices_[path.device]->name());
    }
  }
  return {};
}

Result<bool> Batch::continue_proof() {
  ibv_wc completions[16];
  for (std::size_t device = 0; device < made_.cqs.size(); device++) {
    const OpenDevice& on = *devices_[device];
    const int count = ibv_poll_cq(made_.cqs[device].get(), 16, completions);
    if (count < 0) return Error{"ibv_poll_cq failed", on.name(), 0, {}};
    for (int i = 0; i < count; i++) {
      if (completions[i].status != IBV_WC_SUCCESS) {
        Error error =
            transfer::completion_error(completions[i], made_.paths, on.verbs(), on.name(), on.port().vendor_id);
        error.what = "the first write did not arrive: " + error.what;
        const auto path = std::find_if(made_.paths.begin(), made_.paths.end(), [&](const transfer::DataPath& one) {
          return one.qp->qp_num == completions[i].qp_num;
        });
        if (path != made_.paths.end())
          error.hint += "; " + rails_of(on, here_[path->device], peers_[path->peer_device]);
        return error;
      }
      proven_++;
    }
  }
  return proven_ >= made_.paths.size();
}

Result<transfer::FlushPath> Batch::create_flush_path(std::size_t device, const Options& options,
                                                     const devices::PortState& here) const {
  const OpenDevice& on = *devices_[device];
  transfer::FlushPath flush;
  std::uint32_t inline_bytes = 0;
  auto qp = create_queue_pair(on, {made_.cqs[device].get(), nullptr, NCCL_NET_MAX_REQUESTS, 1}, options, &inline_bytes);
  if (!qp) return qp.take_error();
  flush.qp = qp.take();
  Target self;
  self.queue_pair = flush.qp->qp_num;
  self.port = paths::kFirstPort;
  self.own_gid = here.gid;
  self.gid = here.gid.bytes;
  self.path_mtu = here.path_mtu;
  self.traffic_class = options.traffic_class;
  if (auto ready = make_ready(on, flush.qp.get(), options, self); !ready) return ready.take_error();
  flush.landing = std::make_unique<std::uint64_t>(0);
  auto region = on.register_memory(flush.landing.get(), sizeof(std::uint64_t), false);
  if (!region) return region.take_error();
  flush.landing_region = region.take();
  return flush;
}

}  // namespace weft::setup
