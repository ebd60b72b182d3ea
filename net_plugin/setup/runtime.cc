#include "net_plugin/setup/runtime.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>

#include "common/text/format.h"
#include "net_plugin/devices/interfaces.h"
#include "net_plugin/paths/source_port.h"
#include "net_plugin/setup/asynchronous_events.h"
#include "net_plugin/setup/socket_address.h"

namespace weft::setup {
namespace {

// A last word to a peer may hold NCCL's thread up so long; the connection has failed anyway.
constexpr int kLastWordMs = 500;

std::uint64_t hash_bytes(std::uint64_t key, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  for (std::size_t i = 0; i < size; i++)
    key = paths::combine_key(key, bytes[i]);
  return key;
}

std::uint8_t traffic_class(std::int64_t given, int otherwise) {
  return std::uint8_t(given >= 0 ? given : std::max(0, otherwise));
}

Options make_options(const settings::Settings& settings) {
  Options options;
  options.paths = int(settings.paths);
  options.seed = settings.seed;
  options.timeout = std::uint8_t(settings.ib_timeout);
  options.retry_count = std::uint8_t(settings.ib_retry_cnt);
  options.service_level = std::uint8_t(std::max<std::int64_t>(0, settings.ib_sl));
  options.partition_key_index = std::uint16_t(settings.ib_pkey);
  options.connect_timeout = std::chrono::milliseconds(settings.connect_timeout_ms);
  options.piece_bytes = std::size_t(settings.piece_bytes);
  options.flush = !settings.gdr_flush_disable;
  return options;
}

Result<devices::Wishes> make_wishes(const settings::Settings& settings) {
  devices::Wishes wishes;
  auto selection = devices::parse_selection(settings.ib_hca);
  if (!selection) return selection.take_error();
  wishes.selection = selection.take();
  wishes.gid.index = int(settings.ib_gid_index);
  wishes.gid.ipv6 = settings.ib_addr_family == "AF_INET6";
  if (!settings.ib_addr_range.empty()) {
    auto range = devices::parse_range(settings.ib_addr_range);
    if (!range) return range.take_error();
    wishes.gid.range = range.take();
    wishes.gid.range_text = settings.ib_addr_range;
  }
  return wishes;
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = "?";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

std::unique_ptr<Runtime> Runtime::create(Result<std::unique_ptr<verbs::Verbs>> verbs,
                                         const settings::Settings& settings, std::optional<Error> settings_error,
                                         Log log, const std::string& sysfs) {
  std::unique_ptr<Runtime> runtime(new Runtime(std::move(log)));
  if (verbs) runtime->verbs_ = verbs.take();
  runtime->settings_ = settings;
  runtime->options_ = make_options(settings);
  runtime->options_.relaxed_ordering =
      settings.ib_pci_relaxed_ordering != 0 && runtime->verbs_ && runtime->verbs_->has_optional_access();
  runtime->trouble_ = std::move(settings_error);
  runtime->host_ = host_name();
  runtime->process_ = getpid();
  devices::Wishes wishes;
  if (auto made = make_wishes(settings))
    wishes = made.take();
  else if (!runtime->trouble_)
    runtime->trouble_ = made.take_error();
  devices::Discovery found = runtime->verbs_ ? devices::discover(*runtime->verbs_, wishes, sysfs)
                                             : devices::discover_without_verbs(verbs.error(), wishes, sysfs);
  for (const std::string& remark : found.remarks)
    runtime->log_(LogLevel::info, remark);
  if (found.trouble && !runtime->trouble_) runtime->trouble_ = std::move(found.trouble);
  runtime->ports_ = std::move(found.ports);
  runtime->open_.resize(runtime->ports_.size());
  for (std::size_t i = 0; i < runtime->ports_.size(); i++) {
    const devices::Port& port = runtime->ports_[i];
    runtime->log_(LogLevel::info, port.unusable
                                      ? text::format("device {}: {}:{} is not usable: {}", i, port.device, port.port,
                                                     port.unusable->text())
                                      : text::format("device {}: {}:{} {} Mbit/s, {}, GPU memory: {}", i, port.device,
                                                     port.port, port.speed_mbps, devices::describe(port.gid),
                                                     port.peer_memory ? "peer memory"
                                                     : port.dmabuf    ? "dma-buf"
                                                                      : "no"));
  }
  return runtime;
}

// What makes listen and connect fail: a rank that can't work must say so, or it would leave the others waiting.
Result<void> Runtime::usable(int device) const {
  if (getpid() != process_) return Error{"used in a forked child", {}, 0, "NCCL must be initialised after fork()"};
  if (trouble_) return *trouble_;
  if (device < 0 || std::size_t(device) >= ports_.size()) {
    return Error{text::format("device {} does not exist", device), {}, 0, text::format("devices: {}", ports_.size())};
  }
  const devices::Port& port = ports_[std::size_t(device)];
  if (port.unusable) return *port.unusable;
  return {};
}

Result<std::shared_ptr<Control>> Runtime::control() {
  std::lock_guard lock(mutex_);
  if (auto running = control_.lock()) return running;
  auto started = Control::start();
  if (started) control_ = *started;
  return started;
}

Result<std::shared_ptr<OpenDevice>> Runtime::open(int device, const std::shared_ptr<Control>& control) {
  std::lock_guard lock(mutex_);
  std::weak_ptr<OpenDevice>& known = open_[std::size_t(device)];
  if (auto open = known.lock()) return open;
  auto opened = OpenDevice::open(*verbs_, ports_[std::size_t(device)]);
  if (!opened) return opened;
  known = *opened;
  control->add(std::make_shared<AsynchronousEvents>(known, (*opened)->context()->async_fd,
                                                    [this](const std::string& line) { log_(LogLevel::warn, line); }));
  return opened;
}

// Distinct over all connections of a pair of NICs in this process, the same in every run with the same seed.
std::vector<std::uint16_t> Runtime::choose_ports(const devices::Port& port, const std::string& peer_address) {
  std::uint64_t key = hash_bytes(options_.seed, port.gid.bytes.data(), port.gid.bytes.size());
  key = hash_bytes(key, peer_address.data(), peer_address.size());
  const auto paths = std::size_t(options_.paths);
  std::lock_guard lock(mutex_);
  // When a pair has used up all ports, it begins again.
  const std::size_t before = connections_[key]++ % (paths::kPorts / paths);
  const std::vector<std::uint16_t> all = paths::distinct_ports(key, (before + 1) * paths);
  return {all.end() - std::ptrdiff_t(paths), all.end()};
}

Result<SessionSetup> Runtime::session_setup(int device, const std::shared_ptr<Control>& control) {
  auto opened = open(device, control);
  if (!opened) return opened.take_error();
  SessionSetup setup;
  setup.device = opened.take();
  setup.options = options_;
  setup.host = host_;
  setup.settings_digest = settings::job_wide_digest(settings_);
  setup.settings_differ = [this](const std::string& peer) {
    if (!told_of_difference_.exchange(true)) {
      log_(LogLevel::warn, text::format("{} has other values of settings that belong to the whole job (WEFT_PATHS, "
                                        "NCCL_IB_TC, …; docs/settings.md marks them); "
                                        "compare `weft settings` on both hosts",
                                        peer));
    }
  };
  setup.choose_ports = [this, &port = ports_[std::size_t(device)]](const std::string& peer_address) {
    return choose_ports(port, peer_address);
  };
  return setup;
}

Result<Runtime::Listening> Runtime::listen(int device, void* handle) {
  if (auto able = usable(device); !able) return able.take_error();
  auto thread = control();
  if (!thread) return thread.take_error();
  auto setup = session_setup(device, *thread);
  if (!setup) return setup.take_error();
  auto interface =
      devices::choose_interface(devices::list_interfaces(), {settings_.socket_ifname, settings_.socket_family});
  if (!interface) return interface.take_error();
  Handle out;
  out.address = interface->address;
  auto socket = listen_socket(&out.address);
  if (!socket) return socket.take_error();
  {
    std::lock_guard lock(mutex_);
    // Different in every process: a stray connection to a port that was reused is not taken for a peer.
    out.listener = paths::combine_key(std::uint64_t(process_) << 32 | ++next_listener_,
                                      std::uint64_t(std::chrono::system_clock::now().time_since_epoch().count()));
  }
  setup->listener = out.listener;
  setup->options.traffic_class = traffic_class(settings_.ib_tc, -1);
  setup->options.record_traffic_class = traffic_class(settings_.ib_fifo_tc, setup->options.traffic_class);
  encode_handle(out, handle);
  // The listener must not keep the thread that runs it alive.
  auto start = [weak = std::weak_ptr<Control>(*thread)](std::shared_ptr<Session> session) {
    if (auto running = weak.lock()) running->add(std::move(session));
  };
  auto listener = std::make_shared<Listener>(setup.take(), socket.take(), start);
  (*thread)->add(listener);
  return Listening{thread.take(), std::move(listener)};
}

Result<Runtime::Connecting> Runtime::connect(int device, const void* handle, int communicator_traffic_class) {
  auto peer = decode_handle(handle);
  if (auto able = usable(device); !able) {
    // The peer waits for this connection; without a word it would wait until its deadline.
    if (peer && getpid() == process_) {
      send_and_close(peer->address, encode_text(MessageType::refuse, able.error().text()), kLastWordMs);
    }
    return able.take_error();
  }
  if (!peer) return peer.take_error();
  auto thread = control();
  if (!thread) return thread.take_error();
  auto setup = session_setup(device, *thread);
  if (!setup) return setup.take_error();
  setup->listener = peer->listener;
  setup->options.traffic_class = traffic_class(settings_.ib_tc, communicator_traffic_class);
  auto session = Session::connect(setup.take(), *peer);
  (*thread)->add(session);
  return Connecting{thread.take(), std::move(session)};
}

}  // namespace weft::setup
