#include "net_plugin/setup/net_devices.h"

#include <algorithm>

#include "common/text/format.h"
#include "net_plugin/transfer/wire.h"

namespace weft::setup {
namespace {

// Without the last character, the function: "…/0000:3b:00.1" and "….0" are one card. Empty paths are none.
bool same_card(const devices::Port& left, const devices::Port& right) {
  const std::string &a = left.pci_path, &b = right.pci_path;
  if (a.empty() || a.size() != b.size()) return false;
  return a.compare(0, a.size() - 1, b, 0, b.size() - 1) == 0;
}

}  // namespace

NetDevices::NetDevices(const std::vector<devices::Port>& ports, bool merge_cards) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < ports.size(); i++) {
    const auto card = std::find_if(groups.begin(), groups.end(), [&](const std::vector<std::size_t>& group) {
      const devices::Port& first = ports[group.front()];
      return same_card(first, ports[i]) && !first.unusable && !ports[i].unusable &&
             group.size() < std::size_t(transfer::kMaxDevices);
    });
    if (merge_cards && card != groups.end())
      card->push_back(i);
    else
      groups.push_back({i});
  }
  for (auto& group : groups)
    add(ports, std::move(group));
}

void NetDevices::add(const std::vector<devices::Port>& ports, std::vector<std::size_t> members) {
  const devices::Port& first = ports[members.front()];
  NetDevice device;
  device.pci_path = first.pci_path;
  device.guid = first.guid;
  device.identity = first.identity;
  device.max_qp = first.max_qp;
  device.peer_memory = device.dmabuf = true;
  for (const std::size_t member : members) {
    const devices::Port& port = ports[member];
    device.name += (device.name.empty() ? "" : "+") + port.name;
    device.speed_mbps += port.speed_mbps;
    device.max_qp = std::min(device.max_qp, port.max_qp);
    // All of them have to reach a buffer.
    device.peer_memory &= port.peer_memory;
    device.dmabuf &= port.dmabuf;
  }
  device.ports = std::move(members);
  devices_.push_back(std::move(device));
}

std::size_t NetDevices::count() const {
  std::lock_guard lock(mutex_);
  return devices_.size();
}

const NetDevice* NetDevices::find(int index) const {
  std::lock_guard lock(mutex_);
  return index >= 0 && std::size_t(index) < devices_.size() ? &devices_[std::size_t(index)] : nullptr;
}

Result<int> NetDevices::merge(const std::vector<devices::Port>& ports, const std::vector<int>& members) {
  if (members.empty() || members.size() > std::size_t(transfer::kMaxDevices)) {
    return Error{text::format("{} devices can't be one", members.size()), "makeVDevice", 0,
                 text::format("allowed: 1 to {}", transfer::kMaxDevices)};
  }
  std::lock_guard lock(mutex_);
  std::vector<std::size_t> all;
  for (const int member : members) {
    if (member < 0 || std::size_t(member) >= devices_.size())
      return Error{text::format("device {} does not exist", member), "makeVDevice", 0, {}};
    const NetDevice& device = devices_[std::size_t(member)];
    if (device.ports.size() != 1)
      return Error{text::format("device {} ({}) is several already", member, device.name), "makeVDevice", 0, {}};
    if (std::find(all.begin(), all.end(), device.ports.front()) != all.end())
      return Error{text::format("device {} occurs twice", member), "makeVDevice", 0, {}};
    all.push_back(device.ports.front());
  }
  add(ports, std::move(all));
  return int(devices_.size()) - 1;
}

}  // namespace weft::setup
