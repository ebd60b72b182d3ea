// Verbs as the search for devices uses it: everything else is not available.
#pragma once

#include "net_plugin/verbs/verbs.h"

namespace weft::save_tree {

class Questions : public verbs::Verbs {
 public:
  int get_async_event(ibv_context*, ibv_async_event*) final;
  void ack_async_event(ibv_async_event*) final {}
  const char* event_type_str(ibv_event_type) final { return ""; }
  const char* wc_status_str(ibv_wc_status) final { return ""; }
  ibv_mr* reg_mr(ibv_pd*, void*, std::size_t, unsigned) final;
  ibv_cq* create_cq(ibv_context*, int) final;
  int destroy_cq(ibv_cq*) final;
  ibv_srq* create_srq(ibv_pd*, ibv_srq_init_attr*) final;
  int destroy_srq(ibv_srq*) final;
  ibv_qp* create_qp(ibv_pd*, ibv_qp_init_attr*) final;
  int modify_qp(ibv_qp*, ibv_qp_attr*, int) final;
  int destroy_qp(ibv_qp*) final;
  int query_ece(ibv_qp*, ibv_ece*) final;
  int set_ece(ibv_qp*, ibv_ece*) final;
  int modify_qp_udp_sport(ibv_qp*, std::uint16_t) final;
};

}  // namespace weft::save_tree
