// Operations that drive a transport through NCCL's net interface directly, the way NCCL's proxy threads do: listen,
// connect and register once, then up to `in_flight` messages outstanding on each connection, all polled by one thread.
// Without NCCL's kernels and FIFOs in between, what is measured is the transport and the fabric.
#pragma once

#include "tests/rig/rank/exchange.h"
#include "tests/rig/rank/libraries.h"
#include "tests/rig/rank/net_transport.h"
#include "tests/rig/rank/report.h"

namespace weft::rank {

// All operations of the file, which are net_*.
void run_net_job(const Libraries& libraries, const RankFile& file, Exchange& exchange, Deadline deadline,
                 Report& report);

}  // namespace weft::rank
