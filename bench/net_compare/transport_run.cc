#include "bench/net_compare/transport_run.h"

#include <dlfcn.h>

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "bench/net_compare/step_counter.h"
#include "common/nccl_abi/net_v11.h"
#include "common/text/format.h"

namespace weft::net_compare {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTag = 3, kWarmUp = 50;
constexpr std::chrono::seconds kPatience{60};

void log_warnings(ncclDebugLogLevel level, unsigned long, const char*, int, const char* form, ...) {
  if (level != NCCL_LOG_WARN) return;
  va_list arguments;
  va_start(arguments, form);
  std::vfprintf(stderr, form, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
}

ncclResult_t no_profiler(void**, int, void*, std::int64_t, void*) {
  return ncclSuccess;
}

Error failed(const char* call, int code) {
  return Error{text::format("{} failed with {}", call, code), "net_compare", 0, {}};
}

struct Loaded {
  const ncclNet_v11_t* net = nullptr;
  void (*hold)(bool) = nullptr;
};

Result<Loaded> load(const std::string& transport) {
  const bool weft = transport == "Weft";
  const char* file = weft ? "libnccl-net-weft.so" : "libnccl.so.2";
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) return Error{text::format("cannot open: {}", dlerror()), file, 0, {}};
  Loaded loaded;
  if (weft) {
    loaded.net = static_cast<const ncclNet_v11_t*>(dlsym(library, "ncclNetPlugin_v11"));
  } else if (auto find = reinterpret_cast<const void* (*)(const char*)>(dlsym(library, "rig_nccl_transport"))) {
    loaded.net = static_cast<const ncclNet_v11_t*>(find(transport.c_str()));
  }
  if (!loaded.net) return Error{"has no such transport", file, 0, {}};
  return loaded;
}

// Both ends of one connection.
struct Connection {
  void* send = nullptr;
  void* receive = nullptr;
};

class Run {
 public:
  explicit Run(const Loaded& loaded) : net_(*loaded.net) {}

  Result<void> init() {
    ncclNetCommConfig_v11_t config{};
    config.trafficClass = -1;
    if (const int code = net_.init(&context_, 1, &config, log_warnings, no_profiler)) return failed("init", code);
    int devices = 0;
    if (net_.devices(&devices) != ncclSuccess || devices < 1)
      return Error{"the transport finds no NIC", "net_compare", 0, {}};
    void* verbs = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
    queue_pairs_ = verbs ? reinterpret_cast<std::size_t (*)()>(dlsym(verbs, "null_verbs_queue_pairs")) : nullptr;
    hold_ = verbs ? reinterpret_cast<void (*)(bool)>(dlsym(verbs, "null_verbs_hold")) : nullptr;
    if (!hold_ || !queue_pairs_) return Error{"the transport runs over another libibverbs", "net_compare", 0, {}};
    return {};
  }

  Result<Connection> connect() {
    char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
    void* listening = nullptr;
    if (const int code = net_.listen(context_, 0, handle, &listening)) return failed("listen", code);
    Connection made;
    const auto limit = Clock::now() + kPatience;
    while (!made.send || !made.receive) {
      if (Clock::now() > limit) return Error{"no connection in time", "net_compare", 0, {}};
      ncclNetDeviceHandle_t* none = nullptr;
      if (!made.send) {
        if (const int code = net_.connect(context_, 0, handle, &made.send, &none)) return failed("connect", code);
      }
      if (!made.receive) {
        if (const int code = net_.accept(listening, &made.receive, &none)) return failed("accept", code);
      }
    }
    net_.closeListen(listening);
    return made;
  }

  // One message's worth of memory at both ends of the connection that messages go over.
  Result<void> prepare(const Connection& connection, std::size_t bytes) {
    connection_ = connection;
    from_.assign(bytes, 7);
    to_.assign(bytes, 0);
    if (const int code = net_.regMr(connection_.send, from_.data(), bytes, NCCL_PTR_HOST, &from_memory_))
      return failed("regMr", code);
    if (const int code = net_.regMr(connection_.receive, to_.data(), bytes, NCCL_PTR_HOST, &to_memory_))
      return failed("regMr", code);
    return {};
  }

  bool message() {
    void *sending = nullptr, *receiving = nullptr;
    hold_(true);
    bool good = post(&sending, &receiving);
    int done = 0, size = 0;
    good = good && net_.test(sending, &done, &size) == ncclSuccess && net_.test(receiving, &done, &size) == ncclSuccess;
    hold_(false);
    return good && finish(sending, receiving);
  }

  // `times` pairs of tests of a message that does not move.
  bool wait_in_vain(int times) {
    void *sending = nullptr, *receiving = nullptr;
    hold_(true);
    bool good = post(&sending, &receiving);
    begin_counting();
    for (int i = 0; good && i < times; i++) {
      int done = 0, size = 0;
      good = net_.test(sending, &done, &size) == ncclSuccess && !done &&
             net_.test(receiving, &done, &size) == ncclSuccess && !done;
    }
    end_counting();
    hold_(false);
    return good && finish(sending, receiving);
  }

  bool arrived() const { return from_ == to_; }
  std::size_t queue_pairs() const { return queue_pairs_(); }

 private:
  bool post(void** sending, void** receiving) {
    void* data = to_.data();
    std::size_t bytes = to_.size();
    int tag = kTag;
    void* none = nullptr;
    while (!*receiving)
      if (net_.irecv(connection_.receive, 1, &data, &bytes, &tag, &to_memory_, &none, receiving) != ncclSuccess)
        return false;
    while (!*sending)
      if (net_.isend(connection_.send, from_.data(), from_.size(), kTag, from_memory_, nullptr, sending) != ncclSuccess)
        return false;
    return true;
  }

  bool finish(void* sending, void* receiving) {
    int sent = 0, received = 0, size = 0;
    while (!sent || !received) {
      if (!sent && net_.test(sending, &sent, &size) != ncclSuccess) return false;
      if (!received && net_.test(receiving, &received, &size) != ncclSuccess) return false;
    }
    return size == int(to_.size());
  }

  const ncclNet_v11_t& net_;
  void* context_ = nullptr;
  void (*hold_)(bool) = nullptr;
  std::size_t (*queue_pairs_)() = nullptr;
  Connection connection_;
  std::vector<std::uint8_t> from_, to_;
  void *from_memory_ = nullptr, *to_memory_ = nullptr;
};

Result<nlohmann::json> count_messages(Run& run, const RunOptions& options) {
  auto connection = run.connect();
  if (!connection) return connection.take_error();
  if (auto prepared = run.prepare(*connection, options.bytes); !prepared) return prepared.take_error();
  bool good = true;
  for (int i = 0; i < kWarmUp; i++)
    good = good && run.message();
  begin_counting();
  end_counting();
  begin_counting();
  for (int i = 0; i < options.messages; i++)
    good = good && run.message();
  end_counting();
  good = run.wait_in_vain(options.messages) && good;
  if (!good || !run.arrived()) return Error{"a message did not arrive as it was sent", "net_compare", 0, {}};
  return nlohmann::json{{"messages", options.messages}};
}

double resident_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::stod(line.substr(6));
  }
  return 0;
}

Result<nlohmann::json> set_up_connections(Run& run, const RunOptions& options) {
  // The first one brings up what all share.
  if (auto first = run.connect(); !first) return first.take_error();
  const double before = resident_kilobytes();
  const std::size_t queue_pairs_before = run.queue_pairs();
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  std::vector<Connection> connections;
  for (int i = 0; i < options.connections; i++) {
    auto one = run.connect();
    if (!one) return one.take_error();
    connections.push_back(*one);
  }
  nlohmann::json result = {{"seconds", seconds()},
                           {"kilobytes_each", (resident_kilobytes() - before) / options.connections}};
  if (!options.first_bytes) return result;
  for (const Connection& connection : connections) {
    if (auto prepared = run.prepare(connection, 1); !prepared) return prepared.take_error();
    if (!run.message() || !run.arrived()) return Error{"a first byte did not arrive", "net_compare", 0, {}};
  }
  result["first_bytes_seconds"] = seconds();
  result["queue_pairs"] = run.queue_pairs() - queue_pairs_before;
  return result;
}

}  // namespace

Result<nlohmann::json> run_transport(const RunOptions& options) {
  auto loaded = load(options.transport);
  if (!loaded) return loaded.take_error();
  Run run(*loaded);
  if (auto begun = run.init(); !begun) return begun.take_error();
  return options.connections > 0 ? set_up_connections(run, options) : count_messages(run, options);
}

}  // namespace weft::net_compare
