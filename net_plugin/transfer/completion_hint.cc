#include "net_plugin/transfer/completion_hint.h"

#include "common/text/format.h"

namespace weft::transfer {
namespace {

// Codes of mlx5 whose meaning field reports show (F02, F62, F67); others stay numbers.
const char* mlx5_meaning(std::uint32_t code) {
  switch (code) {
    case 0x51:
      return "local protection; with GPU memory look for PCI ACS redirection and the IOMMU";
    case 0x81:
      return "no acknowledgement within all retries";
    case 0xf9:
      return "flushed after an earlier error";
    default:
      return nullptr;
  }
}

bool is_mlx5(std::uint32_t vendor_id) {
  return vendor_id == 0x02c9 || vendor_id == 0x15b3;
}

}  // namespace

const char* completion_hint(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return "";
    case IBV_WC_LOC_LEN_ERR:
      return "a message did not fit the receive, or the two ends have different path MTUs: compare active_mtu of both "
             "ports (ibv_devinfo)";
    case IBV_WC_LOC_QP_OP_ERR:
      return "the NIC could not carry out the work request: look for firmware messages in the kernel log";
    case IBV_WC_LOC_EEC_OP_ERR:
    case IBV_WC_INV_EECN_ERR:
    case IBV_WC_INV_EEC_STATE_ERR:
      return "a status of reliable datagrams, which Weft does not use: suspect the driver";
    case IBV_WC_LOC_PROT_ERR:
      return "local memory was not registered for this address; with GPU memory look for PCI ACS redirection "
             "(lspci -vvv, ReqRedir+) and iommu=pt";
    case IBV_WC_WR_FLUSH_ERR:
      return "the queue pair was already in the error state: an earlier line says why";
    case IBV_WC_MW_BIND_ERR:
      return "a status of memory windows, which Weft does not use: suspect the driver";
    case IBV_WC_BAD_RESP_ERR:
      return "the answer of the peer's NIC made no sense: are both firmwares current?";
    case IBV_WC_LOC_ACCESS_ERR:
      return "incoming data met local memory that was not registered for remote writes";
    case IBV_WC_REM_INV_REQ_ERR:
      return "the peer's NIC took the request for invalid: queue pair access flags, or a receive that is too small";
    case IBV_WC_REM_ACCESS_ERR:
      return "the peer's memory is not registered for this address: was it freed or deregistered while in use?";
    case IBV_WC_REM_OP_ERR:
      return "the peer's NIC could not carry the request out: look at the peer's kernel log";
    case IBV_WC_RETRY_EXC_ERR:
      return "nothing came back from the peer: a link, a spine or the peer is down, or the GIDs can't reach each other";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "the peer had no receive queued";
    case IBV_WC_LOC_RDD_VIOL_ERR:
    case IBV_WC_REM_INV_RD_REQ_ERR:
      return "a status of reliable datagram domains, which Weft does not use: suspect the driver";
    case IBV_WC_REM_ABORT_ERR:
      return "the peer's NIC gave the request up: look at the peer's log";
    case IBV_WC_FATAL_ERR:
      return "the NIC is broken for good: look at the kernel log of this host, reset the device";
    case IBV_WC_RESP_TIMEOUT_ERR:
      return "an answer took too long: the path is congested or paused";
    case IBV_WC_GENERAL_ERR:
      return "the driver gave no cause: look at the kernel log of this host";
    case IBV_WC_TM_ERR:
    case IBV_WC_TM_RNDV_INCOMPLETE:
      return "a status of tag matching, which Weft does not use: suspect the driver";
  }
  return "a status that Weft does not know: which rdma-core is this?";
}

std::string vendor_error_text(std::uint32_t code, std::uint32_t vendor_id) {
  const char* meaning = is_mlx5(vendor_id) ? mlx5_meaning(code) : nullptr;
  return text::format("vendor error 0x{:x} ({}{}{})", code, code, meaning ? ": " : "", meaning ? meaning : "");
}

}  // namespace weft::transfer
