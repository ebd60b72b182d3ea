// Texts and small conversions that verbs programs expect of the library. The texts are our own.
#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <cstddef>

namespace {

struct Name {
  int value;
  const char* text;
};

template <std::size_t size>
const char* find(const std::array<Name, size>& names, int value) {
  for (const Name& name : names) {
    if (name.value == value) return name.text;
  }
  return "unknown";
}

constexpr std::array<Name, 8> kStatuses = {{
    {IBV_WC_SUCCESS, "success"},
    {IBV_WC_LOC_LEN_ERR, "local length error"},
    {IBV_WC_LOC_PROT_ERR, "local protection error"},
    {IBV_WC_WR_FLUSH_ERR, "work request flushed"},
    {IBV_WC_REM_INV_REQ_ERR, "remote invalid request"},
    {IBV_WC_REM_ACCESS_ERR, "remote access error"},
    {IBV_WC_RETRY_EXC_ERR, "transport retry counter exceeded"},
    {IBV_WC_RNR_RETRY_EXC_ERR, "receiver-not-ready retry counter exceeded"},
}};

constexpr std::array<Name, 9> kEvents = {{
    {IBV_EVENT_CQ_ERR, "completion queue overrun"},
    {IBV_EVENT_QP_FATAL, "local work queue error"},
    {IBV_EVENT_QP_REQ_ERR, "invalid request by the peer"},
    {IBV_EVENT_QP_ACCESS_ERR, "access violation by the peer"},
    {IBV_EVENT_SQ_DRAINED, "send queue drained"},
    {IBV_EVENT_PORT_ACTIVE, "port active"},
    {IBV_EVENT_PORT_ERR, "port down"},
    {IBV_EVENT_SRQ_LIMIT_REACHED, "shared receive queue limit reached"},
    {IBV_EVENT_QP_LAST_WQE_REACHED, "last work request reached"},
}};

// Rates as multiples of 2.5 Gbit/s and in Mbit/s (InfiniBand specification, 9.11.1; the faster ones as Ethernet has
// them).
struct Rate {
  ibv_rate rate;
  int multiple;
  int mbps;
};
constexpr std::array<Rate, 12> kRates = {{
    {IBV_RATE_2_5_GBPS, 1, 2500},
    {IBV_RATE_5_GBPS, 2, 5000},
    {IBV_RATE_10_GBPS, 4, 10000},
    {IBV_RATE_20_GBPS, 8, 20000},
    {IBV_RATE_30_GBPS, 12, 30000},
    {IBV_RATE_40_GBPS, 16, 40000},
    {IBV_RATE_60_GBPS, 24, 60000},
    {IBV_RATE_80_GBPS, 32, 80000},
    {IBV_RATE_120_GBPS, 48, 120000},
    {IBV_RATE_25_GBPS, 10, 25781},
    {IBV_RATE_100_GBPS, 40, 103125},
    {IBV_RATE_200_GBPS, 80, 206250},
}};

}  // namespace

extern "C" {

const char* ibv_wc_status_str(ibv_wc_status status) {
  return find(kStatuses, status);
}

const char* ibv_event_type_str(ibv_event_type event) {
  return find(kEvents, event);
}

const char* ibv_node_type_str(ibv_node_type type) {
  return type == IBV_NODE_CA ? "channel adapter" : "unknown";
}

const char* ibv_port_state_str(ibv_port_state state) {
  static constexpr std::array<Name, 2> kStates = {{{IBV_PORT_DOWN, "PORT_DOWN"}, {IBV_PORT_ACTIVE, "PORT_ACTIVE"}}};
  return find(kStates, state);
}

int ibv_rate_to_mult(ibv_rate rate) {
  for (const Rate& known : kRates) {
    if (known.rate == rate) return known.multiple;
  }
  return -1;
}

ibv_rate mult_to_ibv_rate(int multiple) {
  for (const Rate& known : kRates) {
    if (known.multiple == multiple) return known.rate;
  }
  return IBV_RATE_MAX;
}

int ibv_rate_to_mbps(ibv_rate rate) {
  for (const Rate& known : kRates) {
    if (known.rate == rate) return known.mbps;
  }
  return -1;
}

ibv_rate mbps_to_ibv_rate(int mbps) {
  for (const Rate& known : kRates) {
    if (known.mbps == mbps) return known.rate;
  }
  return IBV_RATE_MAX;
}

}  // extern "C"
