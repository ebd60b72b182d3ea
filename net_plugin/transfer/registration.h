// User memory as NCCL registers it for a connection: one region for each device of it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "net_plugin/setup/registered_memory.h"
#include "net_plugin/transfer/wire.h"

namespace weft::transfer {

struct Registration {
  // NCCL may use it with other connections of the same device and give it back after the one that it was made with
  // (regIsGlobal): the regions keep their devices open.
  std::array<std::shared_ptr<const setup::RegisteredMemory>, kMaxDevices> regions;
  int devices = 0;
  bool device_memory = false;  // NCCL_PTR_CUDA: receives into it need a flush, sends can't be inlined
  std::array<std::uint32_t, kMaxDevices> local_keys{};
  std::array<std::uint32_t, kMaxDevices> remote_keys{};

  void add(std::shared_ptr<const setup::RegisteredMemory> region);
};

}  // namespace weft::transfer
