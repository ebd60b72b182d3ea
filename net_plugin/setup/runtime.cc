#include "net_plugin/setup/runtime.h"

#include <limits.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/text/format.h"
#include "net_plugin/devices/gpu_window.h"
#include "net_plugin/devices/interfaces.h"
#include "net_plugin/paths/source_port.h"
#include "net_plugin/setup/asynchronous_events.h"
#include "net_plugin/setup/socket_address.h"
#include "net_plugin/setup/verbs_hint.h"

namespace weft::setup {
namespace {

// A last word to a peer may hold NCCL's thread up so long; the connection has failed anyway.
constexpr int kLastWordMs = 500;

// Lines about other hosts that are kept to be said once; a cluster of thousands must not fill memory with them.
constexpr std::size_t kMostRemarks = 64;

// A way that was found is not looked for again so long: the kernel keeps a neighbour entry about as long.
constexpr std::chrono::seconds kResolvedFor{30};
// So much of the time for a connection may pass until an address counts as unreachable: the error has to come before
// the peer's patience ends.
constexpr int kResolvePart = 2;

std::uint8_t traffic_class(std::int64_t given, int otherwise) {
  return std::uint8_t(given >= 0 ? given : std::max(0, otherwise));
}

Options make_options(const settings::Settings& settings) {
  Options options;
  options.paths = int(settings.paths);
  options.paths_per_peer = int(settings.paths_per_peer);
  options.grow_after = std::size_t(settings.grow_after_bytes);
  options.incast_bytes = std::size_t(settings.incast_bytes);
  options.extended_establishment = settings.ib_ece_enable;
  options.seed = settings.seed;
  options.timeout = std::uint8_t(settings.ib_timeout);
  options.paths = std::max(options.paths, int(settings.ib_qps_per_connection));
  options.least_paths = std::max(options.least_paths, int(settings.ib_qps_per_connection));
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
                                         bool merge_cards, Log log, Surroundings around) {
  std::unique_ptr<Runtime> runtime(new Runtime(std::move(log)));
  if (verbs) runtime->verbs_ = verbs.take();
  runtime->manager_ = std::move(around.manager);
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
  runtime->find_driver_ = std::move(around.find_driver);
  runtime->sysfs_ = around.sysfs.root().string();
  runtime->interfaces_ = around.interfaces;
  const devices::GpuTrial trial(runtime->find_driver_ ? runtime->find_driver_() : nullptr);
  devices::Discovery found = runtime->verbs_ ? devices::discover(*runtime->verbs_, wishes, around.sysfs, &trial)
                                             : devices::discover_without_verbs(verbs.error(), wishes, around.sysfs);
  for (const std::string& warning : found.warnings)
    runtime->log_(LogLevel::warn, warning);
  for (const std::string& remark : found.remarks)
    runtime->log_(LogLevel::info, remark);
  if (found.trouble && !runtime->trouble_) runtime->trouble_ = std::move(found.trouble);
  runtime->ports_ = std::move(found.ports);
  runtime->open_.resize(runtime->ports_.size());
  for (const devices::Port& port : runtime->ports_)
    runtime->watches_.push_back(std::make_shared<PortWatch>(port, wishes.gid, around.sysfs, around.interfaces));
  runtime->devices_ = std::make_unique<NetDevices>(runtime->ports_, merge_cards && settings.ib_merge_nics);
  for (std::size_t i = 0; i < runtime->ports_.size(); i++) {
    const devices::Port& port = runtime->ports_[i];
    runtime->log_(
        LogLevel::info,
        port.unusable
            ? text::format("device {}: {}:{} is not usable: {}", i, port.device, port.port, port.unusable->text())
            : text::format("device {}: {}:{} {} Mbit/s, {}, GPU memory: {}", i, port.device, port.port, port.speed_mbps,
                           devices::describe(port.gid), devices::describe_gpu_memory(port)));
  }
  return runtime;
}

// What makes listen and connect fail: a rank that can't work must say so, or it would leave the others waiting.
Result<void> Runtime::usable(int device) const {
  if (getpid() != process_) return Error{"used in a forked child", {}, 0, "NCCL must be initialised after fork()"};
  if (trouble_) return *trouble_;
  const NetDevice* found = devices_->find(device);
  if (!found) {
    return Error{
        text::format("device {} does not exist", device), {}, 0, text::format("devices: {}", devices_->count())};
  }
  for (const std::size_t port : found->ports)
    if (ports_[port].unusable) return *ports_[port].unusable;
  return {};
}

Result<int> Runtime::merge(const std::vector<int>& members) {
  if (members.size() > 1 && !settings_.ib_merge_nics)
    return Error{"devices stay separate", "makeVDevice", 0, "NCCL_IB_MERGE_NICS=0 asks for it"};
  return devices_->merge(ports_, members);
}

void Runtime::remark(LogLevel level, const std::string& line) {
  {
    std::lock_guard lock(mutex_);
    if (remarks_.size() >= kMostRemarks || !remarks_.insert(line).second) return;
  }
  log_(level, line);
}

Result<std::shared_ptr<Control>> Runtime::control() {
  std::lock_guard lock(mutex_);
  if (auto running = control_.lock()) return running;
  auto started = Control::start();
  if (started) control_ = *started;
  return started;
}

Result<std::shared_ptr<OpenDevice>> Runtime::open(std::size_t port, const std::shared_ptr<Control>& control) {
  std::lock_guard lock(mutex_);
  std::weak_ptr<OpenDevice>& known = open_[port];
  if (auto open = known.lock()) return open;
  auto opened = OpenDevice::open(*verbs_, ports_[port], watches_[port]);
  if (!opened) return opened;
  known = *opened;
  const auto warn = [this](const std::string& line) { log_(LogLevel::warn, line); };
  control->add(std::make_shared<AsynchronousEvents>(known, (*opened)->context()->async_fd, warn));
  // While no connection had it open nobody was told of changes.
  if (const auto line = (*opened)->refresh()) warn(*line);
  return opened;
}

Result<std::shared_ptr<const RegisteredMemory>> Runtime::register_user(const OpenDevice& device,
                                                                       const UserMemory& memory) const {
  auto region = device.register_user(memory, options_.relaxed_ordering);
  if (region || !memory.of_gpu) return region;
  Error error = region.take_error();
  const auto driver = find_driver_ ? find_driver_() : nullptr;
  const std::string gpu = driver ? driver->pci_address_of(reinterpret_cast<std::uint64_t>(memory.data)) : "";
  const std::string window = devices::describe(devices::gpu_windows(sysfs_), gpu);
  error.what = text::format("GPU registration of {} B failed after {} B{}: {}", memory.size,
                            device.registrations().gpu_bytes(), window.empty() ? "" : "; " + window, error.what);
  if (memory.dmabuf < 0) error.hint = register_hint(error.code, MemoryKind::peer_memory);
  return error;
}

// Distinct over all connections of a pair of NICs in this process, the same in every run with the same seed.
std::vector<std::uint16_t> Runtime::choose_ports(const Gid& own, const Gid& peer, std::size_t count) {
  std::uint64_t key = paths::hash_bytes(options_.seed, own.data(), own.size());
  key = paths::hash_bytes(key, peer.data(), peer.size());
  std::lock_guard lock(mutex_);
  return source_ports_.try_emplace(key, key).first->second.take(count);
}

std::shared_ptr<paths::PathBudget> Runtime::budget(const NetDevice& device) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<paths::PathBudget>& known = budgets_[device.ports.front()];
  if (!known) {
    known = std::make_shared<paths::PathBudget>(
        paths::BudgetLimits{options_.paths, options_.paths_per_peer, device.max_qp, options_.least_paths});
  }
  return known;
}

std::unique_ptr<AddressResolution> Runtime::resolve(const std::string& device, const Gid& from, const Gid& to,
                                                    TimePoint now) {
  if (!manager_ || from == to) return nullptr;
  {
    std::lock_guard lock(mutex_);
    const auto known = resolved_.find({from, to});
    if (known != resolved_.end() && now < known->second + kResolvedFor) return nullptr;
  }
  return AddressResolution::start(*manager_, {device, from, to, now + options_.connect_timeout / kResolvePart}, now);
}

Result<SessionSetup> Runtime::session_setup(int device, const std::shared_ptr<Control>& control) {
  const NetDevice& chosen = *devices_->find(device);
  SessionSetup setup;
  for (const std::size_t port : chosen.ports) {
    auto opened = open(port, control);
    if (!opened) return opened.take_error();
    if (const auto trouble = (*opened)->state().unusable) return *trouble;
    setup.device_name += (setup.device_name.empty() ? "" : "+") + (*opened)->name();
    setup.devices.push_back(opened.take());
  }
  setup.options = options_;
  setup.host = host_;
  setup.settings_digest = settings::job_wide_digest(settings_);
  setup.remark = [this](const std::string& line) { remark(LogLevel::warn, line); };
  setup.resolve = [this, of = chosen.ports](std::size_t index, const Gid& from, const Gid& to, TimePoint now) {
    return resolve(ports_[of[index]].device, from, to, now);
  };
  setup.resolved = [this](const Gid& from, const Gid& to) {
    std::lock_guard lock(mutex_);
    resolved_[{from, to}] = std::chrono::steady_clock::now();
  };
  setup.budget = budget(chosen);
  setup.choose_ports = [this](const Gid& own, const Gid& peer, std::size_t count) {
    return choose_ports(own, peer, count);
  };
  return setup;
}

Result<Runtime::Listening> Runtime::listen(int device, void* handle) {
  if (auto able = usable(device); !able) return able.take_error();
  auto thread = control();
  if (!thread) return thread.take_error();
  auto setup = session_setup(device, *thread);
  if (!setup) return setup.take_error();
  auto interface = devices::choose_interface(interfaces_(), {settings_.socket_ifname, settings_.socket_family});
  if (!interface) return interface.take_error();
  Handle out;
  out.address = interface->address;
  {
    std::lock_guard lock(mutex_);
    // Different in every process: a stray connection to a port that was reused is not taken for a peer.
    out.listener = paths::combine_key(std::uint64_t(process_) << 32 | ++next_listener_,
                                      std::uint64_t(std::chrono::system_clock::now().time_since_epoch().count()));
  }
  remark(LogLevel::info, text::format("handshakes go over {} ({})", interface->name, address_text(out.address)));
  auto socket = listen_socket(&out.address, settings_.port_range, out.listener);
  if (!socket) return socket.take_error();
  if (getrandom(out.secret.data(), out.secret.size(), GRND_NONBLOCK) != ssize_t(out.secret.size()))
    return system_error("getrandom failed", errno, "the listener's secret");
  out.devices = std::uint8_t(setup->devices.size());
  out.gid = setup->devices.front()->state().gid.bytes;
  setup->listener = out.listener;
  setup->secret = out.secret;
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
  // The peer waits for this connection; without a word it would wait until its deadline.
  const auto unable = [&](Error why) {
    if (peer && getpid() == process_)
      send_and_close(peer->address, encode_text(MessageType::refuse, why.text()), kLastWordMs);
    return why;
  };
  if (auto able = usable(device); !able) return unable(able.take_error());
  if (!peer) return peer.take_error();
  if (devices::has_scope(peer->address)) {
    peer->address =
        devices::with_own_scope(peer->address, interfaces_(), {settings_.socket_ifname, settings_.socket_family});
  }
  auto thread = control();
  if (!thread) return thread.take_error();
  auto setup = session_setup(device, *thread);
  if (!setup) return unable(setup.take_error());
  setup->listener = peer->listener;
  setup->secret = peer->secret;
  setup->peer_devices = peer->devices;
  setup->peer_gid = peer->gid;
  setup->options.traffic_class = traffic_class(settings_.ib_tc, communicator_traffic_class);
  auto session = Session::connect(setup.take(), *peer);
  (*thread)->add(session);
  return Connecting{thread.take(), std::move(session)};
}

}  // namespace weft::setup
