// Faults that change while a run goes on: a small JSON file that the rig replaces atomically and every process re-reads
// when it changed. {"nics": {"mlx5_0": {"port": "up"|"down", "drop_ppm": 0, "delay_us": 0}}}; absent parts mean no
// fault.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/result/result.h"
#include "tests/rig/soft_rnic/protocol/time.h"

namespace weft::soft_rnic {

struct Faults {
  bool port_up = true;
  std::uint32_t drop_per_million = 0;  // of the packets that arrive, at random
  Nanoseconds delay = 0;               // added to every packet that arrives

  bool operator==(const Faults& other) const = default;
};

using FaultsByNic = std::map<std::string, Faults>;

Result<FaultsByNic> parse_control_file(std::string_view text, const std::string& name);

// One reader of one file. Not thread-safe.
class ControlFile {
 public:
  // An empty path means a file that is never there.
  explicit ControlFile(std::string path) : path_(std::move(path)) {}

  // Reads the file again if it was replaced since the last call; true if it was. A file that is absent means no faults;
  // one that is wrong leaves the faults as they were and is reported through last_error().
  bool refresh();
  Faults faults_of(const std::string& nic) const;
  const std::string& last_error() const { return last_error_; }

 private:
  struct Identity {
    std::uint64_t inode = 0;
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
    std::int64_t size = -1;
    bool operator==(const Identity& other) const = default;
  };

  std::string path_;
  Identity identity_;
  FaultsByNic faults_;
  std::string last_error_;
};

}  // namespace weft::soft_rnic
