// The one table of settings: Weft's own environment variables and those of NCCL that Weft honours with NCCL's meaning.
// The plugins read it once, when they are initialised; documentation (docs/settings.md) is generated from it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/result/result.h"
#include "common/settings/conf_files.h"

namespace weft::settings {

// TCP ports, both ends among them; 0 to 0: whichever the kernel chooses.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;

  bool given() const { return first != 0; }
};

// "40000-40050"; empty where none is given.
std::string port_range_text(const PortRange& range);

// Effective values. Names follow the variables; -1 means "not given" where the table says so.
struct Settings {
  bool disable = false;
  std::int64_t paths = 24;
  std::int64_t paths_per_peer = 48;
  std::int64_t grow_after_bytes = 1 << 20;
  std::int64_t incast_bytes = 0;
  std::uint64_t seed = 0;
  std::int64_t connect_timeout_ms = 20'000;
  PortRange port_range;
  std::int64_t piece_bytes = 0;
  std::string sysfs_root;
  std::string profile;
  std::string profile_sha256;

  std::string ib_hca;
  std::int64_t ib_gid_index = -1;
  std::int64_t ib_roce_version_num = 2;
  std::string ib_addr_family = "AF_INET";
  std::string ib_addr_range;
  std::int64_t ib_timeout = 20;
  std::int64_t ib_qps_per_connection = 1;
  std::int64_t ib_retry_cnt = 7;
  std::int64_t ib_tc = -1;
  std::int64_t ib_fifo_tc = -1;
  std::int64_t ib_sl = -1;
  std::int64_t ib_pkey = 0;
  std::int64_t ib_pci_relaxed_ordering = 2;
  std::string socket_ifname;
  std::string socket_family;
  bool gdr_flush_disable = false;
  bool ib_merge_nics = true;
  bool ib_ece_enable = true;
};

enum class Component { net, tuner };

// One row: all that is known of a variable.
struct Row {
  std::string name;
  Component component;
  std::string allowed;   // "0 to 31", "AF_INET, AF_INET6", "a path"
  std::string standard;  // the default as text
  std::string text;      // what it does
  std::function<Result<void>(Settings&, const std::string&)> set;
  std::function<std::string(const Settings&)> get;

  bool job_wide =
      false;  // belongs to both ends of a connection: a difference between hosts is a mistake worth a remark

  bool is_weft() const { return name.rfind("WEFT_", 0) == 0; }
};

const std::vector<Row>& table();

// A value that is not allowed.
struct Wrong : Error {
  Component component;
};

// A variable that is set.
struct Given {
  std::string name;
  std::string value;
  std::string source;     // "environment", or the file of NCCL's that says it
  std::string in_effect;  // what became of it
  Component component = Component::net;

  std::string text() const;
};

struct Loaded {
  Settings settings;
  std::vector<Given> given;
  std::vector<std::string> warnings;  // unknown WEFT_ variables, with the nearest name
  std::vector<std::string> remarks;  // NCCL's variables that are set and have another effect than with NCCL's transport
  std::vector<Wrong> errors;         // the default stands instead

  const Given* find(const std::string& name) const;
  // The first one that concerns a plugin; the other's values don't.
  std::optional<Error> error_of(Component component) const;
};

// Of the values that the hosts of a job must share: equal exactly where they are.
std::uint64_t job_wide_digest(const Settings& settings);

// `lookup`: a variable's value or null. `environment`: all names, to find mistyped ones. `files`: what the environment
// does not say they may, the first before the second.
Loaded load(const std::function<const char*(const char*)>& lookup, const std::vector<std::string>& environment,
            const std::vector<ConfFile>& files = {});

// From the process's environment and NCCL's files.
Loaded load();
// From the process's environment and these files instead.
Loaded load(const std::vector<ConfFile>& files);

// The page docs/settings.md.
std::string markdown();

}  // namespace weft::settings
