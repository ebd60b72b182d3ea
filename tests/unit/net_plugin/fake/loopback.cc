#include "tests/unit/net_plugin/fake/loopback.h"

#include <algorithm>
#include <thread>

#include "common/nccl_abi/net_types.h"

namespace weft::fake {

using setup::Engine;

Loopback::Loopback(settings::Settings settings, const LoopbackShape& shape,
                   std::unique_ptr<verbs::ConnectionManager> manager) {
  std::vector<DeviceDescription> descriptions;
  const int receiving = shape.receiving_devices != 0 ? shape.receiving_devices : shape.devices;
  const int physical = std::max(shape.devices, receiving);
  for (int i = 0; i < physical; i++) {
    DeviceDescription device;
    device.name = "mlx5_" + std::to_string(i);
    device.guid = std::uint64_t(i) + 1;
    device.max_srq = shape.max_srq;
    device.max_srq_wr = shape.max_srq_wr;
    device.max_qp_wr = shape.max_qp_wr;
    device.max_inline = shape.max_inline;
    const bool less = i + 1 == physical && shape.extensions_of_last.vendor_id != 0;
    device.extensions = less ? shape.extensions_of_last : shape.extensions;
    device.queue_pairs_left = shape.queue_pairs_left;
    device.ports.resize(std::size_t(shape.ports));
    for (int port = 0; port < shape.ports; port++)
      device.ports[std::size_t(port)].gids = {ipv4_gid(10, 1 + port, 1 + i, 2)};
    sysfs_.device(device.name, "0000:4" + std::to_string(1 + i) + ":00.0", {"RoCE v2", "RoCE v2"});
    descriptions.push_back(std::move(device));
  }
  if (shape.device_memory) sysfs_.write("module/nvidia_peermem/version", "1");
  auto made = std::make_unique<FakeVerbs>(std::move(descriptions));
  verbs = made.get();
  settings.connect_timeout_ms = shape.connect_timeout_ms;
  if (shape.all_paths_at_once) settings.grow_after_bytes = 0;
  runtime = setup::Runtime::create(std::unique_ptr<verbs::Verbs>(std::move(made)), settings, std::nullopt, false,
                                   [this](setup::LogLevel, const std::string& text) {
                                     std::lock_guard lock(log_mutex_);
                                     log_ += text + '\n';
                                   },
                                   {sysfs_.root(), std::move(manager), shape.find_driver, shape.interfaces});
  const auto device = [&](int count) {
    std::vector<int> members;
    for (int i = 0; i < count; i++)
      members.push_back(i);
    return count == 1 ? 0 : runtime->merge(members).take();
  };
  sending_device_ = device(shape.devices);
  listening_device_ = receiving == shape.devices ? sending_device_ : device(receiving);
}

// Verbs objects before the device, the control thread last.
Loopback::~Loopback() {
  sender_session.reset();
  receiver_session.reset();
  engines.clear();
}

Result<std::pair<transfer::Sender*, transfer::Receiver*>> Loopback::connect() {
  char handle[NCCL_NET_HANDLE_MAXSIZE];
  auto listening = runtime->listen(listening_device_, handle);
  if (!listening) return listening.take_error();
  auto connecting = runtime->connect(sending_device_, handle, -1);
  if (!connecting) return connecting.take_error();
  control = connecting->control;
  sender_session = connecting->session;
  Engine send, receive;
  const auto take = [this](Result<Engine>& outcome, Engine& into) {
    if (outcome)
      into = outcome.take();
    else
      errors.push_back(outcome.error());
  };
  // Where one side fails the other has a moment to say what it thinks of it.
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while ((!send.sender || !receive.receiver) && errors.size() < 2 && std::chrono::steady_clock::now() < deadline) {
    const std::size_t before = errors.size();
    if (auto outcome = sender_session->poll()) take(*outcome, send);
    for (const auto& session : listening->listener->sessions()) {
      if (auto outcome = session->poll()) {
        take(*outcome, receive);
        receiver_session = session;
      }
    }
    if (errors.size() != before) deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  control->remove(listening->listener);
  if (!errors.empty()) return errors.front();
  if (!send.sender || !receive.receiver) return Error{"no connection in time", {}, 0, {}};
  engines.push_back(std::move(send));
  engines.push_back(std::move(receive));
  return std::pair{engines[engines.size() - 2].sender.get(), engines.back().receiver.get()};
}

transfer::Registration Loopback::registration(void* data, std::size_t size, bool receiving, bool device_memory) const {
  const transfer::Link& link = receiving ? engines[1].receiver->link() : engines[0].sender->link();
  transfer::Registration out;
  out.device_memory = device_memory;
  for (const transfer::LinkDevice& device : link.devices)
    out.add(device.opened->register_user({data, size, 0, -1, device_memory}, false).take());
  return out;
}

std::string Loopback::log_text() const {
  std::lock_guard lock(log_mutex_);
  return log_;
}

bool Loopback::wait_for_growth() const {
  for (int look = 0; look < 5000; look++) {
    if (engines[engines.size() - 2].sender->link().peer->has_offer() &&
        engines.back().receiver->link().peer->has_offer())
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace weft::fake
