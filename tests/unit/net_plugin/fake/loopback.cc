#include "tests/unit/net_plugin/fake/loopback.h"

#include <thread>

#include "common/nccl_abi/net_types.h"

namespace weft::fake {

using setup::Engine;

Loopback::Loopback(settings::Settings settings, int max_srq) {
  DeviceDescription device;
  device.name = "mlx5_0";
  device.max_srq = max_srq;
  device.ports[0].gids = {ipv4_gid(10, 1, 1, 2)};
  sysfs_.device("mlx5_0", "0000:41:00.0");
  auto made = std::make_unique<FakeVerbs>(std::vector{device});
  verbs = made.get();
  settings.connect_timeout_ms = 5000;
  runtime = setup::Runtime::create(
      std::unique_ptr<verbs::Verbs>(std::move(made)), settings, std::nullopt,
      [this](setup::LogLevel, const std::string& text) { log += text + '\n'; }, sysfs_.root());
}

// Verbs objects before the device, the control thread last.
Loopback::~Loopback() {
  sender_session.reset();
  receiver_session.reset();
  engines.clear();
}

Result<std::pair<transfer::Sender*, transfer::Receiver*>> Loopback::connect() {
  char handle[NCCL_NET_HANDLE_MAXSIZE];
  auto listening = runtime->listen(0, handle);
  if (!listening) return listening.take_error();
  auto connecting = runtime->connect(0, handle, -1);
  if (!connecting) return connecting.take_error();
  control = connecting->control;
  sender_session = connecting->session;
  Engine send, receive;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while ((!send.sender || !receive.receiver) && std::chrono::steady_clock::now() < deadline) {
    if (auto outcome = sender_session->poll()) {
      if (!*outcome) return outcome->take_error();
      send = outcome->take();
    }
    for (const auto& session : listening->listener->sessions()) {
      auto outcome = session->poll();
      if (!outcome) continue;
      if (!*outcome) return outcome->take_error();
      receive = outcome->take();
      receiver_session = session;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  control->remove(listening->listener);
  if (!send.sender || !receive.receiver) return Error{"no connection in time", {}, 0, {}};
  engines.push_back(std::move(send));
  engines.push_back(std::move(receive));
  return std::pair{engines[engines.size() - 2].sender.get(), engines.back().receiver.get()};
}

transfer::Registration Loopback::registration(void* data, std::size_t size) const {
  transfer::Registration out;
  out.device = engines.front().sender->link().device;
  out.region = out.device->register_memory(data, size, false).take();
  return out;
}

}  // namespace weft::fake
