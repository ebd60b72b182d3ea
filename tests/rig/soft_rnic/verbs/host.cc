#include "tests/rig/soft_rnic/verbs/host.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace weft::soft_rnic {
namespace {

void copy_text(char* place, std::size_t size, const std::string& text) {
  std::snprintf(place, size, "%s", text.c_str());
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

void complain(const Error& error) {
  std::fprintf(stderr, "soft_rnic: %s\n", error.text().c_str());
}

}  // namespace

Host& Host::instance() {
  static Host* const instance = new Host();
  return *instance;
}

Host::Host() {
  const std::string path = environment("RIG_HOST_FILE");
  if (path.empty()) return;
  auto description = read_host_description(path);
  if (!description) {
    complain(description.error());
    valid_ = false;
    return;
  }
  description_ = description.take();
  for (const DeviceDescription& device : description_.devices) {
    auto handle = std::make_unique<DeviceHandle>();
    handle->description = &device;
    handle->index = static_cast<int>(devices_.size());
    handle->node_type = IBV_NODE_CA;
    handle->transport_type = IBV_TRANSPORT_IB;
    const std::string uverbs = "uverbs" + std::to_string(handle->index);
    copy_text(handle->name, sizeof handle->name, device.name);
    copy_text(handle->dev_name, sizeof handle->dev_name, uverbs);
    copy_text(handle->dev_path, sizeof handle->dev_path, "/sys/class/infiniband_verbs/" + uverbs);
    copy_text(handle->ibdev_path, sizeof handle->ibdev_path, "/sys/class/infiniband/" + device.name);
    devices_.push_back(std::move(handle));
  }
}

Result<std::shared_ptr<Nic>> Host::open(const DeviceDescription& device) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<Nic>& known = nics_[device.name];
  if (auto nic = known.lock()) return nic;
  keep_statistics_of_closed(device.name);
  auto nic = Nic::open(device, description_, [this](const std::string& name, NicStatistics sent) {
    const std::lock_guard statistics_lock(statistics_mutex_);
    current_statistics_[name] = std::move(sent);
    write_statistics_file();
  });
  if (!nic) {
    complain(nic.error());
    return nic.take_error();
  }
  known = *nic;
  return nic.take();
}

void Host::keep_statistics_of_closed(const std::string& nic) {
  const std::lock_guard lock(statistics_mutex_);
  closed_statistics_[nic].add(current_statistics_[nic]);
  current_statistics_[nic] = {};
}

void Host::publish_statistics() {
  std::vector<std::shared_ptr<Nic>> open;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, known] : nics_) {
      if (auto nic = known.lock()) open.push_back(std::move(nic));
    }
  }
  const std::lock_guard lock(statistics_mutex_);
  for (const auto& nic : open) {
    if (auto statistics = nic->statistics()) current_statistics_[nic->device().name] = std::move(*statistics);
  }
  write_statistics_file();
}

void Host::write_statistics_file() {
  if (description_.statistics_folder.empty()) return;
  std::vector<NamedStatistics> named;
  for (const auto& [name, current] : current_statistics_) {
    NicStatistics sum = closed_statistics_[name];
    sum.add(current);
    named.push_back({name, std::move(sum)});
  }
  std::string text = statistics_json(environment("RIG_PROCESS"), getpid(), named);
  if (text == published_) return;
  if (auto written = write_statistics(description_.statistics_folder, getpid(), text); !written) {
    complain(written.error());
  }
  published_ = std::move(text);
}

namespace {

__attribute__((destructor)) void publish_at_exit() {
  Host::instance().publish_statistics();
}

}  // namespace
}  // namespace weft::soft_rnic
