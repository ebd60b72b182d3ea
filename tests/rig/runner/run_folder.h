// The files of a run: what every process of a host is told (host file, control file), what every rank is told, and a
// topology file that puts each GPU next to its NIC.
#pragma once

#include <string>

#include "common/result/result.h"
#include "tests/rig/runner/scenario.h"

namespace weft::rig {

// What the faults have made of a NIC so far.
struct NicState {
  bool up = true;
  int drop_ppm = 0;
};

class RunFolder {
 public:
  // Where the private mount namespace of a run has a file system of its own: what lies here goes with the last process.
  static constexpr const char* kPrivateBase = "/run";
  // TMPDIR, or /tmp: for a run whose files are to be kept.
  static std::string kept_base();
  // Makes a fresh folder below `base`.
  static Result<RunFolder> create(const std::string& base);
  explicit RunFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string host_file(int host) const;
  std::string statistics_folder(int host) const;
  std::string rank_file(int rank) const;
  std::string result_file(int rank) const;
  std::string log_file(int rank) const;
  std::string topology_file() const { return path_ + "/topology.xml"; }
  std::string exchange() const { return path_ + "/exchange"; }

  Result<void> write(const Scenario& scenario) const;
  // Replaces the host's control file at once (rename).
  Result<void> write_control(const Scenario& scenario, int host, const std::vector<NicState>& nics) const;

 private:
  std::string path_;
};

}  // namespace weft::rig
