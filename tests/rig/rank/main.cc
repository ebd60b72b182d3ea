// One rank of a job on the rig: rank RANK_FILE. Exit codes: 0 every element right, 1 wrong elements or an error of
// NCCL, 2 a wrong rank file.
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include "tests/rig/rank/job.h"
#include "tests/rig/rank/net_job.h"

namespace weft::rank {
namespace {

// Ends the process when the time limit has passed: a rank inside a call of NCCL that never returns can't end itself
// otherwise.
class Watchdog {
 public:
  Watchdog(Deadline deadline, Report& report) : thread_([this, deadline, &report] { watch(deadline, report); }) {}
  ~Watchdog() {
    {
      std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

 private:
  void watch(Deadline deadline, Report& report) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_until(lock, deadline, [this] { return done_; })) return;
    report.fail({"time limit", 0, "", "the rank did not finish in time"});
    if (auto written = report.write(); !written) std::fprintf(stderr, "rank: %s\n", written.error().text().c_str());
    _exit(1);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

int complain(const Error& error, int code) {
  std::fprintf(stderr, "rank: %s\n", error.text().c_str());
  return code;
}

int run(const char* path) {
  const Deadline started = std::chrono::steady_clock::now();
  auto file = read_rank_file(path);
  if (!file) return complain(file.error(), 2);
  const Deadline deadline = started + std::chrono::seconds(file->time_limit_s);
  auto exchange = Exchange::open(file->exchange, file->ranks);
  if (!exchange) return complain(exchange.error(), 2);
  Report report(*file, started);
  auto libraries = Libraries::load();
  if (libraries) {
    // Naps between looks at the stream still leave a margin before the watchdog.
    Watchdog watchdog(deadline + std::chrono::seconds(1), report);
    const bool direct = !file->operations.empty() && is_net(file->operations.front().kind);
    (direct ? run_net_job : run_job)(*libraries, *file, *exchange, deadline, report);
  } else {
    report.fail({"load", 0, "", libraries.error().text()});
    exchange->fail(file->rank);
  }
  if (auto written = report.write(); !written) return complain(written.error(), 1);
  return report.good() ? 0 : 1;
}

}  // namespace
}  // namespace weft::rank

int main(int count, char** arguments) {
  // NCCL's log goes to a file: a rank that is killed keeps what it has said.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (count != 2) {
    std::fprintf(stderr, "Usage: rank RANK_FILE (form: tests/rig/rank/README.md)\n");
    return 2;
  }
  return weft::rank::run(arguments[1]);
}
