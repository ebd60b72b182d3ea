// Both ends of Weft connections in one process, over a NIC that is none.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "net_plugin/setup/runtime.h"
#include "tests/unit/net_plugin/fake/fake_sysfs.h"
#include "tests/unit/net_plugin/fake/fake_verbs.h"

namespace weft::fake {

struct LoopbackShape {
  int max_srq = 1024;
  int max_srq_wr = 1 << 14;
  int max_qp_wr = 1 << 14;
  int devices = 1;            // merged into one where there are more
  int receiving_devices = 0;  // of the listening side; 0: as many
  int ports = 1;              // of each device
  bool all_paths_at_once = true;
  bool device_memory = false;  // the NICs reach GPU memory
  std::uint32_t max_inline = 256;
  int queue_pairs_left = 1 << 16;
  ibv_ece extensions{};
  std::int64_t connect_timeout_ms = 5000;
  std::function<std::unique_ptr<devices::CudaDriver>()> find_driver = {};
  setup::ListInterfaces interfaces = devices::list_interfaces;
  ibv_ece extensions_of_last{};  // of the last device, where it can less
};

class Loopback {
 public:
  explicit Loopback(settings::Settings settings = {}, const LoopbackShape& shape = {},
                    std::unique_ptr<verbs::ConnectionManager> manager = nullptr);
  ~Loopback();

  // Both ends of one connection; an error where one of them fails.
  Result<std::pair<transfer::Sender*, transfer::Receiver*>> connect();
  // On the devices of the first connection's sender or receiver.
  transfer::Registration registration(void* data, std::size_t size, bool receiving = false,
                                      bool device_memory = false) const;
  // Waits until the sender of the last connection has been offered more paths.
  bool wait_for_growth() const;

  FakeVerbs* verbs = nullptr;
  std::unique_ptr<setup::Runtime> runtime;
  std::string log_text() const;
  const FakeSysfs& sysfs() const { return sysfs_; }
  std::shared_ptr<setup::Control> control;
  std::shared_ptr<setup::Session> sender_session, receiver_session;  // of the last connection
  std::vector<setup::Engine> engines;
  std::vector<Error> errors;  // of both sides of a connection that came to nothing

 private:
  FakeSysfs sysfs_;
  mutable std::mutex log_mutex_;
  std::string log_;
  int sending_device_ = 0, listening_device_ = 0;
};

}  // namespace weft::fake
