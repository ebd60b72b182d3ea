// What to look for when a work request did not complete with success. Pure.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

namespace weft::transfer {

// A different text for every status of ibv_poll_cq(3); never empty for one that is not IBV_WC_SUCCESS.
const char* completion_hint(ibv_wc_status status);

// A vendor's code in hexadecimal and decimal, with its meaning where that is known: "vendor error 0x81 (129: no
// acknowledgement …)". `vendor_id`: of ibv_query_device(3); meanings are known for NVIDIA's (0x02c9, 0x15b3) alone.
std::string vendor_error_text(std::uint32_t code, std::uint32_t vendor_id);

}  // namespace weft::transfer
