// User memory as NCCL registers it for a connection: one region for each device.
#pragma once

#include <cstddef>
#include <memory>

#include "common/result/result.h"
#include "net_plugin/setup/open_device.h"

namespace weft::transfer {

struct Registration {
  // NCCL may use it with other connections of the device and give it back after the one that it was made with
  // (regIsGlobal).
  std::shared_ptr<setup::OpenDevice> device;
  verbs::MemoryRegion region;
  bool device_memory = false;  // NCCL_PTR_CUDA: receives into it need a flush

  std::uint32_t local_key() const { return region->lkey; }
  std::uint32_t remote_key() const { return region->rkey; }
};

}  // namespace weft::transfer
