#include "tests/rig/soft_rnic/tools/endpoint.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/json/strict.h"

namespace weft::soft_rnic {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr std::uint8_t kReads = 4;

Result<VerbsHandle<ibv_context, ibv_close_device>> open_device(const std::string& name) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr) return system_error("cannot list devices", errno);
  const auto found = std::find_if(
      list, list + count, [&](ibv_device* device) { return name.empty() || name == ibv_get_device_name(device); });
  VerbsHandle<ibv_context, ibv_close_device> context(found == list + count ? nullptr : ibv_open_device(*found));
  const int code = errno;
  const bool known = found != list + count;
  ibv_free_device_list(list);
  if (!known)
    return Error{"there is no such device", name, 0, "RIG_HOST_FILE names the file that describes the devices"};
  if (context == nullptr) return system_error("cannot open the device", code, name);
  return context;
}

ibv_gid parse_gid(const std::string& text) {
  ibv_gid gid{};
  inet_pton(AF_INET6, text.c_str(), gid.raw);
  return gid;
}

Result<EndpointAddress> parse_address(const nlohmann::json& document, const std::string& name) {
  json::Problems problems;
  json::Fields fields(document, name, problems);
  EndpointAddress address;
  address.gid = fields.text("gid", json::required);
  for (const std::int64_t number : fields.integers("queue_pairs")) {
    address.queue_pairs.push_back(static_cast<std::uint32_t>(number));
  }
  address.memory = static_cast<std::uint64_t>(fields.integer("memory", json::required));
  address.key = static_cast<std::uint32_t>(fields.integer("key", json::required));
  address.mtu = static_cast<int>(fields.integer("mtu", json::required, {IBV_MTU_256, IBV_MTU_4096}));
  fields.done();
  if (auto error = problems.error()) return *error;
  return address;
}

}  // namespace

Result<Endpoint> Endpoint::open(const EndpointOptions& options) {
  Endpoint endpoint;
  endpoint.options_ = options;
  auto context = open_device(options.device);
  if (!context) return context.take_error();
  endpoint.context_ = context.take();

  ibv_port_attr port{};
  ibv_gid gid{};
  if (ibv_query_port(endpoint.context_.get(), 1, &port) != 0 ||
      ibv_query_gid(endpoint.context_.get(), 1, options.gid_index, &gid) != 0) {
    return system_error("cannot query port and GID", errno, options.device);
  }
  endpoint.mtu_ = port.active_mtu;
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(AF_INET6, gid.raw, text, sizeof text);
  endpoint.gid_ = text;

  endpoint.memory_.resize(options.memory_bytes);
  endpoint.domain_.reset(ibv_alloc_pd(endpoint.context_.get()));
  endpoint.region_.reset(ibv_reg_mr(endpoint.domain_.get(), endpoint.memory_.data(), endpoint.memory_.size(), kAccess));
  const auto entries = static_cast<int>(options.queue_depth * 2 * options.queue_pairs);
  endpoint.completions_.reset(ibv_create_cq(endpoint.context_.get(), entries, nullptr, nullptr, 0));
  if (endpoint.region_ == nullptr || endpoint.completions_ == nullptr) {
    return system_error("cannot set up memory and completion queue", errno, options.device);
  }
  if (options.shared_receives > 0) {
    ibv_srq_init_attr shared{};
    shared.attr = {options.shared_receives, 1, 0};
    endpoint.shared_receives_.reset(ibv_create_srq(endpoint.domain_.get(), &shared));
    if (endpoint.shared_receives_ == nullptr) return system_error("cannot create a shared receive queue", errno);
  }
  for (std::size_t index = 0; index < options.queue_pairs; ++index) {
    ibv_qp_init_attr initial{};
    initial.srq = endpoint.shared_receives_.get();
    initial.send_cq = initial.recv_cq = endpoint.completions_.get();
    initial.cap = {options.queue_depth, options.queue_depth, 1, 1, 0};
    initial.qp_type = IBV_QPT_RC;
    endpoint.queue_pairs_.emplace_back(ibv_create_qp(endpoint.domain_.get(), &initial));
    if (endpoint.queue_pairs_.back() == nullptr) return system_error("cannot create a queue pair", errno);
  }
  return endpoint;
}

EndpointAddress Endpoint::address() const {
  EndpointAddress address;
  address.gid = gid_;
  for (const auto& queue_pair : queue_pairs_)
    address.queue_pairs.push_back(queue_pair->qp_num);
  address.memory = reinterpret_cast<std::uint64_t>(memory_.data());
  address.key = region_->rkey;
  address.mtu = mtu_;
  return address;
}

Result<void> Endpoint::connect(const EndpointAddress& peer) {
  peer_ = peer;
  if (peer.queue_pairs.size() != queue_pairs_.size()) {
    return Error{"the peer has another number of queue pairs", options_.device, EINVAL, {}};
  }
  for (std::size_t index = 0; index < queue_pairs_.size(); ++index) {
    ibv_qp* queue_pair = queue_pairs_[index].get();
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    attributes.qp_access_flags = kAccess;
    int failed =
        ibv_modify_qp(queue_pair, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = std::min(mtu_, static_cast<ibv_mtu>(peer.mtu));
    attributes.dest_qp_num = peer.queue_pairs[index];
    attributes.max_dest_rd_atomic = kReads;
    attributes.min_rnr_timer = 12;
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.port_num = 1;
    attributes.ah_attr.grh.dgid = parse_gid(peer.gid);
    attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(options_.gid_index);
    attributes.ah_attr.grh.hop_limit = 64;
    attributes.ah_attr.grh.flow_label = options_.flow_label;
    attributes.ah_attr.grh.traffic_class = options_.traffic_class;
    if (failed == 0) {
      failed = ibv_modify_qp(queue_pair, &attributes,
                             IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    }
    attributes.qp_state = IBV_QPS_RTS;
    attributes.timeout = options_.timeout;
    attributes.retry_cnt = options_.retry_count;
    attributes.rnr_retry = 7;
    attributes.max_rd_atomic = kReads;
    if (failed == 0) {
      failed = ibv_modify_qp(queue_pair, &attributes,
                             IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                 IBV_QP_MAX_QP_RD_ATOMIC);
    }
    if (failed != 0) return system_error("cannot connect a queue pair to " + peer.gid, failed, options_.device);
  }
  return {};
}

Result<void> Endpoint::post(std::size_t queue_pair, ibv_send_wr request, std::size_t offset, std::uint32_t length) {
  ibv_sge element{reinterpret_cast<std::uint64_t>(memory_.data() + offset), length, region_->lkey};
  request.sg_list = &element;
  request.num_sge = length > 0 ? 1 : 0;
  ibv_send_wr* bad = nullptr;
  if (const int failed = ibv_post_send(queue_pairs_[queue_pair].get(), &request, &bad)) {
    return system_error("cannot post a request", failed, options_.device);
  }
  return {};
}

Result<void> Endpoint::post_write(std::size_t queue_pair, std::uint64_t id, std::size_t offset, std::uint32_t length) {
  ibv_send_wr request{};
  request.wr_id = id;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = peer_.memory + offset;
  request.wr.rdma.rkey = peer_.key;
  return post(queue_pair, request, offset, length);
}

Result<void> Endpoint::post_receive(std::size_t queue_pair, std::uint64_t id, std::size_t offset,
                                    std::uint32_t length) {
  ibv_sge element{reinterpret_cast<std::uint64_t>(memory_.data() + offset), length, region_->lkey};
  ibv_recv_wr request{};
  request.wr_id = id;
  request.sg_list = &element;
  request.num_sge = length > 0 ? 1 : 0;
  ibv_recv_wr* bad = nullptr;
  if (const int failed = ibv_post_recv(queue_pairs_[queue_pair].get(), &request, &bad)) {
    return system_error("cannot post a receive", failed, options_.device);
  }
  return {};
}

Result<ibv_wc> Endpoint::wait(std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  ibv_wc completion{};
  do {
    const int polled = ibv_poll_cq(completions_.get(), 1, &completion);
    if (polled < 0) return Error{"the completion queue is broken", options_.device, EIO, {}};
    if (polled == 1) return completion;
  } while (Clock::now() < end);
  return Error{"no completion in time", options_.device, ETIMEDOUT, {}};
}

Result<EndpointAddress> exchange(const std::string& folder, const std::string& name, const std::string& peer_name,
                                 const EndpointAddress& own, std::chrono::milliseconds limit) {
  const nlohmann::json document = {{"gid", own.gid},
                                   {"queue_pairs", own.queue_pairs},
                                   {"memory", static_cast<std::int64_t>(own.memory)},
                                   {"key", own.key},
                                   {"mtu", own.mtu}};
  const std::string path = folder + "/" + name;
  std::ofstream file(path + ".new");
  file << document.dump();
  file.close();
  if (!file || std::rename((path + ".new").c_str(), path.c_str()) != 0) {
    return system_error("cannot write", errno, path);
  }
  if (auto there = await(folder, peer_name, limit); !there) return there.take_error();
  auto peer = json::read_file(folder + "/" + peer_name);
  if (!peer) return peer.take_error();
  return parse_address(*peer, folder + "/" + peer_name);
}

Result<void> announce(const std::string& folder, const std::string& name) {
  std::ofstream file(folder + "/" + name);
  file.close();
  if (!file) return system_error("cannot write", errno, folder + "/" + name);
  return {};
}

Result<void> await(const std::string& folder, const std::string& name, std::chrono::milliseconds limit) {
  const std::string path = folder + "/" + name;
  for (const auto end = Clock::now() + limit; Clock::now() < end;) {
    if (access(path.c_str(), F_OK) == 0) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return system_error("did not appear in time", ETIMEDOUT, path, "is the other end running?");
}

}  // namespace weft::soft_rnic
