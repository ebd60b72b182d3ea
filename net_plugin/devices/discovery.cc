#include "net_plugin/devices/discovery.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "common/text/format.h"
#include "net_plugin/verbs/handles.h"

namespace weft::devices {
namespace {

namespace fs = std::filesystem;

// More than any host has; a fabric of virtual functions may show many (F24).
constexpr std::size_t kMostPorts = 32;

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
    verbs::PortAttributes state{};
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
    port.max_qp = attributes.max_qp;
    port.max_qp_wr = attributes.max_qp_wr;
    port.max_cqe = attributes.max_cqe;
    port.max_srq = attributes.max_srq;
    port.max_srq_wr = attributes.max_srq_wr;
    find_gpu_memory(port, sysfs, context);
    if (failed != 0)
      port.unusable = system_error("ibv_query_port failed", failed, place);
    else
      static_cast<PortState&>(port) = port_state(*verbs_, context, state, sysfs, number, wishes_.gid, found_.warnings);
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
