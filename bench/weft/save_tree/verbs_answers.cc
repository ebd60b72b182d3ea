#include "bench/weft/save_tree/verbs_answers.h"

#include <arpa/inet.h>

#include <limits>

#include "bench/weft/save_tree/hexadecimal.h"
#include "common/json/strict.h"

namespace weft::save_tree {
namespace {

using nlohmann::ordered_json;

std::string address_text(const Address& address) {
  char text[INET6_ADDRSTRLEN];
  inet_ntop(AF_INET6, address.data(), text, sizeof text);
  return text;
}

ordered_json to_json(int number, const PortAnswers& port) {
  ordered_json gids = ordered_json::array();
  for (const auto& [index, gid] : port.gids)
    gids.push_back({{"index", index}, {"address", address_text(gid)}});
  return {{"number", number},
          {"query_error", port.query_error},
          {"state", port.state},
          {"link_layer", port.link_layer},
          {"active_speed", port.active_speed},
          {"active_width", port.active_width},
          {"active_mtu", port.active_mtu},
          {"gid_table_length", port.gid_table_length},
          {"gids", gids}};
}

ordered_json to_json(const DeviceAnswers& device) {
  ordered_json ports = ordered_json::array();
  for (const auto& [number, port] : device.ports)
    ports.push_back(to_json(number, port));
  return {{"name", device.name},
          {"transport", device.transport},
          {"open_error", device.open_error},
          {"query_error", device.query_error},
          {"system_image_guid", device.system_image_guid},
          {"vendor_id", device.vendor_id},
          {"ports_present", device.ports_present},
          {"max_queue_pairs", device.max_queue_pairs},
          {"max_queue_pair_work_requests", device.max_queue_pair_work_requests},
          {"max_completion_queue_entries", device.max_completion_queue_entries},
          {"max_shared_receive_queues", device.max_shared_receive_queues},
          {"max_shared_receive_queue_work_requests", device.max_shared_receive_queue_work_requests},
          {"protection_domain_error", device.protection_domain_error},
          {"dmabuf_error", device.dmabuf_error},
          {"ports", ports}};
}

int number(json::Fields& fields, std::string_view key, int low = 0, int high = std::numeric_limits<int>::max()) {
  return int(fields.integer(key, json::required, {low, high}));
}

PortAnswers read_port(json::Fields& fields) {
  PortAnswers port;
  port.query_error = number(fields, "query_error");
  port.state = number(fields, "state", 0, 255);
  port.link_layer = number(fields, "link_layer", 0, 255);
  port.active_speed = number(fields, "active_speed", 0, 1 << 20);
  port.active_width = number(fields, "active_width", 0, 255);
  port.active_mtu = number(fields, "active_mtu", 0, 255);
  port.gid_table_length = number(fields, "gid_table_length", 0, 65536);
  for (json::Fields& gid : fields.objects("gids")) {
    Address address{};
    if (inet_pton(AF_INET6, gid.text("address", json::required).c_str(), address.data()) != 1)
      gid.problem("address", "is not an IPv6 address");
    port.gids[number(gid, "index", 0, 65535)] = address;
    gid.done();
  }
  return port;
}

DeviceAnswers read_device(json::Fields& fields) {
  DeviceAnswers device;
  device.name = fields.text("name", json::required);
  device.transport = number(fields, "transport", -1);
  device.open_error = number(fields, "open_error");
  device.query_error = number(fields, "query_error");
  device.system_image_guid = fields.text("system_image_guid", json::required);
  if (device.system_image_guid.size() != 16 || !is_hexadecimal(device.system_image_guid))
    fields.problem("system_image_guid", "does not have 16 hexadecimal digits");
  device.vendor_id =
      std::uint32_t(fields.integer("vendor_id", json::required, {0, std::numeric_limits<std::uint32_t>::max()}));
  device.ports_present = number(fields, "ports_present", 0, 255);
  device.max_queue_pairs = number(fields, "max_queue_pairs");
  device.max_queue_pair_work_requests = number(fields, "max_queue_pair_work_requests");
  device.max_completion_queue_entries = number(fields, "max_completion_queue_entries");
  device.max_shared_receive_queues = number(fields, "max_shared_receive_queues");
  device.max_shared_receive_queue_work_requests = number(fields, "max_shared_receive_queue_work_requests");
  device.protection_domain_error = number(fields, "protection_domain_error");
  device.dmabuf_error = number(fields, "dmabuf_error");
  for (json::Fields& port : fields.objects("ports")) {
    const int place = number(port, "number", 1, 255);
    device.ports[place] = read_port(port);
    port.done();
  }
  return device;
}

}  // namespace

VerbsAnswers substituted(const VerbsAnswers& answers, Substitutes& substitutes) {
  VerbsAnswers out = answers;
  if (out.load_error) {
    for (std::string* part : {&out.load_error->what, &out.load_error->where, &out.load_error->hint})
      *part = substitutes.text(*part);
  }
  for (DeviceAnswers& device : out.devices) {
    device.name = substitutes.text(device.name);
    device.system_image_guid = substitutes.guid(device.system_image_guid);
    for (auto& [number, port] : device.ports) {
      for (auto& [index, gid] : port.gids)
        gid = substitutes.address(gid);
    }
  }
  return out;
}

std::string to_text(const VerbsAnswers& answers) {
  ordered_json out = {{"load_error", nullptr},
                      {"optional_access", answers.optional_access},
                      {"dmabuf", answers.dmabuf},
                      {"list_error", answers.list_error},
                      {"devices", ordered_json::array()}};
  if (const auto& error = answers.load_error)
    out["load_error"] = {{"what", error->what}, {"where", error->where}, {"code", error->code}, {"hint", error->hint}};
  for (const DeviceAnswers& device : answers.devices)
    out["devices"].push_back(to_json(device));
  return out.dump(1) + "\n";
}

Result<VerbsAnswers> read_verbs_answers(const std::string& path) {
  auto document = json::read_file(path);
  if (!document) return document.take_error();
  json::Problems problems;
  json::Fields fields(*document, path, problems);
  VerbsAnswers answers;
  const nlohmann::json* load_error = fields.raw("load_error");
  if (load_error && !load_error->is_null()) {
    json::Fields error(*load_error, path + ": load_error", problems);
    answers.load_error = Error{error.text("what", json::required), error.text("where", json::required),
                               number(error, "code"), error.text("hint", json::required)};
    error.done();
  }
  answers.optional_access = fields.boolean("optional_access", json::required);
  answers.dmabuf = fields.boolean("dmabuf", json::required);
  answers.list_error = number(fields, "list_error");
  for (json::Fields& device : fields.objects("devices")) {
    answers.devices.push_back(read_device(device));
    device.done();
  }
  fields.done();
  if (auto error = problems.error()) return *error;
  return answers;
}

}  // namespace weft::save_tree
