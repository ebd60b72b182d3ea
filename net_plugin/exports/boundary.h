// Log lines and result codes: how an Error leaves the plugin.
#pragma once

#include <string>

#include "common/nccl_abi/types.h"
#include "common/result/result.h"
#include "net_plugin/setup/runtime.h"

namespace weft::exports {

void set_logger(ncclDebugLogger_t logger);
// "NET/Weft: " and the text, through NCCL's logger. Any thread.
void log(setup::LogLevel level, const std::string& text);

// Logs at WARN and returns `code`.
ncclResult_t report(const Error& error, ncclResult_t code);

}  // namespace weft::exports
