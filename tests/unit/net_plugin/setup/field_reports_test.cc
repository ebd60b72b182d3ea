// What users have reported of other transports, each as a test; docs/field-reports.md has the whole list.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "net_plugin/setup/event_log.h"
#include "tests/unit/net_plugin/fake/fake_cuda_driver.h"
#include "tests/unit/net_plugin/fake/loopback.h"

namespace weft::setup {
namespace {

using fake::Loopback;
using fake::LoopbackShape;
using testing::HasSubstr;
using transfer::Progress;
using transfer::Registration;
using transfer::Request;

// Setting up goes over TCP and proves nothing: the first write does, before NCCL has the connection.
TEST(FieldReports, F02_AWriteThatDoesNotArriveFailsTheConnectionAndNotTheFirstCollective) {
  Loopback loop;
  loop.verbs->fail_next(IBV_WC_RETRY_EXC_ERR);
  ASSERT_FALSE(loop.connect());
  std::string all;
  for (const Error& error : loop.errors)
    all += error.text() + "\n";
  EXPECT_THAT(all, HasSubstr("the first write did not arrive: path "));
  EXPECT_THAT(all, HasSubstr("transport retry counter exceeded"));
  EXPECT_THAT(all, HasSubstr("source port"));
}

// The traffic class is on every queue pair: data, records and flushes, at once and later.
TEST(FieldReports, F46_TheTrafficClassIsOnEveryQueuePair) {
  settings::Settings settings;
  settings.ib_tc = 106;
  LoopbackShape shape;
  shape.device_memory = true;
  Loopback loop(settings, shape);
  ASSERT_TRUE(loop.connect());
  const std::vector<std::uint8_t> classes = loop.verbs->traffic_classes();
  EXPECT_EQ(classes.size(), 24u * 2 + 1);
  EXPECT_EQ(classes, std::vector<std::uint8_t>(classes.size(), 106));
}

// The GPU shows 256 MiB of its memory to other PCI devices.
TEST(FieldReports, F61_AGpuRegistrationThatFailsNamesTheSumAndTheWindow) {
  fake::CudaScript script;
  script.pci_address = "0000:3B:00.0";
  LoopbackShape shape;
  shape.find_driver = [&] { return std::make_unique<fake::ScriptedDriver>(script); };
  Loopback loop({}, shape);
  ASSERT_TRUE(loop.connect());
  const OpenDevice& device = *loop.engines[0].sender->link().devices[0].opened;
  const auto register_gpu = [&](std::size_t size, int dmabuf = -1) {
    return loop.runtime->register_user(device, {reinterpret_cast<void*>(fake::kGpuMemory), size, 0, dmabuf, true});
  };
  loop.verbs->gpu_memory = fake::kGpuMemory;
  loop.verbs->gpu_window = 256 << 20;
  std::vector<std::uint8_t> host(1 << 20);
  const auto of_host = loop.runtime->register_user(device, {host.data(), host.size()});
  const auto before = register_gpu(192 << 20);
  ASSERT_TRUE(of_host && before);
  EXPECT_THAT(register_gpu(512 << 20).error().text(),
              HasSubstr("mlx5_0:1: GPU registration of 536870912 B failed after 201326592 B: ibv_reg_mr"))
      << "sysfs shows no GPU";
  for (const char* gpu : {"0000:3b:00.0", "0000:b0:00.0"}) {
    const std::string folder = std::string("bus/pci/devices/") + gpu;
    loop.sysfs().write(folder + "/vendor", "0x10de");
    loop.sysfs().write(folder + "/class", "0x030200");
    loop.sysfs().write(folder + "/resource",
                       "0x00000000d0000000 0x00000000d0ffffff 0x0000000000040200\n"
                       "0x0000383fe0000000 0x0000383fefffffff 0x000000000014220c\n"
                       "0x0000000000000000 0x0000000000000000 0x0000000000000000");
  }
  const std::string known = register_gpu(512 << 20).error().text();
  EXPECT_THAT(known, HasSubstr("GPU registration of 536870912 B failed after 201326592 B; BAR1 is 268435456 B "
                               "(GPU 0000:3b:00.0): ibv_reg_mr of 536870912 bytes failed"));
  EXPECT_THAT(known, HasSubstr("ENOMEM"));
  EXPECT_THAT(known, HasSubstr("the GPU's BAR1 or the NIC's translation table is full"));
  EXPECT_THAT(register_gpu(512 << 20, 7).error().text(),
              HasSubstr("BAR1 is 268435456 B (GPU 0000:3b:00.0): ibv_reg_dmabuf_mr"));
  script.pci_address.clear();
  EXPECT_THAT(register_gpu(512 << 20).error().text(),
              HasSubstr("BAR1 is 268435456 B (GPU 0000:3b:00.0), 268435456 B (GPU 0000:b0:00.0)"));
}

// 5000 events in a second are one line and a count.
TEST(FieldReports, F64_AFlappingLinkDoesNotFillTheLog) {
  EventLog log;
  TimePoint now{};
  int lines = 0;
  for (int i = 0; i < 5000; i++, now += std::chrono::microseconds(200))
    lines += log.note("mlx5_0:1: event port error", now).has_value() + int(log.due(now).size());
  EXPECT_EQ(lines, 1);
  ASSERT_TRUE(log.wake());
  now = *log.wake();
  EXPECT_THAT(log.due(now), testing::ElementsAre("mlx5_0:1: event port error: 4999 more in 10 s"));
  EXPECT_TRUE(log.due(now + EventLog::kInterval).empty());
  EXPECT_FALSE(log.wake()) << "forgotten after a quiet interval";
  EXPECT_TRUE(log.note("mlx5_0:1: event port error", now + 2 * EventLog::kInterval));
}

// The other port of the same device has its own events.
TEST(FieldReports, F65_EventsOfAnotherPortAreNotOurs) {
  Loopback loop;
  ASSERT_TRUE(loop.connect());
  const auto count = [&] {
    const std::string text = loop.log_text();
    int found = 0;
    for (std::size_t at = 0; (at = text.find("an event", at)) != std::string::npos; at++)
      found++;
    return found;
  };
  loop.verbs->raise("mlx5_0", IBV_EVENT_PORT_ERR, 2);
  loop.verbs->raise("mlx5_0", IBV_EVENT_PORT_ERR, 1);
  for (int look = 0; look < 2000 && count() == 0; look++)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(count(), 1);
}

// NCCL may wait for an earlier request than the one that failed: it has to hear of it all the same.
TEST(FieldReports, F66_OnceAConnectionHasFailedEveryRequestOfItFails) {
  Loopback loop;
  auto ends = loop.connect();
  ASSERT_TRUE(ends) << ends.error().text();
  auto [sender, receiver] = *ends;
  std::vector<std::uint8_t> from(8 * 1000), to(8 * 1000);
  const Registration from_memory = loop.registration(from.data(), from.size()),
                     to_memory = loop.registration(to.data(), to.size(), true);
  loop.verbs->hold();
  std::vector<Request*> sends;
  for (std::size_t i = 0; i < 8; i++) {
    Request *receive = nullptr, *send = nullptr;
    const transfer::Receive offer{to.data() + i * 1000, 1000, 0, &to_memory};
    ASSERT_EQ(receiver->receive(&offer, 1, &receive), Progress::done);
    loop.verbs->deliver(loop.verbs->held() - 1);  // the record
    ASSERT_EQ(sender->send(from.data() + i * 1000, 1000, 0, from_memory, &send), Progress::done);
    sends.push_back(send);
  }
  loop.verbs->fail_next(IBV_WC_REM_ACCESS_ERR);
  loop.verbs->deliver(7);  // of the last message
  EXPECT_EQ(sender->test(*sends[3], nullptr), Progress::failed);
  for (Request* send : sends)
    EXPECT_EQ(sender->test(*send, nullptr), Progress::failed);
  Request* another = nullptr;
  EXPECT_EQ(sender->send(from.data(), 1, 0, from_memory, &another), Progress::failed);
  EXPECT_THAT(sender->link().failure()->error.text(), HasSubstr("deregistered while in use"));
  loop.verbs->release();
}

// PyTorch's data loaders fork: the child gets an error instead of the parent's NIC, and the parent goes on.
TEST(FieldReports, F77_AForkedChildIsRefusedAndTheParentGoesOn) {
  Loopback loop;
  auto ends = loop.connect();
  ASSERT_TRUE(ends) << ends.error().text();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    char handle[128];
    auto listening = loop.runtime->listen(0, handle);
    _exit(!listening && listening.error().text().find("forked child") != std::string::npos ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::uint8_t byte = 0;
  const Registration memory = loop.registration(&byte, 1, true);
  const transfer::Receive offer{&byte, 1, 0, &memory};
  Request* receive = nullptr;
  EXPECT_EQ(ends->second->receive(&offer, 1, &receive), Progress::done);
}

// A NIC without queue pairs left: the call, the device's limit and this process's own limits are named.
TEST(FieldReports, F86_RunningOutOfQueuePairsNamesTheLimit) {
  LoopbackShape shape;
  shape.queue_pairs_left = 10;
  Loopback loop({}, shape);
  auto ends = loop.connect();
  ASSERT_FALSE(ends);
  EXPECT_THAT(ends.error().text(), HasSubstr("ibv_create_qp"));
  EXPECT_THAT(ends.error().text(), HasSubstr("ENOMEM"));
  EXPECT_THAT(ends.error().text(), HasSubstr("65536 queue pairs for all processes"));
}

// A device with queues too short for eight receives at once would let NCCL ask for ever.
TEST(FieldReports, F22_ReceiveQueuesThatAreTooShortAreNamedAndShortOnesUsed) {
  for (const int max_srq : {0, 1024}) {
    LoopbackShape shape;
    shape.max_srq = max_srq;
    (max_srq > 0 ? shape.max_srq_wr : shape.max_qp_wr) = transfer::kFewestReceives - 1;
    Loopback loop({}, shape);
    ASSERT_FALSE(loop.connect());
    std::string all;
    for (const Error& error : loop.errors)
      all += error.text() + '\n';
    EXPECT_THAT(all, HasSubstr("takes 22 receive work requests in a queue, fewer than the 23"));
    EXPECT_THAT(all, HasSubstr(max_srq > 0 ? "max_srq_wr" : "max_qp_wr"));
  }
  LoopbackShape shape;
  shape.max_srq_wr = transfer::kFewestReceives;
  Loopback loop({}, shape);
  auto ends = loop.connect();
  ASSERT_TRUE(ends) << ends.error().text();
  std::uint8_t byte = 0;
  transfer::Registration memory = loop.registration(&byte, 1, true);
  transfer::Receive receives[transfer::kMaxGroup];
  for (int i = 0; i < transfer::kMaxGroup; i++)
    receives[i] = {&byte, 1, i, &memory};
  transfer::Request* request = nullptr;
  EXPECT_EQ(ends->second->receive(receives, transfer::kMaxGroup, &request), transfer::Progress::done);
}

}  // namespace
}  // namespace weft::setup
