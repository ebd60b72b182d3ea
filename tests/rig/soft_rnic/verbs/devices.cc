// Devices, contexts and what can be asked of them: attributes, ports, GIDs, asynchronous events.
#include <net/if.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "tests/rig/soft_rnic/verbs/handles.h"
#include "tests/rig/soft_rnic/verbs/host.h"

// The header's macros would get in the way of defining the functions behind them.
#undef ibv_query_port

using weft::soft_rnic::AsyncEvents;
using weft::soft_rnic::ContextHandle;
using weft::soft_rnic::DeviceDescription;
using weft::soft_rnic::DeviceGid;
using weft::soft_rnic::DeviceHandle;
using weft::soft_rnic::handle_of;
using weft::soft_rnic::Host;

namespace {

const DeviceDescription& description_of(ibv_context* context) {
  return handle_of(context).nic->device();
}

// active_speed and active_width as ibv_devinfo and NCCL decode them: lanes of 2.5 to 100 Gbit/s, one or four of them.
struct Speed {
  std::uint32_t mbps;
  std::uint8_t speed;
  std::uint8_t width;
};
constexpr std::uint8_t kOneLane = 1;
constexpr std::uint8_t kFourLanes = 2;
constexpr Speed kSpeeds[] = {
    {400000, 128, kFourLanes}, {200000, 64, kFourLanes}, {100000, 32, kFourLanes}, {56000, 16, kFourLanes},
    {40000, 4, kFourLanes},    {25000, 32, kOneLane},    {10000, 4, kOneLane},     {0, 1, kOneLane},
};

Speed speed_of(std::uint32_t mbps) {
  for (const Speed& speed : kSpeeds) {
    if (mbps >= speed.mbps) return speed;
  }
  return kSpeeds[std::size(kSpeeds) - 1];
}

constexpr std::uint32_t kPortCapabilities = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
constexpr std::uint8_t kPhysicalLinkUp = 5;
constexpr std::uint8_t kPhysicalDisabled = 3;

ibv_gid_entry gid_entry(const DeviceDescription& device, std::uint32_t index) {
  ibv_gid_entry entry{};
  entry.gid = device.gids[index].gid;
  entry.gid_index = index;
  entry.port_num = 1;
  entry.gid_type = device.gids[index].type;
  entry.ndev_ifindex = if_nametoindex(device.netdev.c_str());
  return entry;
}

}  // namespace

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  const auto* devices = Host::instance().devices();
  const std::size_t size = devices != nullptr ? devices->size() : 0;
  if (count != nullptr) *count = static_cast<int>(size);
  if (devices == nullptr) {
    errno = EINVAL;
    return nullptr;
  }
  auto** list = static_cast<ibv_device**>(std::calloc(size + 1, sizeof(ibv_device*)));
  for (std::size_t index = 0; list != nullptr && index < size; ++index)
    list[index] = (*devices)[index].get();
  return list;
}

void ibv_free_device_list(ibv_device** list) {
  std::free(list);
}

const char* ibv_get_device_name(ibv_device* device) {
  return device->name;
}

__be64 ibv_get_device_guid(ibv_device* device) {
  return static_cast<DeviceHandle*>(device)->description->guid;
}

int ibv_get_device_index(ibv_device* device) {
  return static_cast<DeviceHandle*>(device)->index;
}

ibv_context* ibv_open_device(ibv_device* device) {
  auto nic = Host::instance().open(*static_cast<DeviceHandle*>(device)->description);
  if (!nic) {
    errno = nic.error().code != 0 ? nic.error().code : EIO;
    return nullptr;
  }
  auto* context = new ContextHandle();
  context->nic = nic.take();
  context->device = device;
  context->ops = weft::soft_rnic::data_path_operations();
  context->cmd_fd = -1;
  context->async_fd = context->events.descriptor();
  context->num_comp_vectors = 1;
  context->abi_compat = nullptr;  // no extended operations: verbs.h then calls the plain functions
  context->nic->add_listener(&context->events);
  return context;
}

int ibv_close_device(ibv_context* context) {
  ContextHandle& handle = handle_of(context);
  handle.nic->remove_listener(&handle.events);
  Host::instance().publish_statistics();
  delete &handle;
  return 0;
}

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  const auto taken = handle_of(context).events.wait();
  if (!taken) return -1;
  *event = *taken;
  return 0;
}

void ibv_ack_async_event(ibv_async_event*) {}

int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
  const DeviceDescription& device = description_of(context);
  *attributes = {};
  std::strcpy(attributes->fw_ver, "1.0.0");
  attributes->node_guid = device.guid;
  attributes->sys_image_guid = device.guid;
  attributes->max_mr_size = ~0ULL;
  attributes->page_size_cap = 0xfffff000;
  attributes->vendor_id = 0xffffff;  // nobody's
  attributes->max_qp = static_cast<int>(device.capabilities.max_queue_pairs);
  attributes->max_qp_wr = weft::soft_rnic::kMaxWorkRequests;
  attributes->max_sge = weft::soft_rnic::kMaxPieces;
  attributes->max_sge_rd = weft::soft_rnic::kMaxPieces;
  attributes->max_cq = 65535;
  attributes->max_cqe = weft::soft_rnic::kMaxCompletions;
  attributes->max_mr = 1 << 20;
  attributes->max_pd = 65535;
  attributes->max_qp_rd_atom = weft::soft_rnic::kMaxReads;
  attributes->max_res_rd_atom = attributes->max_qp * weft::soft_rnic::kMaxReads;
  attributes->max_qp_init_rd_atom = weft::soft_rnic::kMaxReads;
  attributes->atomic_cap = IBV_ATOMIC_GLOB;
  attributes->max_srq = static_cast<int>(device.capabilities.max_shared_receive_queues);
  attributes->max_srq_wr = device.capabilities.max_shared_receive_queues > 0 ? weft::soft_rnic::kMaxWorkRequests : 0;
  attributes->max_srq_sge = device.capabilities.max_shared_receive_queues > 0 ? weft::soft_rnic::kMaxPieces : 0;
  attributes->max_pkeys = 1;
  attributes->phys_port_cnt = 1;
  return 0;
}

int ibv_query_port(ibv_context* context, uint8_t port, struct _compat_ibv_port_attr* compatible) {
  if (port != 1) return EINVAL;
  const DeviceDescription& device = description_of(context);
  const bool up = handle_of(context).nic->port_up();
  const Speed speed = speed_of(device.speed_mbps);
  auto* attributes = reinterpret_cast<ibv_port_attr*>(compatible);
  // Callers of the old function have a structure that ends before port_cap_flags2.
  std::memset(attributes, 0, offsetof(ibv_port_attr, port_cap_flags2));
  attributes->state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attributes->max_mtu = IBV_MTU_4096;
  attributes->active_mtu = device.mtu;
  attributes->gid_tbl_len = static_cast<int>(device.gids.size());
  attributes->port_cap_flags = kPortCapabilities;
  attributes->max_msg_sz = 1U << 31;
  attributes->pkey_tbl_len = 1;
  attributes->max_vl_num = 1;
  attributes->active_speed = speed.speed;
  attributes->active_width = speed.width;
  attributes->phys_state = up ? kPhysicalLinkUp : kPhysicalDisabled;
  attributes->link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}

int ibv_query_gid(ibv_context* context, uint8_t port, int index, ibv_gid* gid) {
  const auto& gids = description_of(context).gids;
  if (port != 1 || index < 0 || static_cast<std::size_t>(index) >= gids.size()) {
    errno = EINVAL;
    return -1;
  }
  *gid = gids[static_cast<std::size_t>(index)].gid;
  return 0;
}

int _ibv_query_gid_ex(ibv_context* context, uint32_t port, uint32_t index, ibv_gid_entry* entry, uint32_t flags,
                      size_t size) {
  const DeviceDescription& device = description_of(context);
  if (flags != 0 || size < sizeof *entry || port != 1 || index >= device.gids.size()) return EINVAL;
  const bool empty = std::all_of(std::begin(device.gids[index].gid.raw), std::end(device.gids[index].gid.raw),
                                 [](std::uint8_t byte) { return byte == 0; });
  if (empty) return ENODATA;
  *entry = gid_entry(device, index);
  return 0;
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, size_t count, uint32_t flags, size_t size) {
  const DeviceDescription& device = description_of(context);
  ssize_t filled = 0;
  for (std::uint32_t index = 0; index < device.gids.size() && static_cast<size_t>(filled) < count; ++index) {
    auto* place = reinterpret_cast<std::uint8_t*>(entries) + static_cast<size_t>(filled) * size;
    if (_ibv_query_gid_ex(context, 1, index, reinterpret_cast<ibv_gid_entry*>(place), flags, size) == 0) ++filled;
  }
  return filled;
}

// For tools of rdma-core (ibv_devinfo -v). The type as its private enumeration has it: 0 is "IB/RoCE v1", 1 is "RoCE
// v2".
int ibv_query_gid_type(ibv_context* context, uint8_t port, unsigned index, unsigned* type) {
  const auto& gids = description_of(context).gids;
  if (port != 1 || index >= gids.size()) {
    errno = EINVAL;
    return -1;
  }
  *type = gids[index].type == IBV_GID_TYPE_ROCE_V2 ? 1 : 0;
  return 0;
}

int ibv_query_pkey(ibv_context*, uint8_t, int index, __be16* key) {
  if (index != 0) {
    errno = EINVAL;
    return -1;
  }
  *key = 0xffff;
  return 0;
}

int ibv_get_pkey_index(ibv_context*, uint8_t, __be16 key) {
  return key == 0xffff ? 0 : -1;
}

int ibv_fork_init() {
  return 0;
}

ibv_fork_status ibv_is_fork_initialized() {
  return IBV_FORK_UNNEEDED;
}

}  // extern "C"
