#include "tests/rig/rank/net_transport.h"

#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/text/format.h"

namespace weft::rank {
namespace {

// Warnings go where NCCL's go.
void log(ncclDebugLogLevel level, unsigned long, const char*, int, const char* format, ...) {
  if (level > NCCL_LOG_INFO) return;
  va_list arguments;
  va_start(arguments, format);
  std::printf("%s NET ", level == NCCL_LOG_WARN ? "WARN" : "INFO");
  std::vprintf(format, arguments);
  std::printf("\n");
  va_end(arguments);
}

}  // namespace

Result<NetTransport> load_transport(int nccl) {
  const char* wanted = std::getenv("NCCL_NET");
  NetTransport transport;
  transport.name = wanted ? wanted : "IB";
  const int version = nccl >= 22400 ? 11 : 8;
  const bool weft = transport.name == "Weft";
  const char* file = weft ? "libnccl-net-weft.so" : "libnccl.so.2";
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) return Error{text::format("cannot open: {}", dlerror()), file, 0, {}};
  const void* table = nullptr;
  if (weft) {
    table = dlsym(library, text::format("ncclNetPlugin_v{}", version).c_str());
  } else if (auto find = reinterpret_cast<const void* (*)(const char*)>(dlsym(library, "rig_nccl_transport"))) {
    table = find(transport.name.c_str());
  }
  if (!table) return Error{text::format("has no transport {}", transport.name), file, 0, {}};
  transport.net = versions::adapt(version, table, false);
  if (const int code = transport.net->init(log)) {
    return Error{text::format("init of {} failed with {}", transport.name, code), file, 0, {}};
  }
  return transport;
}

}  // namespace weft::rank
