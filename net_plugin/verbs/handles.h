// Owning handles: what libibverbs gave out goes back when the handle goes. They must not outlive the Verbs object.
#pragma once

#include <memory>

#include "net_plugin/verbs/verbs.h"

namespace weft::verbs {

template <class Object, int (Verbs::*Destroy)(Object*)>
struct Destroyer {
  Verbs* verbs = nullptr;
  // A failure has no remedy here: the process is letting go of the object.
  void operator()(Object* object) const { (void)(verbs->*Destroy)(object); }
};

using Context = std::unique_ptr<ibv_context, Destroyer<ibv_context, &Verbs::close_device>>;
using ProtectionDomain = std::unique_ptr<ibv_pd, Destroyer<ibv_pd, &Verbs::dealloc_pd>>;
using MemoryRegion = std::unique_ptr<ibv_mr, Destroyer<ibv_mr, &Verbs::dereg_mr>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Destroyer<ibv_cq, &Verbs::destroy_cq>>;
using SharedReceiveQueue = std::unique_ptr<ibv_srq, Destroyer<ibv_srq, &Verbs::destroy_srq>>;
using QueuePair = std::unique_ptr<ibv_qp, Destroyer<ibv_qp, &Verbs::destroy_qp>>;

}  // namespace weft::verbs
