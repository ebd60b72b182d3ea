#include <dlfcn.h>

#include "common/text/format.h"
#include "net_plugin/verbs/connection_manager.h"
#include "net_plugin/verbs/shared_object.h"

namespace weft::verbs {
namespace {

constexpr const char* kLibrary = "librdmacm.so.1";

struct Functions {
  decltype(&rdma_create_event_channel) create_event_channel;
  decltype(&rdma_destroy_event_channel) destroy_event_channel;
  decltype(&rdma_create_id) create_id;
  decltype(&rdma_destroy_id) destroy_id;
  decltype(&rdma_resolve_addr) resolve_addr;
  decltype(&rdma_resolve_route) resolve_route;
  decltype(&rdma_get_cm_event) get_cm_event;
  decltype(&rdma_ack_cm_event) ack_cm_event;
};

class Loaded final : public ConnectionManager {
 public:
  Loaded(SharedObject library, const Functions& functions) : library_(std::move(library)), call_(functions) {}

  rdma_event_channel* create_event_channel() override { return call_.create_event_channel(); }
  void destroy_event_channel(rdma_event_channel* channel) override { call_.destroy_event_channel(channel); }
  int create_id(rdma_event_channel* channel, rdma_cm_id** id) override {
    return call_.create_id(channel, id, nullptr, RDMA_PS_TCP);
  }
  int destroy_id(rdma_cm_id* id) override { return call_.destroy_id(id); }
  int resolve_addr(rdma_cm_id* id, sockaddr* source, sockaddr* destination, int timeout_ms) override {
    return call_.resolve_addr(id, source, destination, timeout_ms);
  }
  int resolve_route(rdma_cm_id* id, int timeout_ms) override { return call_.resolve_route(id, timeout_ms); }
  int get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) override {
    return call_.get_cm_event(channel, event);
  }
  int ack_cm_event(rdma_cm_event* event) override { return call_.ack_cm_event(event); }

 private:
  SharedObject library_;
  Functions call_;
};

}  // namespace

Result<std::unique_ptr<ConnectionManager>> load_connection_manager() {
  SharedObject library(kLibrary);
  if (!library) return Error{text::format("cannot open: {}", dlerror()), kLibrary, 0, {}};
  Functions call{};
  Required required(library, "RDMACM_1.0");
  required.find(call.create_event_channel, "rdma_create_event_channel");
  required.find(call.destroy_event_channel, "rdma_destroy_event_channel");
  required.find(call.create_id, "rdma_create_id");
  required.find(call.destroy_id, "rdma_destroy_id");
  required.find(call.resolve_addr, "rdma_resolve_addr");
  required.find(call.resolve_route, "rdma_resolve_route");
  required.find(call.get_cm_event, "rdma_get_cm_event");
  required.find(call.ack_cm_event, "rdma_ack_cm_event");
  if (required.missing()) return Error{text::format("has no {}", required.missing()), kLibrary, 0, {}};
  return std::unique_ptr<ConnectionManager>(std::make_unique<Loaded>(std::move(library), call));
}

}  // namespace weft::verbs
