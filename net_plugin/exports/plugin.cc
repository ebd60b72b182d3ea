#include "net_plugin/exports/plugin.h"

#include <memory>
#include <mutex>

#include "common/text/format.h"
#include "net_plugin/exports/boundary.h"
#include "net_plugin/exports/comm.h"
#include "net_plugin/exports/pending.h"
#include "net_plugin/verbs/connection_manager.h"
#include "net_plugin/verbs/verbs.h"
#include "net_plugin/version.h"

namespace weft::exports {

void ConnectedComm::adopt() {
  for (const transfer::LinkDevice& one : link().devices)
    devices.push_back(one.opened);
  if (engine.sender) engine.sender->owner = this;
  if (engine.receiver) engine.receiver->owner = this;
}

namespace {

using transfer::Progress;
using transfer::Registration;

// One for the life of the library: NCCL's older interfaces have no finalize. It holds no thread and no device by
// itself; those live as long as connections do.
std::mutex state_mutex;
std::unique_ptr<setup::Runtime> runtime;
PendingConnects pending_connects;
bool looked_for_devices = false;

setup::Runtime* find_runtime() {
  std::lock_guard lock(state_mutex);
  return runtime.get();
}

// Not on the hot path: a connection fails once.
ncclResult_t connection_failed(ConnectedComm& comm) {
  const transfer::Failure& failure = *comm.link().failure();
  const ncclResult_t code = failure.remote ? ncclRemoteError : ncclSystemError;
  if (comm.reported) return code;
  comm.reported = true;
  const std::string text = failure.error.text();
  comm.control->call(comm.session, [&] { comm.session->say_failed(text); });
  return report(failure.error, code);
}

ncclResult_t close(ConnectedComm* comm) {
  if (!comm) return ncclSuccess;
  comm->control->call(comm->session, [&] { comm->session->say_closing(); });
  comm->control->remove(comm->session);
  delete comm;
  return ncclSuccess;
}

ConnectedComm& sending(void* comm) {
  return *static_cast<ConnectedComm*>(static_cast<Comm*>(comm));
}

}  // namespace

namespace {

ncclResult_t init_once(ncclDebugLogger_t logger, bool merge_cards) {
  set_logger(logger);
  std::lock_guard lock(state_mutex);
  if (looked_for_devices) return ncclSuccess;
  looked_for_devices = true;
  settings::Loaded loaded = settings::load();
  for (const std::string& warning : loaded.warnings)
    log(setup::LogLevel::warn, warning);
  log(setup::LogLevel::info, text::format("version {}, {} settings given", kVersion, loaded.given.size()));
  for (const settings::Given& given : loaded.given)
    log(setup::LogLevel::info, given.text());
  for (const std::string& remark : loaded.remarks)
    log(setup::LogLevel::info, remark);
  if (loaded.settings.disable) {
    log(setup::LogLevel::info, "WEFT_DISABLE=1: no devices");
    return ncclSuccess;
  }
  for (const settings::Wrong& wrong : loaded.errors) {
    if (wrong.component == settings::Component::net) log(setup::LogLevel::warn, wrong.text());
  }
  auto verbs = verbs::load();
  // Without it the queue pairs resolve addresses themselves.
  auto manager = verbs::load_connection_manager();
  runtime = setup::Runtime::create(
      std::move(verbs), loaded.settings, loaded.error_of(settings::Component::net), merge_cards, log,
      {loaded.settings.sysfs_root + "/sys", manager ? manager.take() : nullptr, devices::cuda_driver_in_use});
  return ncclSuccess;
}

}  // namespace

ncclResult_t init(ncclDebugLogger_t logger) {
  return init_once(logger, false);
}

ncclResult_t init_merging_cards(ncclDebugLogger_t logger) {
  return init_once(logger, true);
}

ncclResult_t merge_devices(const int* members, int count, int* device) {
  setup::Runtime* here = find_runtime();
  if (!here || count < 0) return report(Error{"no devices to merge", "makeVDevice", 0, {}}, ncclInvalidUsage);
  auto merged = here->merge({members, members + count});
  // NCCL then keeps the devices separate, which is no error for the job.
  if (!merged) {
    log(setup::LogLevel::info, merged.error().text());
    return ncclInvalidUsage;
  }
  *device = *merged;
  return ncclSuccess;
}

// Nothing else to undo: devices are closed and the control thread has ended with the last connection.
ncclResult_t finalize(const void* context) {
  pending_connects.drop_of(context);
  return ncclSuccess;
}

ncclResult_t devices(int* count) {
  const setup::Runtime* here = find_runtime();
  *count = here ? int(here->devices().count()) : 0;
  return ncclSuccess;
}

ncclResult_t properties(int device, DeviceProperties* out) {
  const setup::Runtime* here = find_runtime();
  const setup::NetDevice* found = here ? here->devices().find(device) : nullptr;
  if (!found) {
    return report(Error{text::format("no device {}", device), "getProperties", 0, {}}, ncclInvalidArgument);
  }
  const setup::NetDevice& port = *found;
  // NCCL's structure has pointers to non-const characters and never writes to them.
  out->name = const_cast<char*>(port.name.c_str());
  out->pci_path = port.pci_path.empty() ? nullptr : const_cast<char*>(port.pci_path.c_str());
  out->guid = port.guid;
  out->pointer_support = NCCL_PTR_HOST | (port.peer_memory ? NCCL_PTR_CUDA : 0) | (port.dmabuf ? NCCL_PTR_DMABUF : 0);
  for (const std::size_t member : port.ports)
    out->members.push_back(port.ports.size() == 1 ? device : int(member));
  out->speed_mbps = port.speed_mbps;
  out->port = port.identity;
  out->max_connections = port.max_qp;
  return ncclSuccess;
}

ncclResult_t listen(int device, void* handle, void** listen_comm) {
  *listen_comm = nullptr;
  setup::Runtime* here = find_runtime();
  if (!here) return report(Error{"listen without a device", {}, 0, {}}, ncclInvalidUsage);
  auto listening = here->listen(device, handle);
  auto comm = std::make_unique<ListenComm>();
  if (!listening) {
    // An error from here would end this rank only: NCCL's other ranks wait without a limit for its handle. One that
    // refuses ends theirs in connect and ours in accept.
    report(listening.error(), ncclSystemError);
    setup::encode_refusing_handle(listening.error().text(), handle);
    comm->trouble = listening.take_error();
    *listen_comm = static_cast<Comm*>(comm.release());
    return ncclSuccess;
  }
  comm->control = std::move(listening->control);
  comm->listener = std::move(listening->listener);
  *listen_comm = static_cast<Comm*>(comm.release());
  return ncclSuccess;
}

ncclResult_t connect(const void* context, int device, int traffic_class, void* handle, void** send_comm) {
  *send_comm = nullptr;
  const auto now = std::chrono::steady_clock::now();
  std::uint64_t number = pending_number(handle);
  if (number == 0) {
    pending_connects.drop_forgotten(now);
    setup::Runtime* here = find_runtime();
    if (!here) return report(Error{"connect without a device", {}, 0, {}}, ncclInvalidUsage);
    auto connecting = here->connect(device, handle, traffic_class);
    if (!connecting) return report(connecting.error(), ncclSystemError);
    auto comm = std::make_unique<ConnectedComm>(Comm::Kind::send);
    comm->control = std::move(connecting->control);
    comm->session = std::move(connecting->session);
    number = pending_connects.add(std::move(comm), context, now);
    set_pending_number(handle, number);
  }
  ConnectedComm* waiting = pending_connects.find(number, now);
  if (!waiting) {
    set_pending_number(handle, 0);
    return report(Error{"this attempt to connect was given up: nobody asked for it any more", {}, 0, {}},
                  ncclSystemError);
  }
  auto outcome = waiting->session->poll();
  if (!outcome) return ncclSuccess;
  set_pending_number(handle, 0);
  std::unique_ptr<ConnectedComm> comm = pending_connects.take(number);
  if (!*outcome) {
    comm->control->remove(comm->session);
    return report(outcome->error(), ncclRemoteError);
  }
  comm->engine = outcome->take();
  comm->adopt();
  *send_comm = static_cast<Comm*>(comm.release());
  return ncclSuccess;
}

ncclResult_t accept(void* listen_comm, void** receive_comm) {
  *receive_comm = nullptr;
  auto& listening = *static_cast<ListenComm*>(static_cast<Comm*>(listen_comm));
  if (listening.trouble) return report(*listening.trouble, ncclSystemError);
  const auto now = std::chrono::steady_clock::now();
  const auto sessions = listening.listener->sessions();
  for (const auto& session : sessions) {
    auto outcome = session->poll();
    if (!outcome) continue;
    if (!*outcome && !session->was_for_this_listener()) {
      // A port scanner, or a job that got this port after ours: not our peer, who may still come.
      log(setup::LogLevel::info, "a stranger at the listener: " + outcome->error().text());
      listening.listener->forget(session);
      continue;
    }
    if (!*outcome) return report(outcome->error(), ncclRemoteError);
    auto comm = std::make_unique<ConnectedComm>(Comm::Kind::receive);
    comm->control = listening.control;
    comm->session = session;
    comm->engine = outcome->take();
    comm->adopt();
    *receive_comm = static_cast<Comm*>(comm.release());
    return ncclSuccess;
  }
  if (listening.give_up == setup::TimePoint{}) {
    // The peer may come late: it connects when it has finished with its other peers. Hence more than one handshake's
    // time.
    listening.give_up = now + 3 * listening.listener->setup().options.connect_timeout;
  }
  if (now < listening.give_up || !listening.listener->sessions().empty()) return ncclSuccess;
  return report(Error{"no peer has connected in time", listening.listener->setup().device_name, ETIMEDOUT,
                      "the peer's log says why; WEFT_CONNECT_TIMEOUT_MS sets the time"},
                ncclRemoteError);
}

ncclResult_t close_send(void* comm) {
  return close(comm ? &sending(comm) : nullptr);
}
ncclResult_t close_receive(void* comm) {
  return close(comm ? &sending(comm) : nullptr);
}

ncclResult_t close_listen(void* listen_comm) {
  if (!listen_comm) return ncclSuccess;
  const std::unique_ptr<ListenComm> comm(static_cast<ListenComm*>(static_cast<Comm*>(listen_comm)));
  if (!comm->listener) return ncclSuccess;
  comm->control->remove(comm->listener);
  for (const auto& session : comm->listener->sessions()) {
    // A session that accept() has handed out lives on with its connection.
    if (!session->finished()) comm->control->remove(session);
  }
  return ncclSuccess;
}

namespace {

ncclResult_t register_with_all(ConnectedComm& comm, const setup::UserMemory& buffer, void** memory) {
  *memory = nullptr;
  const setup::Runtime* here = find_runtime();
  auto registration = std::make_unique<Registration>();
  registration->device_memory = buffer.of_gpu;
  for (const auto& device : comm.devices) {
    auto region = here->register_user(*device, buffer);
    if (!region) return report(region.error(), ncclSystemError);
    registration->add(region.take());
  }
  *memory = registration.release();
  return ncclSuccess;
}

}  // namespace

ncclResult_t register_memory(void* comm, void* data, std::size_t size, int type, void** memory) {
  return register_with_all(sending(comm), {data, size, 0, -1, type == NCCL_PTR_CUDA}, memory);
}

ncclResult_t register_dmabuf(void* comm, void* data, std::size_t size, int type, std::uint64_t offset, int fd,
                             void** memory) {
  return register_with_all(sending(comm), {data, size, offset, fd, type == NCCL_PTR_CUDA}, memory);
}

ncclResult_t deregister_memory(void*, void* memory) {
  delete static_cast<Registration*>(memory);
  return ncclSuccess;
}

ncclResult_t send(void* send_comm, void* data, std::size_t size, int tag, void* memory, void** request) {
  ConnectedComm& comm = sending(send_comm);
  transfer::Request* started = nullptr;
  const Progress progress = comm.engine.sender->send(data, size, tag, *static_cast<Registration*>(memory), &started);
  *request = started;
  return progress == Progress::failed ? connection_failed(comm) : ncclSuccess;
}

template <class Size>
ncclResult_t receive(void* receive_comm, int count, void** data, const Size* sizes, const int* tags, void** memory,
                     void** request) {
  *request = nullptr;
  ConnectedComm& comm = sending(receive_comm);
  if (count < 1 || count > kMaxReceives) {
    return report(Error{text::format("{} receives at once", count), "irecv", 0, "allowed: 1 to 8"},
                  ncclInvalidArgument);
  }
  transfer::Receive receives[kMaxReceives];
  for (int i = 0; i < count; i++) {
    receives[i] = {data[i], std::size_t(sizes[i]), tags[i], static_cast<Registration*>(memory[i])};
  }
  transfer::Request* started = nullptr;
  const Progress progress = comm.engine.receiver->receive(receives, count, &started);
  *request = started;
  return progress == Progress::failed ? connection_failed(comm) : ncclSuccess;
}

template ncclResult_t receive<int>(void*, int, void**, const int*, const int*, void**, void**);
template ncclResult_t receive<std::size_t>(void*, int, void**, const std::size_t*, const int*, void**, void**);

ncclResult_t flush(void* receive_comm, int count, void** data, const int* sizes, void** memory, void** request) {
  *request = nullptr;
  ConnectedComm& comm = sending(receive_comm);
  if (count < 1 || count > kMaxReceives) {
    return report(Error{text::format("{} buffers at once", count), "iflush", 0, "allowed: 1 to 8"},
                  ncclInvalidArgument);
  }
  transfer::Receive receives[kMaxReceives];
  for (int i = 0; i < count; i++) {
    receives[i] = {data[i], std::size_t(sizes[i]), 0, static_cast<Registration*>(memory[i])};
  }
  transfer::Request* started = nullptr;
  const Progress progress = comm.engine.receiver->flush(receives, count, &started);
  *request = started;
  return progress == Progress::failed ? connection_failed(comm) : ncclSuccess;
}

ncclResult_t test(void* opaque, int* done, int* sizes) {
  auto& request = *static_cast<transfer::Request*>(opaque);
  *done = 0;
  const bool is_send = request.kind == transfer::RequestKind::send;
  const Progress progress = is_send ? request.sender->test(request, sizes) : request.receiver->test(request, sizes);
  if (progress == Progress::done) *done = 1;
  if (progress != Progress::failed) return ncclSuccess;
  return connection_failed(*static_cast<ConnectedComm*>(is_send ? request.sender->owner : request.receiver->owner));
}

}  // namespace weft::exports
