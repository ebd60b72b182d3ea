#include "tests/rig/emulated_cuda/kernels/function_table.h"

#include <string>

#include "tests/rig/emulated_cuda/kernels/block.h"

// In NCCL's archive.
extern int const ncclDevFuncRowToId[];

namespace weft::nccl_kernels {
namespace {

constexpr int kTableEnd = -1;

std::vector<Algorithm> gather_algorithms() {
  std::vector<Algorithm> algorithms{kRing, kCollNetDirect, kNvls};
  if (kHasPat) algorithms.push_back(kPat);
  return algorithms;
}

const std::vector<Algorithm> kAllReduceAlgorithms{kTree, kRing, kCollNetDirect, kCollNetChain, kNvls, kNvlsTree};

class Rows {
 public:
  // One row a protocol, for each algorithm.
  void add(Collective collective, Operation operation, int type, const std::vector<Algorithm>& algorithms) {
    for (Algorithm algorithm : algorithms)
      for (Protocol protocol : {kLL, kLL128, kSimple})
        rows_.push_back({collective, operation, type, algorithm, protocol});
  }

  void add_for_each_reduction(Collective collective, const std::vector<Algorithm>& algorithms) {
    for (int operation = 0; operation < kOperations; operation++)
      for (int type = 0; type < kFunctionTableTypes; type++)
        add(collective, Operation(operation), type, algorithms);
  }

  void add_one(Function function) { rows_.push_back(function); }
  std::vector<Function> take() { return std::move(rows_); }

 private:
  std::vector<Function> rows_;
};

}  // namespace

std::vector<Function> function_rows() {
  Rows rows;
  rows.add_one({Collective::send_receive, kSum, kUint8, kRing, kSimple});
  rows.add(Collective::all_gather, kSum, kUint8, gather_algorithms());
  rows.add(Collective::broadcast, kSum, kUint8, {kRing});
  if (kHasGatheredBroadcasts) rows.add(Collective::gathered_broadcasts, kSum, kUint8, {kRing});
  rows.add_for_each_reduction(Collective::all_reduce, kAllReduceAlgorithms);
  rows.add_for_each_reduction(Collective::reduce, {kRing});
  rows.add_for_each_reduction(Collective::reduce_scatter, gather_algorithms());
  return rows.take();
}

std::vector<Function> invert(const int* row_to_id) {
  const std::vector<Function> rows = function_rows();
  std::vector<Function> functions;
  for (std::size_t row = 0; row < rows.size(); row++) {
    const int id = row_to_id[row];
    if (id < 0) continue;
    if (std::size_t(id) >= functions.size()) functions.resize(std::size_t(id) + 1);
    functions[std::size_t(id)] = rows[row];
  }
  if (row_to_id[rows.size()] != kTableEnd) not_emulated("a function table with more rows than expected");
  return functions;
}

const Function& function_of(int id) {
  static const std::vector<Function>& functions = *new std::vector<Function>(invert(ncclDevFuncRowToId));
  if (id < 0 || std::size_t(id) >= functions.size() || functions[std::size_t(id)].collective == Collective::none)
    not_emulated("function id " + std::to_string(id));
  return functions[std::size_t(id)];
}

}  // namespace weft::nccl_kernels
