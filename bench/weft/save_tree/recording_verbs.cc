#include "bench/weft/save_tree/recording_verbs.h"

#include <array>
#include <cerrno>
#include <cstring>

#include "bench/weft/save_tree/hexadecimal.h"

namespace weft::save_tree {
namespace {

// As GUIDs are written: the bytes in the order in which they lie in memory (verbs has them in network order).
std::string digits_of(std::uint64_t guid) {
  std::array<std::uint8_t, sizeof guid> bytes;
  std::memcpy(bytes.data(), &guid, sizeof guid);
  return to_hexadecimal(bytes);
}

}  // namespace

RecordingVerbs::RecordingVerbs(std::unique_ptr<verbs::Verbs> asked, VerbsAnswers& answers)
    : asked_(std::move(asked)), answers_(answers) {
  answers_.optional_access = asked_->has_optional_access();
  answers_.dmabuf = asked_->has_dmabuf();
}

ibv_device** RecordingVerbs::get_device_list(int* count) {
  ibv_device** list = asked_->get_device_list(count);
  answers_.list_error = list ? 0 : errno;
  for (int i = 0; list && i < *count; i++) {
    devices_[list[i]] = answers_.devices.size();
    DeviceAnswers& device = answers_.devices.emplace_back();
    device.name = asked_->get_device_name(list[i]);
    device.transport = list[i]->transport_type;
    device.system_image_guid = digits_of(0);
  }
  return list;
}

void RecordingVerbs::free_device_list(ibv_device** list) {
  asked_->free_device_list(list);
}

const char* RecordingVerbs::get_device_name(ibv_device* device) {
  return asked_->get_device_name(device);
}

ibv_context* RecordingVerbs::open_device(ibv_device* device) {
  ibv_context* context = asked_->open_device(device);
  if (!context) answers_.devices[devices_.at(device)].open_error = errno;
  return context;
}

int RecordingVerbs::close_device(ibv_context* context) {
  return asked_->close_device(context);
}

int RecordingVerbs::query_device(ibv_context* context, ibv_device_attr* attributes) {
  DeviceAnswers& device = of(context);
  device.query_error = asked_->query_device(context, attributes);
  if (device.query_error != 0) return device.query_error;
  device.system_image_guid = digits_of(attributes->sys_image_guid);
  device.vendor_id = attributes->vendor_id;
  device.ports_present = attributes->phys_port_cnt;
  device.max_queue_pairs = attributes->max_qp;
  device.max_queue_pair_work_requests = attributes->max_qp_wr;
  device.max_completion_queue_entries = attributes->max_cqe;
  device.max_shared_receive_queues = attributes->max_srq;
  device.max_shared_receive_queue_work_requests = attributes->max_srq_wr;
  return 0;
}

int RecordingVerbs::query_port(ibv_context* context, std::uint8_t port, verbs::PortAttributes* attributes) {
  PortAnswers& answer = of(context).ports[port];
  answer.query_error = asked_->query_port(context, port, attributes);
  if (answer.query_error != 0) return answer.query_error;
  answer.state = attributes->state;
  answer.link_layer = attributes->link_layer;
  answer.active_speed = int(attributes->speed_code());
  answer.active_width = attributes->active_width;
  answer.active_mtu = attributes->active_mtu;
  answer.gid_table_length = attributes->gid_tbl_len;
  return 0;
}

int RecordingVerbs::query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
  const int failed = asked_->query_gid(context, port, index, gid);
  Address bytes;
  std::memcpy(bytes.data(), gid->raw, bytes.size());
  if (failed == 0 && bytes != Address{}) of(context).ports[port].gids[index] = bytes;
  return failed;
}

ibv_pd* RecordingVerbs::alloc_pd(ibv_context* context) {
  ibv_pd* domain = asked_->alloc_pd(context);
  if (!domain) of(context).protection_domain_error = errno;
  return domain;
}

int RecordingVerbs::dealloc_pd(ibv_pd* pd) {
  return asked_->dealloc_pd(pd);
}

ibv_mr* RecordingVerbs::reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                                      unsigned access) {
  ibv_mr* region = asked_->reg_dmabuf_mr(pd, offset, length, iova, fd, access);
  const int error = region ? 0 : errno;
  of(pd->context).dmabuf_error = error;
  errno = error;
  return region;
}

int RecordingVerbs::dereg_mr(ibv_mr* mr) {
  return asked_->dereg_mr(mr);
}

}  // namespace weft::save_tree
