#include "common/settings/not_read.h"

#include <algorithm>

#include "common/text/format.h"

namespace weft::settings {

const std::vector<NotRead>& not_read() {
  // Names and meanings: NCCL's documentation of environment variables, and its sources up to 2.30.
  static const std::vector<NotRead> table = {
      {"NCCL_IB_DISABLE", "NCCL's own", "turns NCCL's transport off; WEFT_DISABLE=1 does it for Weft"},
      {"NCCL_IB_SPLIT_DATA_ON_QPS", "not needed", "every message goes over all paths, each at its own rate"},
      {"NCCL_IB_AR_THRESHOLD", "not needed",
       "pieces may arrive in any order, so adaptive routing needs no other protocol"},
      {"NCCL_IB_ADAPTIVE_ROUTING", "not needed", "as NCCL_IB_AR_THRESHOLD"},
      {"NCCL_IB_USE_INLINE", "not needed", "records and small messages are inlined wherever the device can"},
      {"NCCL_IB_DEVICE_PCI_ORDER", "not needed", "devices are always listed in PCI order"},
      {"NCCL_IB_MERGE_VFS", "not needed", "a virtual function is left out where its physical function can be used"},
      {"NCCL_IB_RETURN_ASYNC_EVENTS", "not needed", "a fatal event always ends the connections of its device"},
      {"NCCL_IB_WARN_RAIL_LOCAL", "not needed", "different numbers of merged NICs are always a warning"},
      {"NCCL_IB_QUERY_PORT_SPEED", "not needed", "the speed is that of ibv_query_port(3)"},
      {"NCCL_IB_MQP_RETRY_ALL", "not needed", "the whole handshake has a deadline, WEFT_CONNECT_TIMEOUT_MS"},
      {"NCCL_IB_MQP_RETRY_CNT", "not needed", "as NCCL_IB_MQP_RETRY_ALL"},
      {"NCCL_IB_MQP_RETRY_SLEEP_MSEC", "not needed", "as NCCL_IB_MQP_RETRY_ALL"},
      {"NCCL_IB_OOO_RQ", "not needed", "pieces may arrive in any order"},
      {"NCCL_IB_RECEIVER_SIDE_MATCHING_SCHEME", "not needed", "every piece says which message it belongs to"},
      {"NCCL_IB_PREPOST_RECEIVE_WORK_REQUESTS", "not needed", "receives are always queued ahead"},
      {"NCCL_IB_DATA_DIRECT", "refused",
       "needs a second device of the NIC for registrations; memory goes the ordinary way"},
      {"NCCL_IB_RESILIENCY_PORT_FAILOVER", "refused", "a failed path ends its connection in this release"},
      {"NCCL_IB_RESILIENCY_PORT_RECOVERY", "refused", "as NCCL_IB_RESILIENCY_PORT_FAILOVER"},
      {"NCCL_IB_SUBNET_AWARE_ROUTING", "refused", "a connection uses the NIC that NCCL chose"},
      {"NCCL_IB_SUBNET_PREFIX_LEN", "refused", "as NCCL_IB_SUBNET_AWARE_ROUTING"},
      {"NCCL_IB_ROUTABLE_FLID_GID_INDEX", "not needed", "of InfiniBand, Weft is for RoCE"},
      {"NCCL_IBVERBS_LIB", "refused", "libibverbs.so.1 is taken from the library path"},
      {"NCCL_SOCKET_NTHREADS", "not needed", "of NCCL's Socket transport"},
      {"NCCL_NSOCKS_PERTHREAD", "not needed", "of NCCL's Socket transport"},
      {"NCCL_NET_GDR_LEVEL", "NCCL's own", "NCCL decides by it which buffers are in GPU memory"},
      {"NCCL_NET_GDR_READ", "NCCL's own", "as NCCL_NET_GDR_LEVEL"},
      {"NCCL_NET_MERGE_LEVEL", "NCCL's own", "NCCL decides by it which NICs it asks Weft to merge"},
      {"NCCL_NET_FORCE_MERGE", "NCCL's own", "as NCCL_NET_MERGE_LEVEL"},
      {"NCCL_CROSS_NIC", "NCCL's own", "NCCL decides by it which NICs talk to each other"},
  };
  return table;
}

std::vector<std::string> remarks_about_not_read(const std::vector<std::string>& environment) {
  std::vector<std::string> lines;
  for (const NotRead& one : not_read()) {
    const bool set = std::find(environment.begin(), environment.end(), one.name) != environment.end();
    if (set && std::string(one.verdict) != "NCCL's own")
      lines.push_back(text::format("{} has no effect on Weft ({}): {}", one.name, one.verdict, one.why));
  }
  return lines;
}

}  // namespace weft::settings
