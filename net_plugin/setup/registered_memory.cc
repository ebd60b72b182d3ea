#include "net_plugin/setup/registered_memory.h"

#include <algorithm>

namespace weft::setup {

Result<std::shared_ptr<const RegisteredMemory>> RegistrationCache::find_or_make(const Key& key, const Make& make) {
  std::lock_guard lock(mutex_);
  std::erase_if(entries_, [](const auto& entry) { return entry.second.expired(); });
  auto& known = entries_[key];
  if (auto shared = known.lock()) return shared;
  auto made = make();
  if (made) known = *made;
  return made;
}

std::size_t RegistrationCache::size() const {
  std::lock_guard lock(mutex_);
  return std::size_t(
      std::count_if(entries_.begin(), entries_.end(), [](const auto& entry) { return !entry.second.expired(); }));
}

std::size_t RegistrationCache::gpu_bytes() const {
  std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [key, region] : entries_)
    if (key.of_gpu && !region.expired()) bytes += key.length;
  return bytes;
}

}  // namespace weft::setup
