#include "tests/rig/rank/rank_file.h"

#include <algorithm>
#include <iterator>

#include "common/json/strict.h"
#include "common/text/format.h"

namespace weft::rank {
namespace {

constexpr const char* kKinds[] = {"all_reduce",     "all_gather", "reduce_scatter", "broadcast",  "reduce",
                                  "send_recv_ring", "all_to_all", "net_stream",     "net_incast", "net_ping_pong"};

bool per_rank_blocks(Kind kind) {
  return kind == Kind::all_gather || kind == Kind::reduce_scatter || kind == Kind::all_to_all;
}

Operation read_operation(json::Fields fields, int ranks) {
  Operation operation;
  const std::string kind = fields.word("op", json::required, kind_names());
  const auto found = std::find(std::begin(kKinds), std::end(kKinds), kind);
  if (found != std::end(kKinds)) operation.kind = Kind(found - std::begin(kKinds));
  operation.bytes =
      std::size_t(fields.integer("bytes", json::required, {.low = 1, .high = std::int64_t(1) << 34, .unit = "bytes"}));
  operation.element = element_from_name(fields.word("type", "f32", element_names())).value_or(Element::f32);
  operation.reduction =
      reduction_from_name(fields.word("reduction", "sum", reduction_names())).value_or(Reduction::sum);
  operation.iterations = int(fields.integer("iterations", 1, {.low = 1, .high = 100000}));
  operation.warmup = int(fields.integer("warmup", 0, {.low = 0, .high = 100000}));
  operation.in_place = fields.boolean("in_place", false);
  operation.root = int(fields.integer("root", 0, {.low = 0, .high = ranks - 1}));
  operation.connections = int(fields.integer("connections", 1, {.low = 1, .high = 1024}));
  operation.messages = int(fields.integer("messages", 1, {.low = 1, .high = 1'000'000}));
  operation.in_flight = int(fields.integer("in_flight", 4, {.low = 1, .high = 8}));
  const std::size_t unit = is_net(operation.kind) ? 1
                                                  : element_size(operation.element) *
                                                        std::size_t(per_rank_blocks(operation.kind) ? ranks : 1);
  if (operation.bytes % unit != 0) {
    fields.problem("bytes", text::format("{} is not a multiple of {}", operation.bytes, unit),
                   per_rank_blocks(operation.kind) ? "it must divide into one block of whole elements for each rank"
                                                   : "it must hold whole elements");
  }
  if (operation.in_place &&
      (operation.kind == Kind::send_recv_ring || operation.kind == Kind::all_to_all || is_net(operation.kind))) {
    fields.problem("in_place", text::format("{} has no in-place form", kind), "leave it out or set it to false");
  }
  fields.done();
  return operation;
}

}  // namespace

std::string kind_name(Kind kind) {
  return kKinds[int(kind)];
}
bool is_net(Kind kind) {
  return kind == Kind::net_stream || kind == Kind::net_incast || kind == Kind::net_ping_pong;
}
std::vector<std::string> kind_names() {
  return {std::begin(kKinds), std::end(kKinds)};
}

Result<RankFile> read_rank_file(const std::string& path) {
  auto document = json::read_file(path);
  if (!document) return document.take_error();
  json::Problems problems;
  json::Fields fields(*document, path, problems);
  RankFile file;
  file.ranks = int(fields.integer("ranks", json::required, {.low = 1, .high = 1024}));
  file.rank = int(fields.integer("rank", json::required, {.low = 0, .high = std::max(0, file.ranks - 1)}));
  file.device = int(fields.integer("device", 0, {.low = 0, .high = 63}));
  file.exchange = fields.text("exchange", json::required);
  file.result = fields.text("result", json::required);
  file.time_limit_s = int(fields.integer("time_limit_s", 60, {.low = 1, .high = 86400, .unit = "seconds"}));
  for (json::Fields& operation : fields.objects("operations")) {
    file.operations.push_back(read_operation(operation, std::max(1, file.ranks)));
  }
  const auto direct = std::count_if(file.operations.begin(), file.operations.end(),
                                    [](const Operation& operation) { return is_net(operation.kind); });
  if (direct != 0 && std::size_t(direct) != file.operations.size())
    fields.problem("operations", "net_* and NCCL's operations in one job", "run them as two");
  fields.done();
  if (auto error = problems.error()) return *error;
  return file;
}

}  // namespace weft::rank
