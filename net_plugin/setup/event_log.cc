#include "net_plugin/setup/event_log.h"

#include "common/text/format.h"

namespace weft::setup {

std::optional<std::string> EventLog::note(const std::string& event, TimePoint now) {
  const auto [known, is_new] = kinds_.try_emplace(event, Kind{now});
  if (is_new) return event;
  known->second.more++;
  return std::nullopt;
}

std::vector<std::string> EventLog::due(TimePoint now) {
  std::vector<std::string> lines;
  for (auto kind = kinds_.begin(); kind != kinds_.end();) {
    auto& [event, state] = *kind;
    if (now - state.since < kInterval) {
      ++kind;
    } else if (state.more == 0) {
      kind = kinds_.erase(kind);
    } else {
      lines.push_back(text::format("{}: {} more in {} s", event, state.more, kInterval.count()));
      state = {now, 0};
      ++kind;
    }
  }
  return lines;
}

std::optional<TimePoint> EventLog::wake() const {
  std::optional<TimePoint> first;
  for (const auto& [event, state] : kinds_) {
    if (!first || state.since + kInterval < *first) first = state.since + kInterval;
  }
  return first;
}

}  // namespace weft::setup
