// Which events are worth a line: a link that flaps makes thousands a second (field report F64). The first of a kind is
// told at once, further ones are counted and told together. Pure.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "net_plugin/setup/control.h"

namespace weft::setup {

class EventLog {
 public:
  static constexpr std::chrono::seconds kInterval{10};

  // The line about an event that has just come; nothing where it is counted instead.
  std::optional<std::string> note(const std::string& event, TimePoint now);
  // Lines about events that were counted, where their time has come.
  std::vector<std::string> due(TimePoint now);
  // When due() has something to do next.
  std::optional<TimePoint> wake() const;

 private:
  struct Kind {
    TimePoint since;
    int more = 0;
  };
  std::map<std::string, Kind> kinds_;
};

}  // namespace weft::setup
