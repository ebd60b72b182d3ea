// soft_rnic_ceiling: how fast the software NIC is at most. Two processes on this machine's loopback, no shaping, no
// rig: bandwidth of 1 MiB writes over one queue pair and the round trip of 8-byte writes, for several path MTUs. Needs
// no privilege. Exit codes: 0 measured, 1 a transfer failed, 2 wrong usage, 3 no NIC could be set up.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/command_line/command_line.h"
#include "tests/rig/soft_rnic/tools/goodput.h"

namespace weft::soft_rnic {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPeerLimit{10000};
constexpr std::uint32_t kMessage = 1 << 20;
constexpr std::size_t kRoundTrips = 2000;
constexpr std::size_t kFlag = 8 << 20;  // where the 8-byte writes go

// Addresses of the loopback network that no other run of this program uses at the same time.
std::string loopback_address(int host) {
  const auto process = static_cast<unsigned>(getppid() ^ getpid()) % 250;
  return "127." + std::to_string(process + 1) + ".17." + std::to_string(host);
}

std::string host_file(const std::string& folder, int host, int mtu, const std::string& address) {
  const nlohmann::json nic = {{"name", "mlx5_0"},
                              {"netdev", "lo"},
                              {"address", address},
                              {"guid", "0x000000000000000" + std::to_string(host)},
                              {"mtu", mtu},
                              {"gids", {{{"gid", "::ffff:" + address}}}},
                              {"window_bytes", 1 << 20}};
  const std::string path = folder + "/host" + std::to_string(host) + ".json";
  std::ofstream(path) << nlohmann::json{{"host", "host" + std::to_string(host)}, {"nics", {nic}}}.dump();
  return path;
}

int fail(int code, const Error& error) {
  std::fprintf(stderr, "soft_rnic_ceiling: %s\n", error.text().c_str());
  return code;
}

Result<Endpoint> connect(const std::string& folder, const std::string& name, const std::string& peer_name) {
  EndpointOptions options;
  options.gid_index = 0;
  options.memory_bytes = kFlag + 64;
  auto endpoint = Endpoint::open(options);
  if (!endpoint) return endpoint.take_error();
  auto peer = exchange(folder, name, peer_name, endpoint->address(), kPeerLimit);
  if (!peer) return peer.take_error();
  if (auto connected = endpoint->connect(*peer); !connected) return connected.take_error();
  if (auto said = announce(folder, name + ".ready"); !said) return said.take_error();
  if (auto heard = await(folder, peer_name + ".ready", kPeerLimit); !heard) return heard.take_error();
  return endpoint;
}

// Each end waits for the other's number to appear in its memory, then writes its own. Returns microseconds, one a
// round.
Result<std::vector<double>> round_trips(Endpoint& endpoint, bool first) {
  auto* flag = reinterpret_cast<std::uint64_t*>(endpoint.memory() + kFlag);
  std::vector<double> times;
  for (std::uint64_t round = 1; round <= kRoundTrips; ++round) {
    const auto begin = Clock::now();
    for (int turn = 0; turn < 2; ++turn) {
      if ((turn == 0) == first) {
        __atomic_store_n(flag + 1, round, __ATOMIC_RELEASE);
        ibv_send_wr request{};
        request.opcode = IBV_WR_RDMA_WRITE;
        request.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
        request.wr.rdma.remote_addr = endpoint.peer().memory + kFlag;
        request.wr.rdma.rkey = endpoint.peer().key;
        if (auto posted = endpoint.post(0, request, kFlag + 8, 8); !posted) return posted.take_error();
      } else {
        ibv_wc completion{};
        while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) < round) {
          if (ibv_poll_cq(endpoint.completions(), 1, &completion) < 0 || completion.status != IBV_WC_SUCCESS) {
            return Error{"a write failed", {}, EIO, {}};
          }
          if (Clock::now() - begin > kPeerLimit) return Error{"the peer is silent", {}, ETIMEDOUT, {}};
        }
      }
    }
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  return times;
}

int serve(const std::string& folder) {
  auto endpoint = connect(folder, "server", "client");
  if (!endpoint) return fail(3, endpoint.error());
  auto times = round_trips(*endpoint, false);
  if (!times) return fail(1, times.error());
  auto done = await(folder, "done", std::chrono::milliseconds(60000));
  return done ? 0 : fail(1, done.error());
}

int measure(const std::string& folder, int mtu, double seconds) {
  auto endpoint = connect(folder, "client", "server");
  if (!endpoint) return fail(3, endpoint.error());
  auto times = round_trips(*endpoint, true);
  if (!times) return fail(1, times.error());
  std::sort(times->begin(), times->end());
  GoodputPlan plan;
  plan.message_bytes = kMessage;
  plan.duration = std::chrono::milliseconds(static_cast<int>(seconds * 1000));
  auto mbps = measure_goodput_mbps(*endpoint, plan);
  if (!mbps) return fail(1, mbps.error());
  std::printf("%6d  %8.2f  %10.1f  %10.1f\n", mtu, *mbps / 8000, (*times)[times->size() / 2] / 2,
              (*times)[times->size() * 95 / 100] / 2);
  std::fflush(stdout);
  return announce(folder, "done") ? 0 : 1;
}

// One MTU in two fresh processes: the host file is read once per process.
int run_pair(int mtu, double seconds) {
  const std::string folder = std::filesystem::temp_directory_path() / ("soft_rnic_ceiling." + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string server_file = host_file(folder, 1, mtu, loopback_address(1));
  const std::string client_file = host_file(folder, 2, mtu, loopback_address(2));
  int code = 0;
  pid_t children[2];
  for (int index = 0; index < 2; ++index) {
    children[index] = fork();
    if (children[index] != 0) continue;
    setenv("RIG_HOST_FILE", (index == 0 ? server_file : client_file).c_str(), 1);
    std::exit(index == 0 ? serve(folder) : measure(folder, mtu, seconds));
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    code = std::max(code, WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  std::filesystem::remove_all(folder);
  return code;
}

}  // namespace
}  // namespace weft::soft_rnic

int main(int count, char** arguments) {
  std::vector<int> mtus = {1024, 4096};
  double seconds = 1;
  CLI::App app("Ceiling of the software NIC on this machine's loopback.");
  app.add_option("--mtu", mtus, "path MTUs to measure")
      ->delimiter(',')
      ->check(CLI::IsMember({256, 512, 1024, 2048, 4096}));
  app.add_option("--seconds", seconds, "length of a bandwidth measurement")->check(CLI::Range(0.1, 60.0));
  if (const auto code = weft::command_line::parse(app, count, arguments, 2)) return *code;
  std::puts("on the emulated NIC, two processes on the loopback of this machine, one queue pair");
  std::puts("   MTU      GB/s   us median      us p95   (writes of 1 MiB; one way of 8-byte writes)");
  std::fflush(stdout);
  for (const int mtu : mtus) {
    if (const int code = weft::soft_rnic::run_pair(mtu, seconds)) return code;
  }
  return 0;
}
