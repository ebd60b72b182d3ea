// Both ends of Weft connections in one process, over a NIC that is none.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net_plugin/setup/runtime.h"
#include "tests/unit/net_plugin/fake/fake_sysfs.h"
#include "tests/unit/net_plugin/fake/fake_verbs.h"

namespace weft::fake {

class Loopback {
 public:
  explicit Loopback(settings::Settings settings = {}, int max_srq = 1024);
  ~Loopback();

  // Both ends of one connection; an error where one of them fails.
  Result<std::pair<transfer::Sender*, transfer::Receiver*>> connect();
  // On the device of the first connection.
  transfer::Registration registration(void* data, std::size_t size) const;

  FakeVerbs* verbs = nullptr;
  std::unique_ptr<setup::Runtime> runtime;
  std::string log;
  std::shared_ptr<setup::Control> control;
  std::shared_ptr<setup::Session> sender_session, receiver_session;  // of the last connection
  std::vector<setup::Engine> engines;

 private:
  FakeSysfs sysfs_;
};

}  // namespace weft::fake
