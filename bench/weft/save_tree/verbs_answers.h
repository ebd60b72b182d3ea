// What libibverbs answered to the search for devices, and the file weft/verbs.json of a saved tree that holds it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/weft/save_tree/substitutes.h"
#include "common/result/result.h"

namespace weft::save_tree {

// Errors are errno values, 0 for success; the rest has verbs' names and codes (ibv_query_port(3) and so on).
struct PortAnswers {
  int query_error = 0;
  int state = 0;
  int link_layer = 0;
  int active_speed = 0;
  int active_width = 0;
  int active_mtu = 0;
  int gid_table_length = 0;
  std::map<int, Address> gids;  // those that are not zero
};

struct DeviceAnswers {
  std::string name;
  int transport = 0;
  int open_error = 0;
  int query_error = 0;
  std::string system_image_guid;  // 16 hexadecimal digits
  std::uint32_t vendor_id = 0;
  int ports_present = 0;
  int max_queue_pairs = 0;
  int max_queue_pair_work_requests = 0;
  int max_completion_queue_entries = 0;
  int max_shared_receive_queues = 0;
  int max_shared_receive_queue_work_requests = 0;
  int protection_domain_error = 0;
  int dmabuf_error = 0;  // of registering a descriptor that can't be one
  std::map<int, PortAnswers> ports;
};

struct VerbsAnswers {
  std::optional<Error> load_error;  // libibverbs can't be loaded
  bool optional_access = false;
  bool dmabuf = false;
  int list_error = 0;
  std::vector<DeviceAnswers> devices;
};

VerbsAnswers substituted(const VerbsAnswers& answers, Substitutes& substitutes);

std::string to_text(const VerbsAnswers& answers);
Result<VerbsAnswers> read_verbs_answers(const std::string& path);

}  // namespace weft::save_tree
