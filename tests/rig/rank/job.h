// One rank's part of the job from NCCL's first call to its last.
#pragma once

#include "tests/rig/rank/exchange.h"
#include "tests/rig/rank/libraries.h"
#include "tests/rig/rank/rank_file.h"
#include "tests/rig/rank/report.h"

namespace weft::rank {

// Runs everything the file asks for and records times, wrong elements and the first failure in `report`.
void run_job(const Libraries& libraries, const RankFile& file, Exchange& exchange, Deadline deadline, Report& report);

}  // namespace weft::rank
