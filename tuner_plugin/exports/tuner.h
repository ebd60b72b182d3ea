// The one internal interface behind every version of NCCL's tuner interface.
#pragma once

#include <cstddef>

#include "common/nccl_abi/tuner.h"

namespace weft::tuner {

inline constexpr const char* kName = "Weft";

// A named profile that is missing, wrong or not the one of WEFT_PROFILE_SHA256 is an error: a rank that tunes
// differently from the others would hang them.
ncclResult_t init(std::size_t ranks, std::size_t nodes, ncclDebugLogger_t logger, void** context);
// The hot path: no allocation, lock, log or file.
ncclResult_t choose(void* context, int collective, std::size_t bytes, float** table, int algorithms, int protocols,
                    int* channels);
ncclResult_t finalize(void* context);

}  // namespace weft::tuner
