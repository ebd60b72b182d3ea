#include "tests/rig/rank/net_job.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "common/text/format.h"
#include "tests/rig/rank/net_connection.h"

namespace weft::rank {
namespace {

using Clock = std::chrono::steady_clock;

class NetJob {
 public:
  NetJob(const RankFile& file, Exchange& exchange, Deadline deadline, Report& report, versions::NetInterface& net)
      : file_(file), exchange_(exchange), deadline_(deadline), report_(report), net_(net) {}

  void run() {
    int devices = 0;
    if (net_.devices(&devices) != ncclSuccess || devices == 0)
      return fail(Error{"the transport has no devices", "devices", 0, {}});
    device_ = file_.device % devices;
    for (std::size_t i = 0; i < file_.operations.size() && report_.good(); i++)
      run_operation(file_.operations[i], i);
  }

 private:
  void fail(const Error& error) {
    report_.fail({"net", 0, "", error.text()});
    exchange_.fail(file_.rank);
  }

  // The ranks that this one sends to, and those that it receives from.
  std::vector<int> receivers(Kind kind) const {
    const int half = file_.ranks / 2;
    if (kind == Kind::net_incast) return file_.rank == 0 ? std::vector<int>{} : std::vector<int>{0};
    if (file_.rank < half) return {file_.rank + half};
    return kind == Kind::net_ping_pong && file_.rank < 2 * half ? std::vector<int>{file_.rank - half}
                                                                : std::vector<int>{};
  }
  std::vector<int> senders(Kind kind) const {
    std::vector<int> out;
    const int half = file_.ranks / 2;
    if (kind == Kind::net_incast) {
      for (int rank = 1; rank < file_.ranks && file_.rank == 0; rank++)
        out.push_back(rank);
      return out;
    }
    if (file_.rank >= half && file_.rank < 2 * half) return {file_.rank - half};
    return kind == Kind::net_ping_pong && file_.rank < half ? std::vector<int>{file_.rank + half} : out;
  }

  void run_operation(const Operation& operation, std::size_t number) {
    OperationReport outcome{operation, {}, 0, std::nullopt, {}};
    std::vector<std::unique_ptr<NetConnection>> sending, receiving;
    const auto add = [&](std::vector<std::unique_ptr<NetConnection>>& to, bool sends, int from, int at) {
      for (int i = 0; i < operation.connections; i++) {
        const std::string name = text::format("net.{}.{}.{}.{}", number, from, at, i);
        to.push_back(std::make_unique<NetConnection>(net_, NetEnd{sends, name, operation.bytes, operation.in_flight}));
      }
    };
    for (const int rank : receivers(operation.kind))
      add(sending, true, file_.rank, rank);
    for (const int rank : senders(operation.kind))
      add(receiving, false, rank, file_.rank);
    const auto begin = Clock::now();
    if (!connect(sending, receiving)) return;
    report_.set_init_seconds(std::chrono::duration<double>(Clock::now() - begin).count());
    for (int i = 0; i < operation.warmup + operation.iterations; i++) {
      double time_us = 0;
      const bool good = operation.kind == Kind::net_ping_pong ? ping_pong(operation, sending, receiving, time_us)
                                                              : stream(operation, sending, receiving, time_us);
      if (!good) return;
      for (const auto& connection : receiving) {
        const std::vector<double> times = connection->take_message_times();
        if (i >= operation.warmup) outcome.message_us.insert(outcome.message_us.end(), times.begin(), times.end());
      }
      if (i >= operation.warmup) outcome.time_us.push_back(time_us);
    }
    for (const auto& connection : receiving)
      outcome.wrong += connection->wrong();
    report_.add(std::move(outcome));
    // Nobody closes before all are done.
    meet();
  }

  using Connections = std::vector<std::unique_ptr<NetConnection>>;

  bool meet() {
    auto met = exchange_.barrier(deadline_);
    if (!met) fail(met.error());
    return met.ok();
  }

  bool in_time(const char* what) {
    if (auto state = exchange_.lost(); !state) {
      fail(state.error());
      return false;
    }
    if (Clock::now() < deadline_) return true;
    fail(Error{text::format("{} not finished in time", what), "time limit", 0, {}});
    return false;
  }

  bool connect(Connections& sending, Connections& receiving) {
    for (const auto& connection : receiving) {
      if (auto listening = connection->listen(device_, exchange_); !listening) return fail(listening.error()), false;
    }
    bool all = false;
    while (!all) {
      all = true;
      for (Connections* side : {&receiving, &sending}) {
        for (const auto& connection : *side) {
          if (connection->connected()) continue;
          if (auto step = connection->connect(device_, exchange_, deadline_); !step) return fail(step.error()), false;
          all = all && connection->connected();
        }
      }
      if (!in_time("connecting")) return false;
    }
    return meet();
  }

  bool work_off(Connections& first, Connections& second) {
    bool all = false;
    for (int looks = 0; !all; looks++) {
      all = true;
      for (Connections* side : {&second, &first}) {
        for (const auto& connection : *side) {
          if (connection->finished()) continue;
          if (auto step = connection->advance(); !step) return fail(step.error()), false;
          all = all && connection->finished();
        }
      }
      if (looks % 1024 == 1023 && !in_time("messages")) return false;
    }
    return true;
  }

  bool stream(const Operation& operation, Connections& sending, Connections& receiving, double& time_us) {
    if (!meet()) return false;
    const auto begin = Clock::now();
    for (Connections* side : {&receiving, &sending}) {
      for (const auto& connection : *side)
        connection->begin(operation.messages);
    }
    if (!work_off(sending, receiving)) return false;
    time_us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    return true;
  }

  // One way, on average over the messages of an iteration.
  bool ping_pong(const Operation& operation, Connections& sending, Connections& receiving, double& time_us) {
    const bool serves = file_.rank < file_.ranks / 2;
    if (!meet()) return false;
    const auto begin = Clock::now();
    for (int i = 0; i < operation.messages; i++) {
      const std::array<Connections*, 2> turns = {serves ? &sending : &receiving, serves ? &receiving : &sending};
      for (Connections* side : turns) {
        for (const auto& connection : *side)
          connection->begin(1);
        Connections none;
        if (!work_off(*side, none)) return false;
      }
    }
    time_us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / (2 * operation.messages);
    return true;
  }

  const RankFile& file_;
  Exchange& exchange_;
  Deadline deadline_;
  Report& report_;
  versions::NetInterface& net_;
  int device_ = 0;
};

}  // namespace

void run_net_job(const Libraries& libraries, const RankFile& file, Exchange& exchange, Deadline deadline,
                 Report& report) {
  int version = 0;
  libraries.ncclGetVersion(&version);
  report.set_version(version);
  auto transport = load_transport(version);
  if (!transport) {
    report.fail({"load transport", 0, "", transport.error().text()});
    exchange.fail(file.rank);
    return;
  }
  report.set_net(transport->name);
  NetJob(file, exchange, deadline, report, *transport->net).run();
  transport->net->finalize();
}

}  // namespace weft::rank
