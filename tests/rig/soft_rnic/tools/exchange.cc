// soft_rnic_exchange server|client --exchange FOLDER: the smallest useful verbs program, and an example to start from.
// The client carries out every operation that the NIC knows, in several sizes and again and again, and checks every
// byte. Exit codes: 0 all right, 1 a wrong byte or a failed operation, 2 wrong usage, 3 no device or no peer.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>

#include "common/command_line/command_line.h"
#include "tests/rig/soft_rnic/tools/endpoint.h"

namespace weft::soft_rnic {
namespace {

constexpr std::chrono::milliseconds kLimit{20000};
constexpr std::uint32_t kSizes[] = {0, 1, 4095, 4096, 4097, 100'000};
constexpr std::size_t kResult = 512 * 1024;  // where READs and atomics put what they fetch
constexpr std::size_t kCounter = 768 * 1024;

struct Options {
  std::string role;
  std::string folder;
  EndpointOptions endpoint;
  std::uint64_t rounds = 1;
};

int fail(int code, const Error& error) {
  std::fprintf(stderr, "soft_rnic_exchange: %s\n", error.text().c_str());
  return code;
}

std::uint8_t pattern(std::uint64_t round, std::uint32_t size, std::size_t index) {
  return static_cast<std::uint8_t>(round * 31 + size + index * 7 + index / 251);
}

class Client {
 public:
  explicit Client(Endpoint& endpoint) : endpoint_(&endpoint) {}

  Result<void> run(std::uint64_t rounds) {
    for (std::uint64_t round = 0; round < rounds; ++round) {
      for (const std::uint32_t size : kSizes) {
        if (auto done = there_and_back(round, size); !done) return done;
      }
      if (auto done = count(round); !done) return done;
    }
    return {};
  }

 private:
  ibv_send_wr request(ibv_wr_opcode opcode) const {
    ibv_send_wr result{};
    result.opcode = opcode;
    result.send_flags = IBV_SEND_SIGNALED;
    result.wr.rdma.remote_addr = endpoint_->peer().memory;
    result.wr.rdma.rkey = endpoint_->peer().key;
    return result;
  }

  Result<void> carry_out(const ibv_send_wr& work, std::size_t offset, std::uint32_t size) {
    if (auto posted = endpoint_->post(0, work, offset, size); !posted) return posted;
    auto completion = endpoint_->wait(kLimit);
    if (!completion) return completion.take_error();
    if (completion->status != IBV_WC_SUCCESS) {
      return Error{std::string("an operation failed: ") + ibv_wc_status_str(completion->status), {}, EIO, {}};
    }
    return {};
  }

  // WRITE, WRITE with immediate and SEND a pattern to the peer, READ it back each time.
  Result<void> there_and_back(std::uint64_t round, std::uint32_t size) {
    for (const ibv_wr_opcode opcode :
         {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM}) {
      std::uint8_t* memory = endpoint_->memory();
      for (std::size_t index = 0; index < size; ++index) {
        memory[index] = pattern(round + static_cast<std::uint64_t>(opcode), size, index);
      }
      if (auto sent = carry_out(request(opcode), 0, size); !sent) return sent;
      std::memset(memory + kResult, 0, size);
      if (auto read = carry_out(request(IBV_WR_RDMA_READ), kResult, size); !read) return read;
      if (std::memcmp(memory, memory + kResult, size) != 0) {
        return Error{"wrong bytes came back", "size " + std::to_string(size), EIO, {}};
      }
    }
    return {};
  }

  Result<void> count(std::uint64_t round) {
    ibv_send_wr add = request(IBV_WR_ATOMIC_FETCH_AND_ADD);
    add.wr.atomic.remote_addr = endpoint_->peer().memory + kCounter;
    add.wr.atomic.rkey = endpoint_->peer().key;
    add.wr.atomic.compare_add = 1;
    if (auto done = carry_out(add, kResult, sizeof(std::uint64_t)); !done) return done;
    std::uint64_t before = 0;
    std::memcpy(&before, endpoint_->memory() + kResult, sizeof before);
    if (before == round) return {};
    return Error{"the counter was " + std::to_string(before), "round " + std::to_string(round), EIO, {}};
  }

  Endpoint* endpoint_;
};

// Keeps receives posted until the client is done; the NIC does the rest.
Result<void> serve(Endpoint& endpoint, const std::string& folder) {
  for (std::uint64_t id = 0; id < 256; ++id) {
    if (auto posted = endpoint.post_receive(0, id, 0, kResult); !posted) return posted;
  }
  if (auto said = announce(folder, "exchange.posted"); !said) return said;
  for (;;) {
    auto completion = endpoint.wait(std::chrono::milliseconds(100));
    if (completion) {
      if (completion->status != IBV_WC_SUCCESS) {
        return Error{std::string("a receive failed: ") + ibv_wc_status_str(completion->status), {}, EIO, {}};
      }
      if (auto posted = endpoint.post_receive(0, completion->wr_id, 0, kResult); !posted) return posted;
    } else if (await(folder, "exchange.done", std::chrono::milliseconds(1))) {
      return {};
    }
  }
}

int run(const Options& options) {
  const bool client = options.role == "client";
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return fail(3, endpoint.error());
  auto peer = exchange(options.folder, "exchange." + options.role, client ? "exchange.server" : "exchange.client",
                       endpoint->address(), kLimit);
  if (!peer) return fail(3, peer.error());
  if (auto connected = endpoint->connect(*peer); !connected) return fail(3, connected.error());
  if (!client) {
    auto served = serve(*endpoint, options.folder);
    return served ? 0 : fail(1, served.error());
  }
  if (auto posted = await(options.folder, "exchange.posted", kLimit); !posted) return fail(3, posted.error());
  auto done = Client(*endpoint).run(options.rounds);
  if (auto said = announce(options.folder, "exchange.done"); !said) return fail(3, said.error());
  if (!done) return fail(1, done.error());
  std::puts("every byte right");
  return 0;
}

}  // namespace
}  // namespace weft::soft_rnic

int main(int count, char** arguments) {
  weft::soft_rnic::Options options;
  int timeout = options.endpoint.timeout;
  int traffic_class = 0;
  CLI::App app("Every operation of the software NIC, with every byte checked.");
  app.add_option("role", options.role, "which end this is")->required()->check(CLI::IsMember({"server", "client"}));
  app.add_option("--exchange", options.folder, "folder that both ends see; empty at the start")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--device", options.endpoint.device, "device name (default: the first)");
  app.add_option("--gid-index", options.endpoint.gid_index, "index of the IPv4 GID")->check(CLI::Range(0, 255));
  app.add_option("--flow-label", options.endpoint.flow_label, "0: the port follows the queue pair numbers")
      ->check(CLI::Range(0, 0xfffff));
  app.add_option("--traffic-class", traffic_class, "TOS byte of the packets")->check(CLI::Range(0, 255));
  app.add_option("--timeout", timeout, "4.096 us x 2^N until a packet is sent again")->check(CLI::Range(0, 31));
  app.add_option("--rounds", options.rounds, "how often everything is done")->check(CLI::Range(1, 1'000'000));
  if (const auto code = weft::command_line::parse(app, count, arguments, 2)) return *code;
  options.endpoint.timeout = static_cast<std::uint8_t>(timeout);
  options.endpoint.traffic_class = static_cast<std::uint8_t>(traffic_class);
  return weft::soft_rnic::run(options);
}
