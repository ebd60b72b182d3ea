// Every cause has its own remedy (field report R03).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "net_plugin/setup/verbs_hint.h"
#include "net_plugin/transfer/completion_hint.h"

namespace weft {
namespace {

using testing::HasSubstr;

TEST(Hints, EveryStatusOfACompletionHasOne) {
  for (int status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_TM_RNDV_INCOMPLETE; status++)
    EXPECT_STRNE(transfer::completion_hint(ibv_wc_status(status)), "") << status;
  EXPECT_STREQ(transfer::completion_hint(IBV_WC_SUCCESS), "");
  EXPECT_STRNE(transfer::completion_hint(ibv_wc_status(99)), "");
}

TEST(Hints, StatusesThatADataPathMeetsDiffer) {
  std::set<std::string> texts;
  for (const ibv_wc_status status :
       {IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_QP_OP_ERR, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR, IBV_WC_BAD_RESP_ERR,
        IBV_WC_LOC_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR, IBV_WC_RETRY_EXC_ERR,
        IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_REM_ABORT_ERR, IBV_WC_FATAL_ERR, IBV_WC_RESP_TIMEOUT_ERR, IBV_WC_GENERAL_ERR})
    EXPECT_TRUE(texts.insert(transfer::completion_hint(status)).second) << status;
}

TEST(Hints, F62_AVendorsCodeIsShownInHexadecimalAndDecimal) {
  EXPECT_EQ(transfer::vendor_error_text(0x51, 0x14e4), "vendor error 0x51 (81)");
  EXPECT_THAT(transfer::vendor_error_text(0x51, 0x02c9), HasSubstr("0x51 (81: local protection"));
  EXPECT_THAT(transfer::vendor_error_text(129, 0x15b3), HasSubstr("0x81 (129: no acknowledgement"));
  EXPECT_THAT(transfer::completion_hint(IBV_WC_LOC_PROT_ERR), HasSubstr("ACS"));
}

TEST(Hints, F34_EachErrnoOfReadyToReceiveHasItsOwnRemedy) {
  std::set<std::string> texts;
  for (const int code : {ETIMEDOUT, ENETUNREACH, EHOSTUNREACH, ENETDOWN, EADDRNOTAVAIL, ENODEV, EINVAL, ENOMEM, EIO,
                         EAGAIN, EPERM, ENOSYS})
    EXPECT_TRUE(texts.insert(setup::ready_to_receive_hint(code, "10.0.0.1", "10.0.0.2")).second) << code;
  EXPECT_THAT(setup::ready_to_receive_hint(ENETUNREACH, "10.0.0.1", "10.0.0.2"),
              HasSubstr("ip route get 10.0.0.2 from 10.0.0.1"));
}

TEST(Hints, EveryCallHasOneForEveryErrno) {
  for (int code = 1; code < 134; code++) {
    EXPECT_NE(setup::initialise_hint(code), "") << code;
    EXPECT_NE(setup::ready_to_receive_hint(code, "a", "b"), "") << code;
    EXPECT_NE(setup::ready_to_send_hint(code), "") << code;
    EXPECT_NE(setup::create_hint(code, "queue pairs", 7), "") << code;
    EXPECT_NE(setup::register_hint(code, setup::MemoryKind::dmabuf), "") << code;
    EXPECT_NE(setup::open_hint(code), "") << code;
  }
}

TEST(Hints, OnlyALimitedMemoryIsBlamed) {
  const std::string text = setup::create_hint(ENOMEM, "queue pairs", 131072);
  EXPECT_THAT(text, HasSubstr("131072 queue pairs"));
  EXPECT_THAT(text, testing::AnyOf(HasSubstr("ulimit -l"), HasSubstr("not limited here")));
}

}  // namespace
}  // namespace weft
