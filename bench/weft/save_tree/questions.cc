#include "bench/weft/save_tree/questions.h"

#include <cerrno>

namespace weft::save_tree {
namespace {

std::nullptr_t unavailable() {
  errno = EOPNOTSUPP;
  return nullptr;
}

}  // namespace

int Questions::get_async_event(ibv_context*, ibv_async_event*) {
  unavailable();
  return -1;
}

ibv_mr* Questions::reg_mr(ibv_pd*, void*, std::size_t, unsigned) {
  return unavailable();
}

ibv_cq* Questions::create_cq(ibv_context*, int) {
  return unavailable();
}

int Questions::destroy_cq(ibv_cq*) {
  return EOPNOTSUPP;
}

ibv_srq* Questions::create_srq(ibv_pd*, ibv_srq_init_attr*) {
  return unavailable();
}

int Questions::destroy_srq(ibv_srq*) {
  return EOPNOTSUPP;
}

ibv_qp* Questions::create_qp(ibv_pd*, ibv_qp_init_attr*) {
  return unavailable();
}

int Questions::modify_qp(ibv_qp*, ibv_qp_attr*, int) {
  return EOPNOTSUPP;
}

int Questions::destroy_qp(ibv_qp*) {
  return EOPNOTSUPP;
}

int Questions::query_ece(ibv_qp*, ibv_ece*) {
  return EOPNOTSUPP;
}

int Questions::set_ece(ibv_qp*, ibv_ece*) {
  return EOPNOTSUPP;
}

int Questions::modify_qp_udp_sport(ibv_qp*, std::uint16_t) {
  return EOPNOTSUPP;
}

}  // namespace weft::save_tree
