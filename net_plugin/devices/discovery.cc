#include "net_plugin/devices/discovery.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "common/text/format.h"
#include "net_plugin/verbs/handles.h"

namespace weft::devices {
namespace {

namespace fs = std::filesystem;

// More than any host has; a fabric of virtual functions may show many (F24).
constexpr std::size_t kMostPorts = 32;

// What sysfs says of one RDMA device.
class Sysfs {
 public:
  Sysfs(const FileTree& files, const std::string& device) : files_(files), device_(fs::path(kDevices) / device) {}

  // Names of all RDMA devices, in order.
  static std::vector<std::string> devices(const FileTree& files) {
    std::vector<std::string> names = files.names(kDevices);
    std::erase_if(names, [](const std::string& name) { return name[0] == '.'; });
    return names;
  }

  std::string pci_path() const { return files_.real_path(device_ / "device").string(); }

  // iWARP devices are Ethernet as well, and no RoCE ("4: RNIC"; ibv_node_type of the verbs manual).
  bool is_iwarp() const { return files_.first_line(device_ / "node_type").value_or("").rfind("4:", 0) == 0; }

  // Ports whose link layer is Ethernet, in order.
  std::vector<int> ethernet_ports() const {
    std::vector<int> ports;
    for (const std::string& number : files_.names(device_ / "ports")) {
      int port = 0;
      const auto [stopped, wrong] = std::from_chars(number.data(), number.data() + number.size(), port);
      const bool plain = wrong == std::errc() && stopped == number.data() + number.size();
      if (plain && files_.first_line(device_ / "ports" / number / "link_layer") == "Ethernet") ports.push_back(port);
    }
    std::sort(ports.begin(), ports.end());
    return ports;
  }

  bool knows_gid_types(int port) const { return files_.is_folder(gid_types(port)); }

  GidType gid_type(int port, int index) const {
    const auto line = files_.first_line(gid_types(port) / std::to_string(index));
    if (!line) return GidType::unknown;
    if (line->find("RoCE v2") != std::string::npos) return GidType::roce_v2;
    return line->find("RoCE v1") != std::string::npos ? GidType::roce_v1 : GidType::unknown;
  }

  // Whether device/net/ is there and empty: the interface is in another network namespace (F18).
  bool interface_is_elsewhere() const { return files_.is_empty_folder(device_ / "device/net"); }

  // PCI address of the physical function that this virtual one belongs to; empty for a physical one.
  std::string physical_function() const { return files_.real_path(device_ / "device/physfn").filename().string(); }

  bool peer_memory() const {
    for (const char* module : {"kernel/mm/memory_peers/nv_mem/version", "kernel/mm/memory_peers/nv_mem_nc/version",
                               "module/nvidia_peermem/version"}) {
      if (files_.exists(module)) return true;
    }
    return false;
  }

 private:
  static constexpr const char* kDevices = "class/infiniband";

  fs::path gid_types(int port) const { return device_ / "ports" / std::to_string(port) / "gid_attrs/types"; }

  const FileTree& files_;
  fs::path device_;
};

std::vector<GidEntry> read_gids(verbs::Verbs& verbs, ibv_context* context, const Sysfs& sysfs, int port, int length) {
  std::vector<GidEntry> table;
  const bool typed = sysfs.knows_gid_types(port);
  for (int index = 0; index < length; index++) {
    GidEntry entry;
    entry.index = index;
    ibv_gid gid{};
    if (verbs.query_gid(context, std::uint8_t(port), index, &gid) == 0) {
      std::memcpy(entry.bytes.data(), gid.raw, entry.bytes.size());
    }
    // The type of an empty slot is not asked for: there may be hundreds (F10, F14).
    if (!is_zero(entry)) entry.type = typed ? sysfs.gid_type(port, index) : GidType::roce_v2;
    table.push_back(entry);
  }
  return table;
}

// The driver's answer to a descriptor that can't be one tells whether it would take a real one, as NCCL's own transport
// asks.
bool takes_dmabuf(verbs::Verbs& verbs, ibv_context* context) {
  if (!verbs.has_dmabuf()) return false;
  verbs::ProtectionDomain domain(verbs.alloc_pd(context), {&verbs});
  if (!domain) return false;
  errno = 0;
  verbs::MemoryRegion region(verbs.reg_dmabuf_mr(domain.get(), 0, 0, 0, -1, 0), {&verbs});
  return region != nullptr || (errno != EOPNOTSUPP && errno != EPROTONOSUPPORT && errno != ENOSYS);
}

struct Candidate {
  Port port;
  std::string physical_function;
};

class Search {
 public:
  // `verbs` null: libibverbs can't be loaded, for `reason`.
  Search(verbs::Verbs* verbs, const Error& reason, const Wishes& wishes, const FileTree& files, const GpuTrial* trial)
      : verbs_(verbs), reason_(reason), wishes_(wishes), files_(files), trial_(trial) {}

  Discovery run() {
    if (verbs_) read_devices();
    add_devices_only_in_sysfs();
    std::vector<PortName> names;
    for (const Candidate& candidate : candidates_)
      names.push_back({candidate.port.device, candidate.port.port});
    found_.trouble = unmatched(wishes_.selection, names);
    for (std::string& remark : surprises(wishes_.selection, names))
      found_.remarks.push_back(std::move(remark));
    if (!found_.trouble) select();
    drop_virtual_functions();
    order();
    publish();
    return std::move(found_);
  }

 private:
  void read_devices() {
    int count = 0;
    ibv_device** list = verbs_->get_device_list(&count);
    if (!list) {
      reason_ = system_error("ibv_get_device_list failed", errno);
      found_.remarks.push_back(reason_.text());
      return;
    }
    for (int i = 0; i < count; i++)
      read_device(list[i]);
    verbs_->free_device_list(list);
  }

  void add_devices_only_in_sysfs() {
    for (const std::string& name : Sysfs::devices(files_)) {
      if (std::find(seen_.begin(), seen_.end(), name) == seen_.end()) add_unreachable(name, reason_);
    }
  }

  // The RoCE ports of a device that can't be asked.
  void add_unreachable(const std::string& name, Error why) {
    const Sysfs sysfs(files_, name);
    if (sysfs.is_iwarp()) return;
    if (why.hint.empty()) why.hint = "are /dev/infiniband and the NIC's rdma-core provider in this container?";
    for (const int number : sysfs.ethernet_ports()) {
      Candidate candidate;
      candidate.port.device = name;
      candidate.port.port = std::uint8_t(number);
      candidate.port.identity = number;
      candidate.port.pci_path = sysfs.pci_path();
      candidate.port.unusable = why;
      candidate.port.unusable->where = text::format("{}:{}", name, number);
      candidates_.push_back(std::move(candidate));
    }
  }

  void read_device(ibv_device* device) {
    const std::string name = verbs_->get_device_name(device);
    seen_.push_back(name);
    const Sysfs sysfs(files_, name);
    if (device->transport_type == IBV_TRANSPORT_IWARP || sysfs.is_iwarp()) {
      found_.remarks.push_back(text::format("skipping {}: iWARP", name));
      return;
    }
    const verbs::Context context(verbs_->open_device(device), {verbs_});
    ibv_device_attr attributes{};
    const int failed = context ? verbs_->query_device(context.get(), &attributes) : errno;
    if (failed != 0) {
      add_unreachable(name, system_error(context ? "ibv_query_device failed" : "ibv_open_device failed", failed));
      return;
    }
    for (int number = 1; number <= attributes.phys_port_cnt; number++) {
      read_port(context.get(), attributes, sysfs, name, number);
    }
  }

  void read_port(ibv_context* context, const ibv_device_attr& attributes, const Sysfs& sysfs, const std::string& name,
                 int number) {
    ibv_port_attr state{};
    const std::string place = text::format("{}:{}", name, number);
    const int failed = verbs_->query_port(context, std::uint8_t(number), &state);
    // By link layer, never by LID: some RoCE NICs have one (F22).
    const std::vector<int> ethernet = sysfs.ethernet_ports();
    if (failed != 0 && std::find(ethernet.begin(), ethernet.end(), number) != ethernet.end()) {
      state.link_layer = IBV_LINK_LAYER_ETHERNET;
    }
    if (state.link_layer != IBV_LINK_LAYER_ETHERNET) {
      found_.remarks.push_back(text::format("skipping {}: not Ethernet", place));
      return;
    }
    Candidate candidate;
    Port& port = candidate.port;
    port.device = name;
    port.port = std::uint8_t(number);
    port.pci_path = sysfs.pci_path();
    port.guid = attributes.sys_image_guid;
    port.vendor_id = attributes.vendor_id;
    port.identity = number;
    port.speed_mbps = speed_mbps(state.active_speed, state.active_width);
    port.path_mtu = state.active_mtu;
    port.max_qp = attributes.max_qp;
    port.max_qp_wr = attributes.max_qp_wr;
    port.max_cqe = attributes.max_cqe;
    port.max_srq = attributes.max_srq;
    port.max_srq_wr = attributes.max_srq_wr;
    find_gpu_memory(port, sysfs, context);
    if (failed != 0)
      port.unusable = system_error("ibv_query_port failed", failed, place);
    else
      judge(port, state, sysfs, read_gids(*verbs_, context, sysfs, number, state.gid_tbl_len));
    candidate.physical_function = sysfs.physical_function();
    candidates_.push_back(std::move(candidate));
  }

  void find_gpu_memory(Port& port, const Sysfs& sysfs, ibv_context* context) {
    if (!trial_ || !trial_->possible()) {
      port.peer_memory = sysfs.peer_memory();
      port.dmabuf = takes_dmabuf(*verbs_, context);
      return;
    }
    const GpuReach reach = trial_->on(*verbs_, context);
    port.gpu_proven = true;
    port.peer_memory = reach.peer_memory;
    port.dmabuf = reach.dmabuf;
    port.gpu_trouble = reach.why;
  }

  void judge(Port& port, const ibv_port_attr& state, const Sysfs& sysfs, const std::vector<GidEntry>& table) {
    const std::string place = text::format("{}:{}", port.device, port.port);
    if (state.state != IBV_PORT_ACTIVE) {
      port.unusable = Error{"the port is not active", place, 0, "look at the link: ip link, ibv_devinfo"};
      return;
    }
    auto gid = choose_gid(table, wishes_.gid, place);
    if (gid) {
      port.gid = gid.take();
    } else if (sysfs.interface_is_elsewhere()) {
      port.unusable = Error{"no network interface in this namespace", place, 0,
                            "pass the NIC's interface into the container, or leave the NIC out with NCCL_IB_HCA"};
    } else {
      port.unusable = gid.take_error();
    }
  }

  void select() {
    std::erase_if(candidates_, [&](const Candidate& candidate) {
      const bool out = !wishes_.selection.takes(candidate.port.device, candidate.port.port);
      if (out) {
        found_.remarks.push_back(
            text::format("skipping {}:{}: left out by NCCL_IB_HCA", candidate.port.device, candidate.port.port));
      }
      return out;
    });
  }

  void drop_virtual_functions() {
    std::erase_if(candidates_, [&](const Candidate& virtual_one) {
      if (virtual_one.physical_function.empty()) return false;
      const auto owner = std::find_if(candidates_.begin(), candidates_.end(), [&](const Candidate& other) {
        return fs::path(other.port.pci_path).filename() == virtual_one.physical_function && !other.port.unusable;
      });
      if (owner == candidates_.end()) return false;
      found_.remarks.push_back(text::format("{} is a virtual function of {} (same port); using {} only",
                                            virtual_one.port.device, owner->port.device, owner->port.device));
      return true;
    });
  }

  // NCCL orders NICs by PCI address; index N must mean the same NIC for every part of it (F25).
  void order() {
    std::stable_sort(candidates_.begin(), candidates_.end(), [](const Candidate& left, const Candidate& right) {
      const std::string a = fs::path(left.port.pci_path).filename(), b = fs::path(right.port.pci_path).filename();
      return std::tie(a, left.port.port) < std::tie(b, right.port.port);
    });
  }

  void publish() {
    const bool any_usable = std::any_of(candidates_.begin(), candidates_.end(),
                                        [](const Candidate& candidate) { return !candidate.port.unusable; });
    for (Candidate& candidate : candidates_) {
      Port& port = candidate.port;
      if (any_usable && port.unusable) {
        found_.remarks.push_back("skipping " + port.unusable->text());
        continue;
      }
      if (found_.ports.size() == kMostPorts) {
        found_.remarks.push_back(text::format("{} RDMA ports found, using the first {}; narrow NCCL_IB_HCA",
                                              candidates_.size(), kMostPorts));
        return;
      }
      while (taken(port.guid, port.identity))
        port.identity++;
      port.name = port.port == 1 ? port.device : text::format("{}:{}", port.device, port.port);
      found_.ports.push_back(std::move(port));
    }
  }

  bool taken(std::uint64_t guid, int identity) const {
    return std::any_of(found_.ports.begin(), found_.ports.end(),
                       [&](const Port& port) { return port.guid == guid && port.identity == identity; });
  }

  verbs::Verbs* verbs_;
  Error reason_;  // why a device of sysfs is not among those of libibverbs
  const Wishes& wishes_;
  const FileTree& files_;
  const GpuTrial* trial_;
  std::vector<std::string> seen_;  // devices that libibverbs lists
  std::vector<Candidate> candidates_;
  Discovery found_;
};

}  // namespace

int speed_mbps(std::uint8_t active_speed, std::uint8_t active_width) {
  int lane = 0, lanes = 0;
  switch (active_speed) {
    case 1:
      lane = 2'500;
      break;
    case 2:
      lane = 5'000;
      break;
    case 4:
    case 8:
      lane = 10'000;
      break;
    case 16:
      lane = 14'000;
      break;
    case 32:
      lane = 25'000;
      break;
    case 64:
      lane = 50'000;
      break;
    case 128:
      lane = 100'000;
      break;
    default:
      break;
  }
  switch (active_width) {
    case 1:
      lanes = 1;
      break;
    case 2:
      lanes = 4;
      break;
    case 4:
      lanes = 8;
      break;
    case 8:
      lanes = 12;
      break;
    case 16:
      lanes = 2;
      break;
    default:
      break;
  }
  return lane * lanes;
}

std::string describe_gpu_memory(const Port& port) {
  if (!port.reaches_device_memory()) return port.gpu_trouble.empty() ? "no" : "no: " + port.gpu_trouble;
  return std::string(port.dmabuf ? "dma-buf" : "peer memory") + (port.gpu_proven ? "" : " (not proven)");
}

Discovery discover(verbs::Verbs& verbs, const Wishes& wishes, const FileTree& sysfs, const GpuTrial* trial) {
  return Search(&verbs, Error{"libibverbs does not list this device", {}, 0, {}}, wishes, sysfs, trial).run();
}

Discovery discover_without_verbs(const Error& reason, const Wishes& wishes, const FileTree& sysfs) {
  return Search(nullptr, reason, wishes, sysfs, nullptr).run();
}

}  // namespace weft::devices
