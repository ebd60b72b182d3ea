// Counts the machine instructions of a part of another process by stepping through it (ptrace(2)): exact, the same in
// every run, and possible where the processor's counters are not to be had, as in most virtual machines.
//
// Only the child's first thread is stepped. x86-64 and arm64, Linux.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/result/result.h"

namespace weft::net_compare {

// In the child: between the two calls every instruction is counted for as long as somebody traces.
void begin_counting();
void end_counting();

// Runs a program of ours under the trace. Instructions are counted in each of its stretches between begin_counting()
// and end_counting(), except those below a call into a library whose path ends in `excluded`. An error where tracing is
// not allowed, or the child fails.
Result<std::vector<std::uint64_t>> count_instructions(const std::vector<std::string>& command,
                                                      const std::vector<std::string>& environment,
                                                      const std::string& excluded);

}  // namespace weft::net_compare
