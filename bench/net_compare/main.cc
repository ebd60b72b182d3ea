// net_compare: what a message costs the CPU with Weft and with NCCL's own IB transport, in machine instructions, over a
// NIC that is none. Both are driven by the same calls.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "bench/net_compare/step_counter.h"
#include "bench/net_compare/transport_run.h"
#include "common/command_line/command_line.h"
#include "common/text/format.h"

namespace weft::net_compare {
namespace {

namespace fs = std::filesystem;

enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2, kLacking = 3 };

constexpr std::size_t kPiece = 8192;  // Weft's smallest
constexpr int kMorePieces = 8;
constexpr const char* kNull = "libibverbs.so.1.0.null";

struct Options {
  RunOptions run;  // --child: this process is one that is measured
  bool child = false;
  std::string json;
  int messages = 0;
  int connections = 256;
  int ranks = 1024;
};

// Of an all-to-all.
constexpr int kChannels = 4;

fs::path build_folder() {
  return fs::read_symlink("/proc/self/exe").parent_path().parent_path();
}

// A message of so many pieces: Weft cuts it for so many paths, NCCL's own transport splits it over as many queue pairs.
// 0: both as they are without settings.
std::vector<std::string> environment(const std::string& transport, int pieces) {
  const fs::path build = build_folder();
  std::vector<std::string> out = {
      text::format("LD_LIBRARY_PATH={}:{}:{}:{}", (build / "rig/null").string(), (build / "rig/nccl-2.29.7").string(),
                   (build / "rig/lib").string(), (build / "lib").string()),
      "NCCL_SOCKET_IFNAME=lo", "NCCL_IB_GID_INDEX=0",
      // A step through `rep movsb` is one byte, 64 KiB of them are seconds: the NIC that is none copies by vectors.
      "GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=1073741824"};
  if (pieces == 0) return out;
  if (transport == "Weft") {
    out.push_back(text::format("WEFT_PATHS={}", pieces));
    out.push_back("WEFT_GROW_AFTER_BYTES=0");
    out.push_back(text::format("WEFT_PIECE_BYTES={}", kPiece));
  } else {
    out.push_back(text::format("NCCL_IB_QPS_PER_CONNECTION={}", pieces));
    out.push_back("NCCL_IB_SPLIT_DATA_ON_QPS=1");
  }
  return out;
}

std::vector<std::string> child_command(const std::string& transport, const std::string& option, std::size_t bytes,
                                       int count) {
  return {fs::read_symlink("/proc/self/exe").string(),
          "--child",
          transport,
          "--bytes",
          std::to_string(bytes),
          option,
          std::to_string(count)};
}

struct Cost {
  double message = 0;
  double tests_in_vain = 0;  // of one pair
};

// Per message.
Result<Cost> cost_of(const std::string& transport, int pieces, int messages) {
  const std::size_t bytes = pieces == 1 ? kPiece / 2 : kPiece * std::size_t(pieces);
  auto counts = count_instructions(child_command(transport, "--messages", bytes, messages),
                                   environment(transport, pieces), std::string("/") + kNull);
  if (!counts) return counts.take_error();
  if (counts->size() != 3) return Error{text::format("{} stretches instead of 3", counts->size()), transport, 0, {}};
  const double markers = double((*counts)[0]);
  return Cost{(double((*counts)[1]) - markers) / messages, (double((*counts)[2]) - markers) / messages};
}

// What `connections` take in a process that nobody traces: with one path each or, up to the first byte of each, with
// the transport's own settings.
Result<nlohmann::json> set_up(const std::string& transport, int connections, bool first_bytes) {
  const std::vector<std::string> variables = environment(transport, first_bytes ? 0 : 1);
  std::string command = "env -i";
  for (const std::string& variable : variables)
    command += " '" + variable + "'";
  for (const std::string& word : child_command(transport, "--connections", kPiece, connections))
    command += " '" + word + "'";
  if (first_bytes) command += " --first-bytes";
  FILE* output = popen(command.c_str(), "r");
  if (!output) return system_error("cannot start a process", errno, transport);
  std::string text;
  char buffer[512];
  while (std::fgets(buffer, sizeof buffer, output))
    text += buffer;
  if (pclose(output) != 0) return Error{"setting up connections failed", transport, 0, "its own message is above"};
  const nlohmann::json result = nlohmann::json::parse(text, nullptr, false);
  if (result.is_discarded()) return Error{"is no result: " + text, transport, 0, {}};
  return result;
}

struct Side {
  Cost one, more;
  double extra_piece = 0;
  double set_up_seconds = 0, kilobytes_each = 0;
  double first_bytes_seconds = 0, queue_pairs = 0;
};

Result<Side> measure(const std::string& transport, const Options& options) {
  Side side;
  auto one = cost_of(transport, 1, options.messages);
  if (!one) return one.take_error();
  auto more = cost_of(transport, kMorePieces, options.messages);
  if (!more) return more.take_error();
  auto connections = set_up(transport, options.connections, false);
  if (!connections) return connections.take_error();
  auto all_to_all = set_up(transport, (options.ranks - 1) * kChannels, true);
  if (!all_to_all) return all_to_all.take_error();
  side.one = *one;
  side.more = *more;
  side.extra_piece = (more->message - one->message) / (kMorePieces - 1);
  side.set_up_seconds = connections->at("seconds");
  side.kilobytes_each = connections->at("kilobytes_each");
  side.first_bytes_seconds = all_to_all->at("first_bytes_seconds");
  side.queue_pairs = all_to_all->at("queue_pairs");
  return side;
}

struct Line {
  const char* key;
  std::string what;
  double weft, ib;
};

std::vector<Line> lines(const Side& weft, const Side& ib, const Options& options) {
  return {
      {"one_piece", "instructions of a message of 4 KiB", weft.one.message, ib.one.message},
      {"eight_pieces", text::format("instructions of a message of {} pieces", kMorePieces), weft.more.message,
       ib.more.message},
      {"extra_piece", "instructions of each further piece", weft.extra_piece, ib.extra_piece},
      {"tests_in_vain", "instructions of a test of each end in vain", weft.one.tests_in_vain, ib.one.tests_in_vain},
      {"set_up_seconds", text::format("seconds to set up {} connections", options.connections), weft.set_up_seconds,
       ib.set_up_seconds},
      {"kilobytes_each", "KiB of memory that a connection holds, both ends", weft.kilobytes_each, ib.kilobytes_each},
      {"first_bytes_seconds", text::format("seconds to the first byte of all of {} ranks' all-to-all", options.ranks),
       weft.first_bytes_seconds, ib.first_bytes_seconds},
      {"queue_pairs", "queue pairs of a rank in it, both ends of each connection", weft.queue_pairs, ib.queue_pairs},
  };
}

int complain(const Error& error, int code) {
  std::fprintf(stderr, "net_compare: %s\n", error.text().c_str());
  return code;
}

int compare(const Options& options) {
  if (!fs::exists(build_folder() / "rig/nccl-2.29.7/libnccl.so.2"))
    return complain(Error{"stock NCCL is not built", (build_folder() / "rig/nccl-2.29.7").string(), 0,
                          "scripts/test fetches and builds it"},
                    kLacking);
  auto weft = measure("Weft", options);
  if (!weft) return complain(weft.error(), kFailed);
  auto ib = measure("IB", options);
  if (!ib) return complain(ib.error(), kFailed);
  nlohmann::ordered_json json = {{"taken_on", "a NIC that is none"}, {"figures", nlohmann::ordered_json::object()}};
  std::string table = text::format("{:<60} {:>10} {:>10} {:>7}\n", "", "Weft", "NCCL's IB", "ratio");
  for (const Line& line : lines(*weft, *ib, options)) {
    json["figures"][line.key] = {{"weft", line.weft}, {"ib", line.ib}, {"ratio", line.weft / line.ib}};
    table += text::format("{:<60} {:>10.1f} {:>10.1f} {:>7.2f}\n", line.what, line.weft, line.ib, line.weft / line.ib);
  }
  if (options.json == "-") {
    std::puts(json.dump(1).c_str());
    return kDone;
  }
  std::printf("%sOver a NIC that is none, its own instructions left out.\n", table.c_str());
  if (options.json.empty()) return kDone;
  std::ofstream file(options.json);
  file << json.dump(1) << '\n';
  file.close();
  return file ? kDone : complain(system_error("cannot write", errno, options.json), kUsage);
}

int be_child(const Options& options) {
  auto result = run_transport(options.run);
  if (!result) return complain(result.error(), kFailed);
  std::puts(result->dump().c_str());
  return kDone;
}

int run(int count, char** arguments) {
  Options options;
  CLI::App app{
      "What a message costs the CPU with Weft and with NCCL's own IB transport, over a NIC that is none.\n"
      "Exit codes: 0 done, 1 it ran and something failed, 2 wrong usage, 3 something is not built."};
  app.add_option("--json", options.json, "Write the figures for programs to this file (- is standard output)");
  app.add_option("--messages", options.run.messages, "Messages of each measurement")->check(CLI::Range(1, 100'000));
  app.add_option("--connections", options.run.connections, "Connections that are set up (default: 256)")
      ->check(CLI::Range(1, 10'000));
  app.add_option("--ranks", options.ranks, "Ranks of an all-to-all on 4 channels, of which one is played")
      ->check(CLI::Range(2, 1025))
      ->capture_default_str();
  app.add_option("--child", options.run.transport)->group("")->check(CLI::IsMember({"Weft", "IB"}));
  app.add_option("--bytes", options.run.bytes)->group("");
  app.add_flag("--first-bytes", options.run.first_bytes)->group("");
  if (const auto code = command_line::parse(app, count, arguments, kUsage)) return *code;
  if (!options.run.transport.empty()) return be_child(options);
  options.messages = options.run.messages;
  if (options.run.connections > 0) options.connections = options.run.connections;
  return compare(options);
}

}  // namespace
}  // namespace weft::net_compare

int main(int count, char** arguments) {
  return weft::net_compare::run(count, arguments);
}
