#include "tuner_plugin/exports/tuner.h"

#include <algorithm>
#include <cctype>
#include <memory>

#include "common/profile/profile.h"
#include "common/settings/settings.h"
#include "common/text/format.h"
#include "tuner_plugin/decide/decision_table.h"

namespace weft::tuner {
namespace {

struct Context {
  DecisionTable table;
};

void log(ncclDebugLogger_t logger, ncclDebugLogLevel level, const std::string& text) {
  if (logger) logger(level, NCCL_TUNING, __FILE__, __LINE__, "TUNER/Weft: %s", text.c_str());
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return char(std::tolower(letter)); });
  return text;
}

// Nothing where no profile is named.
Result<std::unique_ptr<profile::Profile>> load_profile(const settings::Loaded& loaded) {
  if (auto wrong = loaded.error_of(settings::Component::tuner)) return *wrong;
  const std::string& path = loaded.settings.profile;
  const std::string wanted = lower(loaded.settings.profile_sha256);
  if (path.empty()) {
    if (wanted.empty()) return std::unique_ptr<profile::Profile>();
    return Error{"WEFT_PROFILE_SHA256 is set and WEFT_PROFILE is not", {}, 0, "set both on every rank, or neither"};
  }
  auto read = profile::read_profile(path);
  if (!read) return read.take_error();
  if (!wanted.empty() && read->digest != wanted) {
    return Error{text::format("the file's SHA-256 is {}, WEFT_PROFILE_SHA256 says {}", read->digest, wanted), path, 0,
                 "give every host the same file"};
  }
  return std::make_unique<profile::Profile>(read.take());
}

}  // namespace

ncclResult_t init(std::size_t ranks, std::size_t nodes, ncclDebugLogger_t logger, void** context) {
  *context = nullptr;
  const settings::Loaded loaded = settings::load();
  for (const std::string& warning : loaded.warnings)
    log(logger, NCCL_LOG_WARN, warning);
  auto profile = load_profile(loaded);
  if (!profile) {
    log(logger, NCCL_LOG_WARN, profile.error().text());
    return ncclInvalidUsage;
  }
  auto made = std::make_unique<Context>();
  if (*profile) {
    made->table = DecisionTable(**profile, ranks, nodes);
    log(logger, NCCL_LOG_INFO,
        text::format("profile {} (SHA-256 {}): {} of {} rules apply to {} ranks on {} nodes", (*profile)->path,
                     (*profile)->digest, made->table.size(), (*profile)->rules.size(), ranks, nodes));
  } else {
    log(logger, NCCL_LOG_INFO, "no profile (WEFT_PROFILE): NCCL's own choices stand");
  }
  *context = made.release();
  return ncclSuccess;
}

ncclResult_t choose(void* context, int collective, std::size_t bytes, float** table, int algorithms, int protocols,
                    int* channels) {
  const Decision* decision = static_cast<const Context*>(context)->table.find(collective, bytes);
  // NCCL's parameter is declared as a pointer to pointers and is one contiguous block.
  if (decision) apply(*decision, reinterpret_cast<float*>(table), algorithms, protocols, channels);
  return ncclSuccess;
}

ncclResult_t finalize(void* context) {
  delete static_cast<Context*>(context);
  return ncclSuccess;
}

}  // namespace weft::tuner
