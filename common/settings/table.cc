
#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

#include "common/settings/settings.h"
#include "common/text/format.h"

namespace weft::settings {
namespace {

template <class Number>
Result<Number> parse(const std::string& text, Number low, Number high) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, value);
  if (problem == std::errc::result_out_of_range) return Error{"is out of range", {}, 0, {}};
  if (problem != std::errc() || stopped != end) return Error{"is not a whole number", {}, 0, {}};
  if (value < low || value > high) return Error{"is out of range", {}, 0, {}};
  return value;
}

Row integer(std::string name, Component component, std::int64_t Settings::*member, std::int64_t low, std::int64_t high,
            std::string unit, std::string text) {
  Row row;
  row.allowed = text::format("{} to {}{}", low, high, unit.empty() ? "" : " " + unit);
  row.set = [=](Settings& settings, const std::string& value) -> Result<void> {
    auto number = parse<std::int64_t>(value, low, high);
    if (!number) return number.take_error();
    settings.*member = *number;
    return {};
  };
  row.get = [=](const Settings& settings) { return std::to_string(settings.*member); };
  row.name = std::move(name);
  row.component = component;
  row.text = std::move(text);
  return row;
}

// Larger values are allowed and count as `most`.
Row at_most(std::int64_t most, std::int64_t Settings::*member, Row row) {
  row.set = [=, set = row.set](Settings& settings, const std::string& value) -> Result<void> {
    if (auto done = set(settings, value); !done) return done;
    settings.*member = std::min(settings.*member, most);
    return {};
  };
  return row;
}

Row boolean(std::string name, Component component, bool Settings::*member, std::string text) {
  Row row;
  row.allowed = "0, 1";
  row.set = [=](Settings& settings, const std::string& value) -> Result<void> {
    auto number = parse<int>(value, 0, 1);
    if (!number) return Error{"is neither 0 nor 1", {}, 0, {}};
    settings.*member = *number == 1;
    return {};
  };
  row.get = [=](const Settings& settings) { return std::string(settings.*member ? "1" : "0"); };
  row.name = std::move(name);
  row.component = component;
  row.text = std::move(text);
  return row;
}

// `check`: says what is wrong with a value, empty where nothing is.
Row words(std::string name, Component component, std::string Settings::*member, std::string allowed,
          std::function<std::string(const std::string&)> check, std::string text) {
  Row row;
  row.allowed = std::move(allowed);
  row.set = [member, check = std::move(check)](Settings& settings, const std::string& value) -> Result<void> {
    const std::string wrong = check ? check(value) : "";
    if (!wrong.empty()) return Error{wrong, {}, 0, {}};
    settings.*member = value;
    return {};
  };
  row.get = [=](const Settings& settings) { return settings.*member; };
  row.name = std::move(name);
  row.component = component;
  row.text = std::move(text);
  return row;
}

std::string check_family(const std::string& value) {
  return value == "AF_INET" || value == "AF_INET6" ? "" : "is not an address family";
}

std::string check_digest(const std::string& value) {
  if (value.size() != 64) return "does not have 64 digits";
  for (const char digit : value) {
    if (!std::isxdigit(static_cast<unsigned char>(digit))) return "is not hexadecimal";
  }
  return "";
}

Row seed_row() {
  Row row;
  row.name = "WEFT_SEED";
  row.component = Component::net;
  row.allowed = "0 to 18446744073709551615";
  row.text = "start of the source ports' random numbers: the same seed, hosts and connections give the same ports";
  row.set = [](Settings& settings, const std::string& value) -> Result<void> {
    auto number = parse<std::uint64_t>(value, 0, std::numeric_limits<std::uint64_t>::max());
    if (!number) return number.take_error();
    settings.seed = *number;
    return {};
  };
  row.get = [](const Settings& settings) { return std::to_string(settings.seed); };
  return row;
}

Row port_range_row() {
  Row row;
  row.name = "WEFT_PORT_RANGE";
  row.component = Component::net;
  row.allowed = "first-last, each from 1 to 65535, as in 40000-40050";
  row.text =
      "TCP ports that the handshake's listeners take, where a firewall leaves only some open; none: the kernel's "
      "choice";
  row.set = [](Settings& settings, const std::string& value) -> Result<void> {
    const std::size_t dash = value.find('-');
    if (dash == std::string::npos) return Error{"is not a range", {}, 0, {}};
    const auto first = parse<std::uint16_t>(value.substr(0, dash), 1, 65535);
    const auto last = parse<std::uint16_t>(value.substr(dash + 1), 1, 65535);
    for (const auto* end : {&first, &last}) {
      if (!*end) return end->error();
    }
    if (*first > *last) return Error{"ends before it begins", {}, 0, {}};
    settings.port_range = {*first, *last};
    return {};
  };
  row.get = [](const Settings& settings) { return port_range_text(settings.port_range); };
  return row;
}

Row job_wide(Row row) {
  row.job_wide = true;
  return row;
}

// A multiple of 128 bytes (transfer/wire.h), or 0.
Row piece_row() {
  Row row =
      integer("WEFT_PIECE_BYTES", Component::net, &Settings::piece_bytes, 0, 16 << 20, "",
              "size of the pieces that a message is cut into; 0: from the message's size and the number of paths");
  row.allowed = "0, or a multiple of 128 from 4096 to 16777216 bytes";
  row.set = [](Settings& settings, const std::string& value) -> Result<void> {
    auto number = parse<std::int64_t>(value, 0, 16 << 20);
    if (!number) return number.take_error();
    if (*number != 0 && *number < 4096) return Error{"is out of range", {}, 0, {}};
    if (*number % 128 != 0) return Error{"is not a multiple of 128", {}, 0, {}};
    settings.piece_bytes = *number;
    return {};
  };
  return row;
}

std::vector<Row> make_table() {
  constexpr auto net = Component::net;
  constexpr auto tuner = Component::tuner;
  std::vector<Row> rows = {
      boolean("WEFT_DISABLE", net, &Settings::disable,
              "1: the net plugin reports no devices, so that NCCL uses its own transport"),
      job_wide(integer("WEFT_PATHS", net, &Settings::paths, 1, 128, "",
                       "queue pairs that a connection may have, each with a UDP source port of its own")),
      job_wide(integer("WEFT_PATHS_PER_PEER", net, &Settings::paths_per_peer, 1, 1024, "",
                       "queue pairs that the connections between two NICs share; each may have two all the same")),
      job_wide(integer("WEFT_GROW_AFTER_BYTES", net, &Settings::grow_after_bytes, 0, std::int64_t(1) << 40, "bytes",
                       "what a connection has to send before it gets more than its first queue pair; 0: all at once, "
                       "before its first byte")),
      integer("WEFT_INCAST_BYTES", net, &Settings::incast_bytes, 0, std::int64_t(1) << 40, "bytes",
              "what a NIC offers to receive at a time, all senders together; each connection may offer one message "
              "whatever the limit; 0: no limit"),
      job_wide(seed_row()),
      integer("WEFT_CONNECT_TIMEOUT_MS", net, &Settings::connect_timeout_ms, 100, 600'000, "ms",
              "how long a handshake may take before it is an error"),
      port_range_row(),
      job_wide(piece_row()),
      words("WEFT_SYSFS_ROOT", net, &Settings::sysfs_root, "a path", {},
            "a folder with another host's sys, read instead of /sys (weft devices --save-tree makes one): for tests "
            "and for support"),
      words("WEFT_PROFILE", tuner, &Settings::profile, "a path", {},
            "the tuning profile; without it the tuner leaves NCCL's choices alone"),
      words(
          "WEFT_PROFILE_SHA256", tuner, &Settings::profile_sha256, "64 hexadecimal digits", check_digest,
          "the profile's digest, set by the launcher: a rank whose file differs fails instead of choosing differently"),
      words("NCCL_IB_HCA", net, &Settings::ib_hca, "[^][=]name[:port],…", {},
            "which NICs: prefixes of names, = for whole names, ^ to exclude; the modifiers stand once, at the start"),
      integer("NCCL_IB_GID_INDEX", net, &Settings::ib_gid_index, -1, 65535, "",
              "GID table index of every NIC; -1: chosen by content"),
      // Both bounds are 2: Weft is a transport for RoCE v2, and a value that asks for v1 is an error instead of a
      // surprise.
      integer("NCCL_IB_ROCE_VERSION_NUM", net, &Settings::ib_roce_version_num, 2, 2, "",
              "RoCE version of the GID; Weft knows version 2 alone, v1 has no source port to spread by"),
      words("NCCL_IB_ADDR_FAMILY", net, &Settings::ib_addr_family, "AF_INET, AF_INET6", check_family,
            "address family that the choice of a GID prefers"),
      words("NCCL_IB_ADDR_RANGE", net, &Settings::ib_addr_range, "address/prefix length", {},
            "only GIDs with an address in this range"),
      job_wide(at_most(
          20, &Settings::ib_timeout,
          integer("NCCL_IB_TIMEOUT", net, &Settings::ib_timeout, 1, 31, "",
                  "the queue pairs' local ACK timeout, 4.096 µs × 2^n; a lost path is noticed after (retries + 1) "
                  "timeouts; 0, which "
                  "waits for ever, is not allowed; more than 20, as sites set it for one path, counts as 20"))),
      job_wide(integer("NCCL_IB_QPS_PER_CONNECTION", net, &Settings::ib_qps_per_connection, 1, 128, "",
                       "queue pairs of a connection at least, once it has grown; Weft's own choice is mostly more")),
      job_wide(
          integer("NCCL_IB_RETRY_CNT", net, &Settings::ib_retry_cnt, 0, 7, "", "the queue pairs' transport retries")),
      job_wide(integer("NCCL_IB_TC", net, &Settings::ib_tc, -1, 255, "",
                       "traffic class (TOS byte) of data; -1: the communicator's, else 0")),
      job_wide(integer("NCCL_IB_FIFO_TC", net, &Settings::ib_fifo_tc, -1, 255, "",
                       "traffic class of clear-to-send records; -1: as NCCL_IB_TC")),
      job_wide(integer("NCCL_IB_SL", net, &Settings::ib_sl, -1, 15, "", "service level; -1: 0")),
      integer("NCCL_IB_PKEY", net, &Settings::ib_pkey, 0, 65535, "", "partition key index"),
      integer("NCCL_IB_PCI_RELAXED_ORDERING", net, &Settings::ib_pci_relaxed_ordering, 0, 2, "",
              "PCIe relaxed ordering for user data: 0 off, 1 on, 2 where the library has it"),
      words("NCCL_SOCKET_IFNAME", net, &Settings::socket_ifname, "[^][=]name,…", {},
            "interface of the handshake's TCP connections"),
      words("NCCL_SOCKET_FAMILY", net, &Settings::socket_family, "AF_INET, AF_INET6", check_family,
            "address family of the handshake"),
      boolean("NCCL_IB_MERGE_NICS", net, &Settings::ib_merge_nics,
              "1: the ports of one card are one device, whether NCCL merges them (2.24 and later) or Weft does"),
      boolean("NCCL_IB_ECE_ENABLE", net, &Settings::ib_ece_enable,
              "1: the NICs agree on what they both can beyond the standard (extended connection establishment)"),
      boolean("NCCL_GDR_FLUSH_DISABLE", net, &Settings::gdr_flush_disable,
              "1: no RDMA READ after receives into GPU memory"),
  };
  const Settings defaults;
  for (Row& row : rows)
    row.standard = row.get(defaults);
  return rows;
}

}  // namespace

std::string port_range_text(const PortRange& range) {
  return range.given() ? text::format("{}-{}", range.first, range.last) : "";
}

const std::vector<Row>& table() {
  static const std::vector<Row> rows = make_table();
  return rows;
}

}  // namespace weft::settings
