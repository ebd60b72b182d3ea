#include "tests/rig/rank/libraries.h"

#include <dlfcn.h>

#include "common/text/format.h"

namespace weft::rank {
namespace {

constexpr const char* kResults[] = {"ncclSuccess",       "ncclUnhandledCudaError", "ncclSystemError",
                                    "ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
                                    "ncclRemoteError",   "ncclInProgress"};

class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (!function && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

}  // namespace

Result<Libraries> Libraries::load() {
  void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    return Error{text::format("cannot load: {}", dlerror()), "libnccl.so.2", 0,
                 "LD_LIBRARY_PATH must have build/rig/nccl-VERSION and build/rig/lib"};
  }
  Libraries all;
  Symbols symbols(library);
  symbols.find(all.ncclGetVersion, "ncclGetVersion");
  symbols.find(all.ncclGetUniqueId, "ncclGetUniqueId");
  symbols.find(all.ncclCommInitRank, "ncclCommInitRank");
  symbols.find(all.ncclCommDestroy, "ncclCommDestroy");
  symbols.find(all.ncclCommAbort, "ncclCommAbort");
  symbols.find(all.ncclCommGetAsyncError, "ncclCommGetAsyncError");
  symbols.find(all.ncclGetErrorString, "ncclGetErrorString");
  symbols.find(all.ncclGetLastError, "ncclGetLastError");
  symbols.find(all.ncclGroupStart, "ncclGroupStart");
  symbols.find(all.ncclGroupEnd, "ncclGroupEnd");
  symbols.find(all.ncclAllReduce, "ncclAllReduce");
  symbols.find(all.ncclAllGather, "ncclAllGather");
  symbols.find(all.ncclReduceScatter, "ncclReduceScatter");
  symbols.find(all.ncclBroadcast, "ncclBroadcast");
  symbols.find(all.ncclReduce, "ncclReduce");
  symbols.find(all.ncclSend, "ncclSend");
  symbols.find(all.ncclRecv, "ncclRecv");
  symbols.find(all.cudaSetDevice, "cudaSetDevice");
  symbols.find(all.cudaMalloc, "cudaMalloc");
  symbols.find(all.cudaFree, "cudaFree");
  symbols.find(all.cudaMemcpy, "cudaMemcpy");
  symbols.find(all.cudaMemset, "cudaMemset");
  symbols.find(all.cudaStreamCreateWithFlags, "cudaStreamCreateWithFlags");
  symbols.find(all.cudaStreamDestroy, "cudaStreamDestroy");
  symbols.find(all.cudaStreamQuery, "cudaStreamQuery");
  symbols.find(all.cudaGetErrorString, "cudaGetErrorString");
  if (!symbols.missing().empty())
    return Error{text::format("has no function {}", symbols.missing()), "libnccl.so.2", 0, {}};
  return all;
}

std::string nccl_result_name(int code) {
  if (code >= 0 && code < int(std::size(kResults))) return kResults[code];
  return text::format("ncclResult {}", code);
}

}  // namespace weft::rank
