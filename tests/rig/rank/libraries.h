// NCCL's and the CUDA runtime's public functions, as far as a rank calls them: our own declarations, found at run time
// in the libnccl.so.2 of the library path, so that one program serves every NCCL version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/result/result.h"

namespace weft::rank {

// ncclUniqueId of nccl.h.
struct UniqueId {
  char bytes[128];
};

using Communicator = struct ncclComm*;
using Stream = struct CUstream_st*;

struct Libraries {
  // Opens libnccl.so.2 and looks every function up; the error names what is missing.
  static Result<Libraries> load();

  int (*ncclGetVersion)(int* version);
  int (*ncclGetUniqueId)(UniqueId* id);
  int (*ncclCommInitRank)(Communicator* communicator, int ranks, UniqueId id, int rank);
  int (*ncclCommDestroy)(Communicator communicator);
  int (*ncclCommAbort)(Communicator communicator);
  int (*ncclCommGetAsyncError)(Communicator communicator, int* error);
  const char* (*ncclGetErrorString)(int error);
  const char* (*ncclGetLastError)(Communicator communicator);
  int (*ncclGroupStart)();
  int (*ncclGroupEnd)();
  int (*ncclAllReduce)(const void* send, void* receive, std::size_t count, int type, int reduction, Communicator,
                       Stream);
  int (*ncclAllGather)(const void* send, void* receive, std::size_t count, int type, Communicator, Stream);
  int (*ncclReduceScatter)(const void* send, void* receive, std::size_t count, int type, int reduction, Communicator,
                           Stream);
  int (*ncclBroadcast)(const void* send, void* receive, std::size_t count, int type, int root, Communicator, Stream);
  int (*ncclReduce)(const void* send, void* receive, std::size_t count, int type, int reduction, int root, Communicator,
                    Stream);
  int (*ncclSend)(const void* send, std::size_t count, int type, int peer, Communicator, Stream);
  int (*ncclRecv)(void* receive, std::size_t count, int type, int peer, Communicator, Stream);

  int (*cudaSetDevice)(int device);
  int (*cudaMalloc)(void** memory, std::size_t bytes);
  int (*cudaFree)(void* memory);
  int (*cudaMemcpy)(void* to, const void* from, std::size_t bytes, int kind);
  int (*cudaMemset)(void* memory, int value, std::size_t bytes);
  int (*cudaStreamCreateWithFlags)(Stream* stream, unsigned flags);
  int (*cudaStreamDestroy)(Stream stream);
  int (*cudaStreamQuery)(Stream stream);
  const char* (*cudaGetErrorString)(int error);
};

// Public constants of cuda_runtime_api.h and nccl.h.
inline constexpr int kCopyHostToDevice = 1;
inline constexpr int kCopyDeviceToHost = 2;
inline constexpr int kCudaNotReady = 600;
inline constexpr unsigned kStreamNonBlocking = 1;

// "ncclRemoteError" for 6.
std::string nccl_result_name(int code);

}  // namespace weft::rank
