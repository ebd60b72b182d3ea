// Names and numbers that every version of NCCL's plugin interfaces shares. Our own declarations, from
// docs/nccl-interfaces.md; NCCL's headers are not needed to build Weft.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

enum ncclResult_t : int {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};

enum ncclDebugLogLevel : int {
  NCCL_LOG_NONE = 0,
  NCCL_LOG_VERSION = 1,
  NCCL_LOG_WARN = 2,
  NCCL_LOG_INFO = 3,
  NCCL_LOG_ABORT = 4,
  NCCL_LOG_TRACE = 5,
};

// Subsystem bits of the logger's second argument; the logger filters by itself.
enum ncclDebugLogSubSys : unsigned long {
  NCCL_INIT = 0x1,
  NCCL_COLL = 0x2,
  NCCL_NET = 0x10,
  NCCL_GRAPH = 0x20,
  NCCL_TUNING = 0x40,
  NCCL_ENV = 0x80,
};

// Thread-safe; cuts a line at 1024 bytes.
using ncclDebugLogger_t = void (*)(ncclDebugLogLevel level, unsigned long subsystems, const char* file, int line,
                                   const char* format, ...);

}  // extern "C"
