#include "tests/unit/net_plugin/fake/fake_verbs.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <optional>
#include <stdexcept>

namespace weft::fake {
namespace {

struct QueuePair;

// Fixed room, so that the data path allocates nothing.
template <class Item>
class Ring {
 public:
  explicit Ring(std::size_t room) : items_(room) {}
  bool push(const Item& item) {
    if (next_ - first_ == items_.size()) return false;
    items_[next_++ % items_.size()] = item;
    return true;
  }
  bool pop(Item& item) {
    if (first_ == next_) return false;
    item = items_[first_++ % items_.size()];
    return true;
  }

 private:
  std::vector<Item> items_;
  std::size_t first_ = 0, next_ = 0;
};

struct CompletionQueue {
  ibv_cq verbs{};
  Ring<ibv_wc> completions;
  explicit CompletionQueue(int entries) : completions(std::size_t(entries)) {}
};

struct SharedReceives {
  ibv_srq verbs{};
  Ring<std::uint64_t> identifiers;
  explicit SharedReceives(std::uint32_t room) : identifiers(room) {}
};

struct QueuePair {
  ibv_qp verbs{};
  Ring<std::uint64_t> receives;
  std::uint32_t peer = 0;
  bool broken = false;
  std::size_t posted = 0;
  std::size_t reported = 0;  // work requests that asked for a completion
  ibv_ece extensions{};
  bool extensions_set = false;
  explicit QueuePair(std::uint32_t room) : receives(room) {}
};

constexpr std::size_t kMaxInline = 256;

struct Work {
  QueuePair* from = nullptr;
  ibv_send_wr request{};
  ibv_sge segment{};
  std::array<std::uint8_t, kMaxInline> inlined{};
  bool is_inlined() const { return (request.send_flags & IBV_SEND_INLINE) != 0; }
};

struct Event {
  ibv_event_type type;
  int port;
};

struct Region {
  const ibv_context* context = nullptr;
  std::uint64_t begin = 0, end = 0;
};

// The C structures come first in ours.
template <class Ours, class Theirs>
Ours& ours(Theirs* theirs) {
  return *reinterpret_cast<Ours*>(theirs);
}

}  // namespace

struct FakeVerbs::Nic {
  mutable std::mutex mutex;
  std::map<std::uint32_t, QueuePair*> queue_pairs;
  std::uint32_t next_number = 100;
  bool holding = false;
  std::deque<Work> held;
  std::optional<ibv_wc_status> failure;
  int objects = 0;
  int not_ready = 0;
  std::map<ibv_context*, std::deque<Event>> events;
  std::vector<std::uint8_t> traffic_classes;
  std::vector<ibv_gid> destinations;
  std::vector<Region> regions;  // by key

  bool allows(std::uint32_t key, const ibv_context* context, std::uint64_t begin, std::size_t bytes) const {
    if (key >= regions.size()) return false;
    const Region& region = regions[key];
    return region.context == context && begin >= region.begin && begin + bytes <= region.end;
  }

  void complete(QueuePair& qp, ibv_cq* cq, const ibv_wc& completion) {
    ibv_wc entry = completion;
    entry.qp_num = qp.verbs.qp_num;
    if (!ours<CompletionQueue>(cq).completions.push(entry)) throw std::logic_error("a completion queue overflows");
  }

  void carry_out(const Work& work) {
    QueuePair& from = *work.from;
    ibv_wc completion{};
    completion.wr_id = work.request.wr_id;
    if (from.broken) completion.status = IBV_WC_WR_FLUSH_ERR;
    if (failure) {
      completion.status = *failure;
      completion.vendor_err = 0x81;
      failure.reset();
      from.broken = true;
    }
    const auto peer = queue_pairs.find(from.peer);
    if (completion.status == IBV_WC_SUCCESS && peer == queue_pairs.end()) completion.status = IBV_WC_RETRY_EXC_ERR;
    if (completion.status == IBV_WC_SUCCESS) execute(work, *peer->second, completion);
    const bool signaled = (work.request.send_flags & IBV_SEND_SIGNALED) != 0;
    if (signaled || completion.status != IBV_WC_SUCCESS) complete(from, from.verbs.send_cq, completion);
  }

  void execute(const Work& work, QueuePair& to, ibv_wc& completion) {
    const void* local = work.is_inlined() ? static_cast<const void*>(work.inlined.data())
                                          : reinterpret_cast<const void*>(work.segment.addr);
    void* remote = reinterpret_cast<void*>(work.request.wr.rdma.remote_addr);
    const std::size_t bytes = work.request.num_sge != 0 ? work.segment.length : 0;
    if (bytes != 0 && !work.is_inlined() &&
        !allows(work.segment.lkey, work.from->verbs.context, work.segment.addr, bytes)) {
      completion.status = IBV_WC_LOC_PROT_ERR;
      return;
    }
    if (bytes != 0 && !allows(work.request.wr.rdma.rkey, to.verbs.context, work.request.wr.rdma.remote_addr, bytes)) {
      completion.status = IBV_WC_REM_ACCESS_ERR;
      return;
    }
    if (work.request.opcode == IBV_WR_RDMA_READ) {
      std::memcpy(reinterpret_cast<void*>(work.segment.addr), remote, bytes);
      return;
    }
    if (work.request.opcode == IBV_WR_RDMA_WRITE) {
      write(remote, local, bytes);
      return;
    }
    ibv_wc arrival{};
    const bool ready = to.verbs.srq ? ours<SharedReceives>(to.verbs.srq).identifiers.pop(arrival.wr_id)
                                    : to.receives.pop(arrival.wr_id);
    if (!ready) {
      not_ready++;
      completion.status = IBV_WC_RNR_RETRY_EXC_ERR;
      return;
    }
    write(remote, local, bytes);
    arrival.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    arrival.byte_len = std::uint32_t(bytes);
    arrival.imm_data = work.request.imm_data;
    arrival.wc_flags = IBV_WC_WITH_IMM;
    complete(to, to.verbs.recv_cq, arrival);
  }

  // The last word of a record becomes visible last, as the memory of a real NIC does (transfer/wire.h).
  static void write(void* remote, const void* local, std::size_t bytes) {
    if (bytes == 0) return;
    if (bytes % 64 != 0) {
      std::memcpy(remote, local, bytes);
      return;
    }
    for (std::size_t line = 0; line < bytes; line += 64) {
      char* to = static_cast<char*>(remote) + line;
      const char* from = static_cast<const char*>(local) + line;
      std::memcpy(to, from, 60);
      std::uint32_t last = 0;
      std::memcpy(&last, from + 60, sizeof last);
      if (reinterpret_cast<std::uintptr_t>(to) % 4 == 0) {
        __atomic_store_n(reinterpret_cast<std::uint32_t*>(to + 60), last, __ATOMIC_RELEASE);
      } else {
        std::memcpy(to + 60, &last, sizeof last);
      }
    }
  }

  void post(QueuePair& qp, const ibv_send_wr& request) {
    Work work{&qp, request, request.num_sge != 0 ? *request.sg_list : ibv_sge{}, {}};
    qp.posted++;
    qp.reported += (request.send_flags & IBV_SEND_SIGNALED) != 0;
    if (work.is_inlined() && work.segment.length != 0) {
      if (work.segment.length > kMaxInline) throw std::logic_error("too much to be inlined");
      std::memcpy(work.inlined.data(), reinterpret_cast<const void*>(work.segment.addr), work.segment.length);
    }
    if (holding)
      held.push_back(work);
    else
      carry_out(work);
  }
};

struct FakeVerbs::Device {
  ibv_device verbs{};
  DeviceDescription description;
  Nic* nic = nullptr;
};

namespace {

// The data path calls through the context's table; what it belongs to is found by the queue's context.
struct Context {
  ibv_context verbs{};
  void* nic = nullptr;
  int index = 0;
};

}  // namespace

std::array<std::uint8_t, 16> ipv4_gid(int a, int b, int c, int d) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, std::uint8_t(a), std::uint8_t(b), std::uint8_t(c), std::uint8_t(d)};
}

FakeVerbs::FakeVerbs(std::vector<DeviceDescription> devices) : nic_(std::make_unique<Nic>()) {
  for (DeviceDescription& description : devices) {
    auto device = std::make_unique<Device>();
    device->verbs.transport_type = description.transport;
    device->description = std::move(description);
    device->nic = nic_.get();
    devices_.push_back(std::move(device));
  }
}

FakeVerbs::~FakeVerbs() = default;

void FakeVerbs::hold() {
  std::lock_guard lock(nic_->mutex);
  nic_->holding = true;
}

std::size_t FakeVerbs::held() const {
  std::lock_guard lock(nic_->mutex);
  return nic_->held.size();
}

void FakeVerbs::deliver(std::size_t place) {
  std::lock_guard lock(nic_->mutex);
  const Work work = nic_->held.at(place);
  nic_->held.erase(nic_->held.begin() + std::ptrdiff_t(place));
  nic_->carry_out(work);
}

std::uint32_t FakeVerbs::which(std::size_t place) const {
  std::lock_guard lock(nic_->mutex);
  return nic_->held.at(place).from->verbs.qp_num;
}

void FakeVerbs::release() {
  while (held() != 0)
    deliver(0);
  std::lock_guard lock(nic_->mutex);
  nic_->holding = false;
}

void FakeVerbs::fail_next(ibv_wc_status status) {
  std::lock_guard lock(nic_->mutex);
  nic_->failure = status;
}

std::map<std::uint32_t, std::size_t> FakeVerbs::posted_by_queue_pair() const {
  std::lock_guard lock(nic_->mutex);
  std::map<std::uint32_t, std::size_t> out;
  for (const auto& [number, qp] : nic_->queue_pairs)
    out[number] = qp->posted;
  return out;
}

int FakeVerbs::objects() const {
  std::lock_guard lock(nic_->mutex);
  return nic_->objects;
}

int FakeVerbs::receiver_not_ready() const {
  std::lock_guard lock(nic_->mutex);
  return nic_->not_ready;
}

std::vector<std::uint8_t> FakeVerbs::traffic_classes() const {
  std::lock_guard lock(nic_->mutex);
  return nic_->traffic_classes;
}

std::vector<ibv_gid> FakeVerbs::destinations() const {
  std::lock_guard lock(nic_->mutex);
  return nic_->destinations;
}

void FakeVerbs::set_port(const std::string& device, int port, const PortDescription& description) {
  std::lock_guard lock(nic_->mutex);
  for (auto& known : devices_) {
    if (known->description.name == device) known->description.ports.at(std::size_t(port) - 1) = description;
  }
}

void FakeVerbs::raise(const std::string& device, ibv_event_type event, int port) {
  std::lock_guard lock(nic_->mutex);
  for (auto& [context, events] : nic_->events) {
    if (devices_[std::size_t(ours<Context>(context).index)]->description.name != device) continue;
    events.push_back({event, port});
    const std::uint64_t one = 1;
    (void)!::write(context->async_fd, &one, sizeof one);
  }
}

ibv_device** FakeVerbs::get_device_list(int* count) {
  auto** list = new ibv_device*[devices_.size() + 1]();
  for (std::size_t i = 0; i < devices_.size(); i++)
    list[i] = &devices_[i]->verbs;
  *count = int(devices_.size());
  return list;
}

void FakeVerbs::free_device_list(ibv_device** list) {
  delete[] list;
}

const char* FakeVerbs::get_device_name(ibv_device* device) {
  return ours<Device>(device).description.name.c_str();
}

ibv_context* FakeVerbs::open_device(ibv_device* device) {
  Device& known = ours<Device>(device);
  if (known.description.open_error != 0) {
    errno = known.description.open_error;
    return nullptr;
  }
  auto* context = new Context;
  context->nic = nic_.get();
  for (std::size_t i = 0; i < devices_.size(); i++) {
    if (devices_[i].get() == &known) context->index = int(i);
  }
  context->verbs.device = device;
  context->verbs.async_fd = eventfd(0, EFD_CLOEXEC);
  context->verbs.ops.poll_cq = [](ibv_cq* cq, int most, ibv_wc* out) {
    Nic& nic = *static_cast<Nic*>(ours<Context>(cq->context).nic);
    std::lock_guard lock(nic.mutex);
    int count = 0;
    while (count < most && ours<CompletionQueue>(cq).completions.pop(out[count]))
      count++;
    return count;
  };
  context->verbs.ops.post_send = [](ibv_qp* qp, ibv_send_wr* list, ibv_send_wr**) {
    Nic& nic = *static_cast<Nic*>(ours<Context>(qp->context).nic);
    std::lock_guard lock(nic.mutex);
    for (; list; list = list->next)
      nic.post(ours<QueuePair>(qp), *list);
    return 0;
  };
  context->verbs.ops.post_recv = [](ibv_qp* qp, ibv_recv_wr* list, ibv_recv_wr**) {
    Nic& nic = *static_cast<Nic*>(ours<Context>(qp->context).nic);
    std::lock_guard lock(nic.mutex);
    for (; list; list = list->next) {
      if (!ours<QueuePair>(qp).receives.push(list->wr_id)) return ENOMEM;
    }
    return 0;
  };
  context->verbs.ops.post_srq_recv = [](ibv_srq* srq, ibv_recv_wr* list, ibv_recv_wr**) {
    Nic& nic = *static_cast<Nic*>(ours<Context>(srq->context).nic);
    std::lock_guard lock(nic.mutex);
    for (; list; list = list->next) {
      if (!ours<SharedReceives>(srq).identifiers.push(list->wr_id)) return ENOMEM;
    }
    return 0;
  };
  std::lock_guard lock(nic_->mutex);
  nic_->objects++;
  nic_->events[&context->verbs];
  return &context->verbs;
}

int FakeVerbs::close_device(ibv_context* context) {
  std::lock_guard lock(nic_->mutex);
  nic_->objects--;
  nic_->events.erase(context);
  close(context->async_fd);
  delete &ours<Context>(context);
  return 0;
}

int FakeVerbs::query_device(ibv_context* context, ibv_device_attr* attributes) {
  const DeviceDescription& known = devices_[std::size_t(ours<Context>(context).index)]->description;
  if (known.query_error != 0) return known.query_error;
  *attributes = {};
  attributes->sys_image_guid = known.guid;
  attributes->phys_port_cnt = std::uint8_t(known.ports.size());
  attributes->max_qp = known.max_qp;
  attributes->max_qp_wr = known.max_qp_wr;
  attributes->max_cqe = 1 << 20;
  attributes->vendor_id = 0x02c9;
  attributes->max_srq = known.max_srq;
  attributes->max_srq_wr = known.max_srq_wr;
  return 0;
}

int FakeVerbs::query_port(ibv_context* context, std::uint8_t port, verbs::PortAttributes* attributes) {
  std::lock_guard lock(nic_->mutex);
  const PortDescription& known = devices_[std::size_t(ours<Context>(context).index)]->description.ports.at(port - 1u);
  if (known.query_error != 0) return known.query_error;
  *attributes = {};
  attributes->state = known.state;
  attributes->link_layer = known.link_layer;
  attributes->lid = known.lid;
  attributes->active_mtu = attributes->max_mtu = known.mtu;
  attributes->active_speed = known.active_speed;
  attributes->wide_speed = known.wide_speed;
  attributes->active_width = known.active_width;
  attributes->gid_tbl_len = int(known.gids.size());
  return 0;
}

int FakeVerbs::query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
  std::lock_guard lock(nic_->mutex);
  const PortDescription& known = devices_[std::size_t(ours<Context>(context).index)]->description.ports.at(port - 1u);
  if (std::size_t(index) >= known.gids.size()) return EINVAL;
  std::memcpy(gid->raw, known.gids[std::size_t(index)].data(), sizeof gid->raw);
  return 0;
}

int FakeVerbs::get_async_event(ibv_context* context, ibv_async_event* event) {
  std::lock_guard lock(nic_->mutex);
  std::deque<Event>& events = nic_->events[context];
  if (events.empty()) {
    errno = EAGAIN;
    return -1;
  }
  std::uint64_t ignored = 0;
  if (events.size() == 1) (void)!::read(context->async_fd, &ignored, sizeof ignored);
  event->event_type = events.front().type;
  event->element.port_num = events.front().port;
  events.pop_front();
  return 0;
}

void FakeVerbs::ack_async_event(ibv_async_event*) {}
const char* FakeVerbs::event_type_str(ibv_event_type) {
  return "an event";
}
const char* FakeVerbs::wc_status_str(ibv_wc_status status) {
  return status == IBV_WC_RETRY_EXC_ERR ? "transport retry counter exceeded" : "a status";
}

ibv_pd* FakeVerbs::alloc_pd(ibv_context* context) {
  std::lock_guard lock(nic_->mutex);
  nic_->objects++;
  auto* pd = new ibv_pd{};
  pd->context = context;
  return pd;
}

int FakeVerbs::dealloc_pd(ibv_pd* pd) {
  std::lock_guard lock(nic_->mutex);
  nic_->objects--;
  delete pd;
  return 0;
}

ibv_mr* FakeVerbs::reg_mr(ibv_pd* pd, void* address, std::size_t length, unsigned access) {
  const DeviceDescription& known = devices_[std::size_t(ours<Context>(pd->context).index)]->description;
  if (reinterpret_cast<std::uint64_t>(address) >= gpu_memory && known.gpu_pointer_error != 0) {
    errno = known.gpu_pointer_error;
    return nullptr;
  }
  return make_region(pd, address, length, access);
}

ibv_mr* FakeVerbs::make_region(ibv_pd* pd, void* address, std::size_t length, unsigned) {
  std::lock_guard lock(nic_->mutex);
  if (reinterpret_cast<std::uint64_t>(address) >= gpu_memory) {
    if (length > gpu_window) {
      errno = ENOMEM;
      return nullptr;
    }
    gpu_window -= length;
  }
  nic_->objects++;
  auto* mr = new ibv_mr{};
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = address;
  mr->length = length;
  const auto begin = reinterpret_cast<std::uint64_t>(address);
  nic_->regions.push_back({pd->context, begin, begin + length});
  mr->lkey = mr->rkey = std::uint32_t(nic_->regions.size() - 1);
  return mr;
}

ibv_mr* FakeVerbs::reg_dmabuf_mr(ibv_pd* pd, std::uint64_t, std::size_t length, std::uint64_t iova, int fd,
                                 unsigned access) {
  const DeviceDescription& known = devices_[std::size_t(ours<Context>(pd->context).index)]->description;
  if (known.dmabuf_error == 0 && fd >= 0) return make_region(pd, reinterpret_cast<void*>(iova), length, access);
  errno = known.dmabuf_error == 0 ? EBADF : known.dmabuf_error;
  return nullptr;
}

int FakeVerbs::dereg_mr(ibv_mr* mr) {
  std::lock_guard lock(nic_->mutex);
  nic_->objects--;
  nic_->regions[mr->lkey] = {};
  if (reinterpret_cast<std::uint64_t>(mr->addr) >= gpu_memory) gpu_window += mr->length;
  delete mr;
  return 0;
}

ibv_cq* FakeVerbs::create_cq(ibv_context* context, int entries) {
  std::lock_guard lock(nic_->mutex);
  nic_->objects++;
  auto* cq = new CompletionQueue(entries);
  cq->verbs.context = context;
  return &cq->verbs;
}

int FakeVerbs::destroy_cq(ibv_cq* cq) {
  std::lock_guard lock(nic_->mutex);
  nic_->objects--;
  delete &ours<CompletionQueue>(cq);
  return 0;
}

ibv_srq* FakeVerbs::create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) {
  std::lock_guard lock(nic_->mutex);
  nic_->objects++;
  auto* srq = new SharedReceives(attributes->attr.max_wr);
  srq->verbs.context = pd->context;
  return &srq->verbs;
}

int FakeVerbs::destroy_srq(ibv_srq* srq) {
  std::lock_guard lock(nic_->mutex);
  nic_->objects--;
  delete &ours<SharedReceives>(srq);
  return 0;
}

ibv_qp* FakeVerbs::create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  std::lock_guard lock(nic_->mutex);
  nic_->objects++;
  const DeviceDescription& known = devices_[std::size_t(ours<Context>(pd->context).index)]->description;
  if (attributes->cap.max_inline_data > known.max_inline) {
    nic_->objects--;
    errno = EINVAL;
    return nullptr;
  }
  if (nic_->queue_pairs.size() >= std::size_t(known.queue_pairs_left)) {
    nic_->objects--;
    errno = ENOMEM;
    return nullptr;
  }
  auto* qp = new QueuePair(attributes->cap.max_recv_wr);
  attributes->cap.max_inline_data = std::min(known.max_inline, std::uint32_t(kMaxInline));
  qp->extensions = known.extensions;
  qp->verbs.context = pd->context;
  qp->verbs.qp_num = nic_->next_number++;
  qp->verbs.send_cq = attributes->send_cq;
  qp->verbs.recv_cq = attributes->recv_cq;
  qp->verbs.srq = attributes->srq;
  nic_->queue_pairs[qp->verbs.qp_num] = qp;
  return &qp->verbs;
}

int FakeVerbs::modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  std::lock_guard lock(nic_->mutex);
  if ((mask & IBV_QP_DEST_QPN) != 0) ours<QueuePair>(qp).peer = attributes->dest_qp_num;
  if (attributes->qp_state == IBV_QPS_RTR && ready_to_receive_error != 0) return ready_to_receive_error;
  if ((mask & IBV_QP_AV) != 0) {
    nic_->traffic_classes.push_back(attributes->ah_attr.grh.traffic_class);
    nic_->destinations.push_back(attributes->ah_attr.grh.dgid);
  }
  return 0;
}

int FakeVerbs::destroy_qp(ibv_qp* qp) {
  std::lock_guard lock(nic_->mutex);
  nic_->objects--;
  nic_->queue_pairs.erase(qp->qp_num);
  QueuePair* mine = &ours<QueuePair>(qp);
  std::erase_if(nic_->held, [&](const Work& work) { return work.from == mine; });
  delete mine;
  return 0;
}

int FakeVerbs::query_ece(ibv_qp* qp, ibv_ece* ece) {
  std::lock_guard lock(nic_->mutex);
  *ece = ours<QueuePair>(qp).extensions;
  return ece->vendor_id != 0 ? 0 : EOPNOTSUPP;
}

// Both can what both offer.
int FakeVerbs::set_ece(ibv_qp* qp, ibv_ece* ece) {
  std::lock_guard lock(nic_->mutex);
  QueuePair& mine = ours<QueuePair>(qp);
  if (mine.extensions.vendor_id != ece->vendor_id) return EINVAL;
  mine.extensions.options &= ece->options;
  mine.extensions_set = true;
  return 0;
}

std::uint32_t FakeVerbs::extensions_set(std::uint32_t queue_pair) const {
  std::lock_guard lock(nic_->mutex);
  const QueuePair& mine = *nic_->queue_pairs.at(queue_pair);
  return mine.extensions_set ? mine.extensions.options : 0;
}

std::size_t FakeVerbs::reported(std::uint32_t queue_pair) const {
  std::lock_guard lock(nic_->mutex);
  return nic_->queue_pairs.at(queue_pair)->reported;
}

int FakeVerbs::modify_qp_udp_sport(ibv_qp*, std::uint16_t) {
  return 0;
}

}  // namespace weft::fake
