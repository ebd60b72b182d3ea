// The library as an application uses it: two NICs of one emulated host on the loopback network, real packets between
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/rig/soft_rnic/tools/endpoint.h"

namespace weft::soft_rnic {
namespace {

constexpr std::chrono::milliseconds kLimit{10000};

// Writes the host file before the library first looks for it, and removes it at the end.
class EmulatedHost : public testing::Environment {
 public:
  void SetUp() override {
    char folder[] = "/tmp/soft_rnic_verbs_test.XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    nlohmann::json nics;
    for (int nic = 0; nic < 2; ++nic) {
      // A part of the loopback network that other tests running at the same time do not use.
      const std::string address = "127." + std::to_string(1 + getpid() % 200) + ".18." + std::to_string(1 + nic);
      nics.push_back({{"name", "mlx5_" + std::to_string(nic)},
                      {"netdev", "lo"},
                      {"address", address},
                      {"guid", "0x000000000000000" + std::to_string(nic + 1)},
                      {"mtu", 1024},
                      {"gids", {{{"gid", "fe80::1"}}, {{"gid", "::ffff:" + address}}}},
                      {"caps", {{"max_srq", 2}, {"modify_udp_sport", nic == 0}}}});
    }
    const nlohmann::json host = {{"host", "h1"}, {"nics", nics}, {"control", control_path()}};
    std::ofstream(folder_ + "/host.json") << host.dump();
    setenv("RIG_HOST_FILE", (folder_ + "/host.json").c_str(), 1);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string control_path() const { return folder_ + "/control.json"; }
  void control(const std::string& text) const {
    std::ofstream(control_path() + ".new") << text;
    ASSERT_EQ(std::rename((control_path() + ".new").c_str(), control_path().c_str()), 0);
  }

 private:
  std::string folder_;
};

const EmulatedHost* const host = static_cast<EmulatedHost*>(testing::AddGlobalTestEnvironment(new EmulatedHost));

class Verbs : public testing::Test {
 protected:
  void SetUp() override { open({}); }
  void TearDown() override { host->control("{}"); }

  void open(EndpointOptions options) {
    left.reset();
    right.reset();
    options.device = "mlx5_0";
    left = std::make_unique<Endpoint>(std::move(*Endpoint::open(options)));
    options.device = "mlx5_1";
    right = std::make_unique<Endpoint>(std::move(*Endpoint::open(options)));
    auto to_right = left->connect(right->address());
    auto to_left = right->connect(left->address());
    ASSERT_TRUE(to_right) << to_right.error().text();
    ASSERT_TRUE(to_left) << to_left.error().text();
  }

  ibv_wc wait(Endpoint& endpoint) {
    auto completion = endpoint.wait(kLimit);
    EXPECT_TRUE(completion) << completion.error().text();
    return completion ? *completion : ibv_wc{};
  }

  ibv_send_wr request(ibv_wr_opcode opcode, std::uint64_t id) {
    ibv_send_wr result{};
    result.wr_id = id;
    result.opcode = opcode;
    result.send_flags = IBV_SEND_SIGNALED;
    result.wr.rdma.remote_addr = left->peer().memory;
    result.wr.rdma.rkey = left->peer().key;
    return result;
  }

  std::unique_ptr<Endpoint> left;
  std::unique_ptr<Endpoint> right;
};

TEST_F(Verbs, WriteOfEverySizeArrives) {
  for (const std::uint32_t length : {0U, 1U, 3U, 1023U, 1024U, 1025U, 65536U, 1'000'003U}) {
    for (std::uint32_t index = 0; index < length; ++index)
      left->memory()[index] = static_cast<std::uint8_t>(index * 7 + length);
    std::memset(right->memory(), 0xee, length + 1);
    ASSERT_TRUE(left->post_write(0, length, 0, length));
    const ibv_wc done = wait(*left);
    EXPECT_EQ(done.status, IBV_WC_SUCCESS);
    EXPECT_EQ(done.wr_id, length);
    EXPECT_EQ(std::memcmp(left->memory(), right->memory(), length), 0) << length;
    EXPECT_EQ(right->memory()[length], 0xee) << "written beyond the end of " << length;
  }
}

TEST_F(Verbs, WriteWithImmediateCompletesAReceive) {
  ASSERT_TRUE(right->post_receive(0, 5, 0, 0));
  ibv_send_wr work = request(IBV_WR_RDMA_WRITE_WITH_IMM, 1);
  work.imm_data = 0x01020304;
  std::memset(left->memory(), 0x77, 5000);
  ASSERT_TRUE(left->post(0, work, 0, 5000));
  const ibv_wc received = wait(*right);
  EXPECT_EQ(received.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(received.wr_id, 5U);
  EXPECT_EQ(received.byte_len, 5000U);
  EXPECT_EQ(received.imm_data, 0x01020304U);
  EXPECT_EQ(right->memory()[4999], 0x77);
  EXPECT_EQ(wait(*left).status, IBV_WC_SUCCESS);
}

TEST_F(Verbs, SendReadAndAtomicsWork) {
  ASSERT_TRUE(right->post_receive(0, 6, 1000, 2000));
  std::memset(left->memory(), 0x31, 2000);
  ASSERT_TRUE(left->post(0, request(IBV_WR_SEND, 1), 0, 2000));
  EXPECT_EQ(wait(*left).status, IBV_WC_SUCCESS);
  EXPECT_EQ(wait(*right).opcode, IBV_WC_RECV);
  EXPECT_EQ(right->memory()[2999], 0x31);

  std::memset(right->memory(), 0x42, 9000);
  ASSERT_TRUE(left->post(0, request(IBV_WR_RDMA_READ, 2), 10'000, 9000));
  EXPECT_EQ(wait(*left).opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(left->memory()[18'999], 0x42);

  auto* word = reinterpret_cast<std::uint64_t*>(right->memory());
  *word = 40;
  ibv_send_wr add = request(IBV_WR_ATOMIC_FETCH_AND_ADD, 3);
  add.wr.atomic.remote_addr = left->peer().memory;
  add.wr.atomic.rkey = left->peer().key;
  add.wr.atomic.compare_add = 2;
  ASSERT_TRUE(left->post(0, add, 64, 8));
  EXPECT_EQ(wait(*left).opcode, IBV_WC_FETCH_ADD);
  EXPECT_EQ(*word, 42U);
  EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(left->memory() + 64), 40U);
}

TEST_F(Verbs, TheEngineWorksWhileNobodyPolls) {
  std::memset(left->memory(), 0x55, 100'000);
  ASSERT_TRUE(left->post_write(0, 1, 0, 100'000));
  const auto* last = reinterpret_cast<const volatile std::uint8_t*>(right->memory() + 99'999);
  for (int waited = 0; waited < 5000 && *last != 0x55; ++waited)
    usleep(1000);
  EXPECT_EQ(*last, 0x55);
}

TEST_F(Verbs, AWrongKeyBreaksBothEndsWithTheRightStatuses) {
  ibv_send_wr work = request(IBV_WR_RDMA_WRITE, 1);
  work.wr.rdma.rkey ^= 0xff00;
  ASSERT_TRUE(right->post_receive(0, 77, 0, 0));
  ASSERT_TRUE(left->post(0, work, 0, 100));
  ASSERT_TRUE(left->post_write(0, 2, 0, 100));
  const ibv_wc first = wait(*left);
  EXPECT_EQ(first.status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(first.vendor_err, 136U);
  EXPECT_EQ(wait(*left).status, IBV_WC_WR_FLUSH_ERR);
  const ibv_wc flushed = wait(*right);
  EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(flushed.wr_id, 77U);
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(right->context(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
  EXPECT_EQ(event.element.qp, right->queue_pair(0));
  ibv_ack_async_event(&event);
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  ASSERT_EQ(ibv_query_qp(right->queue_pair(0), &attributes, IBV_QP_STATE, &initial), 0);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_ERR);
}

TEST_F(Verbs, AnUnregisteredLocalAddressIsALocalProtectionError) {
  ibv_send_wr work = request(IBV_WR_RDMA_WRITE, 1);
  ibv_sge element{0x1000, 8, 0x4242};
  work.sg_list = &element;
  work.num_sge = 1;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(left->queue_pair(0), &work, &bad), 0);
  EXPECT_EQ(wait(*left).status, IBV_WC_LOC_PROT_ERR);
}

TEST_F(Verbs, ACutLinkEndsInRetryExceeded) {
  EndpointOptions options;
  options.timeout = 9;  // 2.1 ms
  options.retry_count = 1;
  open(options);
  host->control(R"({"nics": {"mlx5_1": {"drop_ppm": 1000000}}})");
  usleep(120'000);
  ASSERT_TRUE(left->post_write(0, 1, 0, 100));
  const ibv_wc completion = wait(*left);
  EXPECT_EQ(completion.status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(completion.vendor_err, 129U);
}

TEST_F(Verbs, LossIsRepaired) {
  EndpointOptions options;
  options.timeout = 14;
  open(options);
  host->control(R"({"nics": {"mlx5_0": {"drop_ppm": 20000}, "mlx5_1": {"drop_ppm": 20000}}})");
  usleep(120'000);
  for (std::uint32_t index = 0; index < 1'000'000; ++index)
    left->memory()[index] = static_cast<std::uint8_t>(index >> 8 ^ index);
  for (std::uint64_t id = 0; id < 10; ++id)
    ASSERT_TRUE(left->post_write(0, id, id * 100'000, 100'000));
  for (std::uint64_t id = 0; id < 10; ++id) {
    const ibv_wc completion = wait(*left);
    EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
    EXPECT_EQ(completion.wr_id, id);
  }
  EXPECT_EQ(std::memcmp(left->memory(), right->memory(), 1'000'000), 0);
}

TEST_F(Verbs, PortEventsAndState) {
  host->control(R"({"nics": {"mlx5_0": {"port": "down"}}})");
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(left->context(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ERR);
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(left->context(), 1, &port), 0);
  EXPECT_EQ(port.state, IBV_PORT_DOWN);
  host->control("{}");
  ASSERT_EQ(ibv_get_async_event(left->context(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ACTIVE);
}

TEST_F(Verbs, ALivePortMoveLosesNothing) {
  ASSERT_TRUE(mlx5dv_is_supported(left->context()->device));
  for (std::uint32_t index = 0; index < 1'000'000; ++index)
    left->memory()[index] = static_cast<std::uint8_t>(index * 11);
  for (std::uint64_t id = 0; id < 10; ++id) {
    ASSERT_TRUE(left->post_write(0, id, id * 100'000, 100'000));
    EXPECT_EQ(mlx5dv_modify_qp_udp_sport(left->queue_pair(0), static_cast<std::uint16_t>(50'000 + id)), 0);
  }
  for (std::uint64_t id = 0; id < 10; ++id)
    EXPECT_EQ(wait(*left).status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(left->memory(), right->memory(), 1'000'000), 0);
}

TEST_F(Verbs, PortMovesAreRefusedWhereTheDeviceCannot) {
  EXPECT_EQ(mlx5dv_modify_qp_udp_sport(right->queue_pair(0), 50'000), EOPNOTSUPP);
}

TEST_F(Verbs, PortMovesNeedAQueuePairThatIsReadyToSend) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(left->queue_pair(0), &attributes, IBV_QP_STATE), 0);
  EXPECT_EQ(mlx5dv_modify_qp_udp_sport(left->queue_pair(0), 50'000), EINVAL);
}

TEST_F(Verbs, SharedReceiveQueueServesAndWarns) {
  ibv_srq_init_attr initial{};
  initial.attr = {4, 1, 0};
  std::unique_ptr<ibv_srq, VerbsDeleter<ibv_srq, ibv_destroy_srq>> shared(ibv_create_srq(right->domain(), &initial));
  ASSERT_NE(shared, nullptr);
  ibv_recv_wr receive{};
  ibv_recv_wr* bad = nullptr;
  for (std::uint64_t id = 0; id < 4; ++id) {
    receive.wr_id = id;
    ASSERT_EQ(ibv_post_srq_recv(shared.get(), &receive, &bad), 0);
  }
  EXPECT_EQ(ibv_post_srq_recv(shared.get(), &receive, &bad), ENOMEM);
  ibv_srq_attr limit{};
  limit.srq_limit = 2;
  ASSERT_EQ(ibv_modify_srq(shared.get(), &limit, IBV_SRQ_LIMIT), 0);
  ibv_srq_attr asked{};
  ASSERT_EQ(ibv_query_srq(shared.get(), &asked), 0);
  EXPECT_EQ(asked.srq_limit, 2U);
  EXPECT_EQ(asked.max_wr, 4U);
  ibv_srq_init_attr more = initial;
  ibv_srq* second = ibv_create_srq(right->domain(), &more);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(ibv_create_srq(right->domain(), &more), nullptr) << "the host file allows two";
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(ibv_destroy_srq(second), 0);
}

TEST_F(Verbs, AQueuePairOnASharedQueueReceivesAndWarns) {
  EndpointOptions options;
  options.shared_receives = 8;
  open(options);
  ibv_srq_attr limit{};
  limit.srq_limit = 7;
  ibv_recv_wr receive{};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_recv(right->queue_pair(0), &receive, &bad), EINVAL) << "it has no receive queue of its own";
  for (receive.wr_id = 0; receive.wr_id < 8; ++receive.wr_id) {
    ASSERT_EQ(ibv_post_srq_recv(right->shared_receives(), &receive, &bad), 0);
  }
  ASSERT_EQ(ibv_modify_srq(right->shared_receives(), &limit, IBV_SRQ_LIMIT), 0);
  EXPECT_EQ(ibv_destroy_srq(right->shared_receives()), EBUSY);
  for (std::uint64_t id = 0; id < 2; ++id) {
    ASSERT_TRUE(left->post(0, request(IBV_WR_RDMA_WRITE_WITH_IMM, id), 0, 100));
    EXPECT_EQ(wait(*right).wr_id, id);
  }
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(right->context(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(event.element.srq, right->shared_receives());
  ibv_qp_attr broken{};
  broken.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(right->queue_pair(0), &broken, IBV_QP_STATE), 0);
  ASSERT_EQ(ibv_get_async_event(right->context(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED) << "the shared queue itself is not flushed";
}

TEST_F(Verbs, ANewAddressInSqdMovesThePort) {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  ASSERT_EQ(ibv_query_qp(left->queue_pair(0), &attributes, IBV_QP_AV, &initial), 0);
  const auto change = [&](ibv_qp_state state, int mask) {
    attributes.qp_state = state;
    return ibv_modify_qp(left->queue_pair(0), &attributes, mask);
  };
  attributes.ah_attr.grh.flow_label = 33;
  EXPECT_EQ(change(IBV_QPS_RTS, IBV_QP_AV), EINVAL) << "not while sending";
  attributes.en_sqd_async_notify = 1;
  ASSERT_EQ(change(IBV_QPS_SQD, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(left->context(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_SQ_DRAINED);
  ASSERT_EQ(change(IBV_QPS_SQD, IBV_QP_STATE | IBV_QP_AV), 0);
  ASSERT_TRUE(left->post_write(0, 1, 0, 100));
  EXPECT_FALSE(left->wait(std::chrono::milliseconds(50))) << "requests wait until the queue pair sends again";
  ASSERT_EQ(change(IBV_QPS_RTS, IBV_QP_STATE), 0);
  EXPECT_EQ(wait(*left).status, IBV_WC_SUCCESS);
  ASSERT_EQ(ibv_query_qp(left->queue_pair(0), &attributes, IBV_QP_AV, &initial), 0);
  EXPECT_EQ(attributes.ah_attr.grh.flow_label, 33U);
}

TEST_F(Verbs, UnreachablePeersAreAnErrorOfModify) {
  ibv_qp_init_attr initial{};
  initial.send_cq = initial.recv_cq = left->completions();
  initial.qp_type = IBV_QPT_RC;
  initial.cap = {1, 1, 1, 1, 0};
  std::unique_ptr<ibv_qp, VerbsDeleter<ibv_qp, ibv_destroy_qp>> queue_pair(ibv_create_qp(left->domain(), &initial));
  ASSERT_NE(queue_pair, nullptr);
  EXPECT_GE(initial.cap.max_inline_data, 512U) << "NCCL sends up to 512 bytes inline whatever it asked for";
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  ASSERT_EQ(ibv_modify_qp(queue_pair.get(), &attributes, 0x39), 0);
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = IBV_MTU_1024;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.grh.sgid_index = 1;
  // An address of the Internet, from a loopback source.
  const std::uint8_t outside[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1};
  std::memcpy(attributes.ah_attr.grh.dgid.raw, outside, sizeof outside);
  EXPECT_NE(ibv_modify_qp(queue_pair.get(), &attributes, 0x129181), 0);
  attributes.ah_attr.grh.dgid.raw[0] = 0xfe;  // link-local: no IPv4 address in it
  EXPECT_EQ(ibv_modify_qp(queue_pair.get(), &attributes, 0x129181), EINVAL);
  EXPECT_EQ(queue_pair->state, IBV_QPS_INIT);
}

TEST_F(Verbs, GidTableAndDmabufProbe) {
  ibv_gid_entry entry{};
  ASSERT_EQ(ibv_query_gid_ex(left->context(), 1, 1, &entry, 0), 0);
  EXPECT_EQ(entry.gid_type, static_cast<std::uint32_t>(IBV_GID_TYPE_ROCE_V2));
  ibv_gid_entry table[4];
  EXPECT_EQ(ibv_query_gid_table(left->context(), table, 4, 0), 2);
  EXPECT_EQ(ibv_reg_dmabuf_mr(left->domain(), 0, 0, 0, -1, 0), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP) << "no GPU of this host exports dma-buf";
}

TEST_F(Verbs, CompletionChannelWakesTheApplication) {
  ibv_comp_channel* channel = ibv_create_comp_channel(left->context());
  ibv_cq* queue = ibv_create_cq(left->context(), 16, &channel, channel, 0);
  ibv_qp_init_attr initial{};
  initial.send_cq = initial.recv_cq = queue;
  initial.qp_type = IBV_QPT_RC;
  initial.cap = {4, 4, 1, 1, 0};
  ibv_qp* queue_pair = ibv_create_qp(left->domain(), &initial);
  ASSERT_NE(queue_pair, nullptr);
  ASSERT_EQ(ibv_req_notify_cq(queue, 0), 0);
  // A flushed receive is the quickest completion there is.
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  ASSERT_EQ(ibv_modify_qp(queue_pair, &attributes, 0x39), 0);
  ibv_recv_wr receive{};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(queue_pair, &receive, &bad), 0);
  attributes.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(queue_pair, &attributes, IBV_QP_STATE), 0);
  ibv_cq* woken = nullptr;
  void* woken_context = nullptr;
  ASSERT_EQ(ibv_get_cq_event(channel, &woken, &woken_context), 0);
  EXPECT_EQ(woken, queue);
  EXPECT_EQ(woken_context, &channel);
  ibv_ack_cq_events(queue, 1);
  ibv_destroy_qp(queue_pair);
  ibv_destroy_cq(queue);
  ibv_destroy_comp_channel(channel);
}

TEST_F(Verbs, DeregisteringMemoryInUseIsAnErrorNotACrash) {
  EndpointOptions options;
  options.timeout = 10;
  open(options);
  host->control(R"({"nics": {"mlx5_1": {"drop_ppm": 1000000}}})");
  usleep(120'000);
  auto extra = std::make_unique<std::vector<std::uint8_t>>(100'000);
  const int access = IBV_ACCESS_LOCAL_WRITE;
  ibv_mr* region = ibv_reg_mr(left->domain(), extra->data(), extra->size(), access);
  ibv_send_wr work = request(IBV_WR_RDMA_WRITE, 1);
  ibv_sge element{reinterpret_cast<std::uint64_t>(extra->data()), 100'000, region->lkey};
  work.sg_list = &element;
  work.num_sge = 1;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(left->queue_pair(0), &work, &bad), 0);
  ibv_dereg_mr(region);
  extra.reset();
  EXPECT_EQ(wait(*left).status, IBV_WC_LOC_PROT_ERR);
}

}  // namespace
}  // namespace weft::soft_rnic
