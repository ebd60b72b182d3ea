// NCCL's tuner interfaces v3 (NCCL 2.22 to 2.27 take it) and v5 (2.28 and later). Our own declarations; semantics in
// docs/nccl-interfaces.md §4. Layout: x86-64.
#pragma once

#include "common/nccl_abi/types.h"

extern "C" {

enum ncclFunc_t : int {
  ncclFuncBroadcast = 0,
  ncclFuncReduce = 1,
  ncclFuncAllGather = 2,
  ncclFuncReduceScatter = 3,
  ncclFuncAllReduce = 4,
};

struct ncclNvlDomainInfo_v5_t {
  int nNvlDomains;
  int minRanksPerNvlDomain;
  int maxRanksPerNvlDomain;
};

// NCCL's model constants, 1152 bytes of double; Weft leaves them alone.
struct ncclTunerConstants_v5_t;

struct ncclTuner_v3_t {
  const char* name;
  ncclResult_t (*init)(std::size_t nRanks, std::size_t nNodes, ncclDebugLogger_t logger, void** context);
  ncclResult_t (*getCollInfo)(void* context, ncclFunc_t collective, std::size_t bytes, int numPipeOps,
                              float** costTable, int numAlgo, int numProto, int* nChannels);
  ncclResult_t (*destroy)(void* context);
};

struct ncclTuner_v5_t {
  const char* name;
  ncclResult_t (*init)(void** context, std::uint64_t commId, std::size_t nRanks, std::size_t nNodes,
                       ncclDebugLogger_t logger, ncclNvlDomainInfo_v5_t* domains, ncclTunerConstants_v5_t* constants);
  ncclResult_t (*getCollInfo)(void* context, ncclFunc_t collective, std::size_t bytes, int numPipeOps,
                              float** costTable, int numAlgo, int numProto, int regBuff, int* nChannels);
  ncclResult_t (*finalize)(void* context);
};

}  // extern "C"

static_assert(sizeof(ncclNvlDomainInfo_v5_t) == 12);
static_assert(sizeof(ncclTuner_v3_t) == 32 && sizeof(ncclTuner_v5_t) == 32);
static_assert(offsetof(ncclTuner_v3_t, getCollInfo) == 16 && offsetof(ncclTuner_v5_t, getCollInfo) == 16);
