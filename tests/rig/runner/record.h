// Where `rig up` writes which process holds a standing rig, for `rig exec` and `rig down`.
#pragma once

#include <string>
#include <vector>

#include "common/result/result.h"

namespace weft::rig {

struct Record {
  int process = 0;
  std::string started;  // when the process started, as /proc says: another one may have its number later
  std::string scenario;
  std::vector<std::string> overrides;
};

// The file of the rig called `name`: letters, digits, "-" and "_". Its folder (XDG_RUNTIME_DIR, or one in /tmp made for
// it) belongs to this user alone: whoever could write there could have this user end any process.
Result<std::string> record_place(const std::string& name);

// ENOENT where there is none, or where the process has ended (the file then goes as well).
Result<Record> read_record(const std::string& place);
// Fills `started` in.
Result<void> write_record(const std::string& place, Record record);

// The two steps as `rig exec` and `rig down` take them: a rig that is not up is an error that says how to get one.
Result<Record> find_record(const std::string& name);
Result<void> remove_record(const std::string& name);

}  // namespace weft::rig
