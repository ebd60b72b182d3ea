#include "bench/weft/save_tree/recorded_verbs.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "bench/weft/save_tree/hexadecimal.h"

namespace weft::save_tree {
namespace {

std::uint64_t guid_of(const std::string& digits) {
  std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
  for (std::size_t i = 0; i < bytes.size(); i++)
    bytes[i] = std::uint8_t(value_of(digits[2 * i]) << 4 | value_of(digits[2 * i + 1]));
  std::uint64_t guid = 0;
  std::memcpy(&guid, bytes.data(), sizeof guid);
  return guid;
}

}  // namespace

RecordedVerbs::RecordedVerbs(VerbsAnswers answers) : answers_(std::move(answers)) {
  for (const DeviceAnswers& device : answers_.devices) {
    Device& handles = devices_.emplace_back();
    handles.answers = &device;
    handles.device.transport_type = ibv_transport_type(device.transport);
    handles.context.device = &handles.device;
    handles.domain.context = handles.region.context = &handles.context;
  }
}

RecordedVerbs::Device& RecordedVerbs::handles_of(const ibv_device* device) {
  return *std::find_if(devices_.begin(), devices_.end(), [&](const Device& one) { return &one.device == device; });
}

const DeviceAnswers& RecordedVerbs::of(const ibv_device* device) const {
  return *std::find_if(devices_.begin(), devices_.end(), [&](const Device& one) {
            return &one.device == device;
          })->answers;
}

ibv_device** RecordedVerbs::get_device_list(int* count) {
  errno = answers_.list_error;
  if (answers_.list_error != 0) return nullptr;
  auto list = std::make_unique<ibv_device*[]>(devices_.size() + 1);
  *count = 0;
  for (Device& handles : devices_)
    list[std::size_t((*count)++)] = &handles.device;
  return list.release();
}

void RecordedVerbs::free_device_list(ibv_device** list) {
  const std::unique_ptr<ibv_device*[]> owner(list);
}

const char* RecordedVerbs::get_device_name(ibv_device* device) {
  return of(device).name.c_str();
}

ibv_context* RecordedVerbs::open_device(ibv_device* device) {
  errno = of(device).open_error;
  return errno == 0 ? &handles_of(device).context : nullptr;
}

int RecordedVerbs::query_device(ibv_context* context, ibv_device_attr* attributes) {
  const DeviceAnswers& device = of(context->device);
  *attributes = {};
  attributes->sys_image_guid = guid_of(device.system_image_guid);
  attributes->vendor_id = device.vendor_id;
  attributes->phys_port_cnt = std::uint8_t(device.ports_present);
  attributes->max_qp = device.max_queue_pairs;
  attributes->max_qp_wr = device.max_queue_pair_work_requests;
  attributes->max_cqe = device.max_completion_queue_entries;
  attributes->max_srq = device.max_shared_receive_queues;
  attributes->max_srq_wr = device.max_shared_receive_queue_work_requests;
  return device.query_error;
}

int RecordedVerbs::query_port(ibv_context* context, std::uint8_t port, verbs::PortAttributes* attributes) {
  const DeviceAnswers& device = of(context->device);
  const auto known = device.ports.find(port);
  if (known == device.ports.end()) return EINVAL;
  *attributes = {};
  if (known->second.query_error != 0) return known->second.query_error;
  attributes->state = ibv_port_state(known->second.state);
  attributes->link_layer = std::uint8_t(known->second.link_layer);
  // A code beyond 8 bits is in the other field.
  attributes->active_speed = std::uint8_t(known->second.active_speed & 0xff);
  attributes->wide_speed = std::uint32_t(known->second.active_speed);
  attributes->active_width = std::uint8_t(known->second.active_width);
  attributes->active_mtu = ibv_mtu(known->second.active_mtu);
  attributes->gid_tbl_len = known->second.gid_table_length;
  return 0;
}

int RecordedVerbs::query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
  const DeviceAnswers& device = of(context->device);
  const auto known = device.ports.find(port);
  if (known == device.ports.end()) return EINVAL;
  *gid = {};
  const auto found = known->second.gids.find(index);
  if (found != known->second.gids.end()) std::memcpy(gid->raw, found->second.data(), found->second.size());
  return 0;
}

ibv_pd* RecordedVerbs::alloc_pd(ibv_context* context) {
  errno = of(context->device).protection_domain_error;
  return errno == 0 ? &handles_of(context->device).domain : nullptr;
}

ibv_mr* RecordedVerbs::reg_dmabuf_mr(ibv_pd* pd, std::uint64_t, std::size_t, std::uint64_t, int, unsigned) {
  errno = of(pd->context->device).dmabuf_error;
  return errno == 0 ? &handles_of(pd->context->device).region : nullptr;
}

}  // namespace weft::save_tree
