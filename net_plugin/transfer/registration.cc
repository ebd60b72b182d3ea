#include "net_plugin/transfer/registration.h"

namespace weft::transfer {

void Registration::add(std::shared_ptr<const setup::RegisteredMemory> region) {
  const auto index = std::size_t(devices++);
  local_keys[index] = region->region()->lkey;
  remote_keys[index] = region->region()->rkey;
  regions[index] = std::move(region);
}

}  // namespace weft::transfer
