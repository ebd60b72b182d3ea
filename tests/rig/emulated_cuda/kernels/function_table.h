// From a function id, which a batch carries, to what the function does. The name of a kernel does not tell: one kernel
// runs several functions. README §4.
#pragma once

#include <vector>

#include "tests/rig/emulated_cuda/kernels/layout.h"

namespace weft::nccl_kernels {

enum class Collective {
  none,
  send_receive,
  all_gather,
  broadcast,
  gathered_broadcasts,
  all_reduce,
  reduce,
  reduce_scatter
};

struct Function {
  Collective collective = Collective::none;
  Operation operation = kSum;
  int type = kUint8;  // an ElementType, or one of the 8-bit floats behind them
  Algorithm algorithm = kRing;
  Protocol protocol = kSimple;

  bool operator==(const Function&) const = default;
};

// The functions in the order of NCCL's row numbers, which is the order of its generator's loops.
std::vector<Function> function_rows();

// Inverts a table from row number to function id (-1: not built). Where rows share an id the last one counts, which for
// integers is the unsigned type. Ends the process when the table doesn't end where function_rows() does.
std::vector<Function> invert(const int* row_to_id);

// The function of the library's own table; ends the process for an id without one.
const Function& function_of(int id);

}  // namespace weft::nccl_kernels
