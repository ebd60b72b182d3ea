#include "net_plugin/exports/boundary.h"

#include <atomic>

namespace weft::exports {
namespace {

std::atomic<ncclDebugLogger_t> logger_in_use{nullptr};

}  // namespace

void set_logger(ncclDebugLogger_t logger) {
  logger_in_use.store(logger, std::memory_order_release);
}

void log(setup::LogLevel level, const std::string& text) {
  const ncclDebugLogger_t logger = logger_in_use.load(std::memory_order_acquire);
  if (!logger) return;
  logger(level == setup::LogLevel::warn ? NCCL_LOG_WARN : NCCL_LOG_INFO, NCCL_NET, __FILE__, __LINE__, "NET/Weft: %s",
         text.c_str());
}

ncclResult_t report(const Error& error, ncclResult_t code) {
  log(setup::LogLevel::warn, error.text());
  return code;
}

}  // namespace weft::exports
