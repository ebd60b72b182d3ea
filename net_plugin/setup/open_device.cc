#include "net_plugin/setup/open_device.h"

#include <fcntl.h>

#include <cerrno>
#include <string_view>

#include "common/text/format.h"
#include "net_plugin/setup/verbs_hint.h"

namespace weft::setup {
namespace {

constexpr unsigned kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

ibv_device* find(ibv_device** list, int count, verbs::Verbs& verbs, std::string_view name) {
  for (int i = 0; i < count; i++) {
    if (verbs.get_device_name(list[i]) == name) return list[i];
  }
  return nullptr;
}

}  // namespace

std::atomic<bool> OpenDevice::any_fatal_event_{false};

void OpenDevice::set_fatal_event(ibv_event_type type) {
  fatal_event_.store(int(type) + 1, std::memory_order_relaxed);
  any_fatal_event_.store(true, std::memory_order_relaxed);
}

std::string OpenDevice::name() const {
  return text::format("{}:{}", port_.device, port_.port);
}

Result<std::shared_ptr<OpenDevice>> OpenDevice::open(verbs::Verbs& verbs, const devices::Port& port,
                                                     std::shared_ptr<PortWatch> watch) {
  std::shared_ptr<OpenDevice> device(new OpenDevice(verbs, port, std::move(watch)));
  int count = 0;
  ibv_device** list = verbs.get_device_list(&count);
  if (!list) return system_error("ibv_get_device_list failed", errno, device->name());
  ibv_device* found = find(list, count, verbs, port.device);
  errno = 0;
  device->context_ = {found ? verbs.open_device(found) : nullptr, {&verbs}};
  const int code = errno;
  verbs.free_device_list(list);
  if (!found) return Error{"the device has gone", device->name(), 0, {}};
  if (!device->context_) return system_error("ibv_open_device failed", code, device->name(), open_hint(code));
  // The control thread reads asynchronous events when there are some, and never waits for one.
  const int flags = fcntl(device->context_->async_fd, F_GETFL);
  if (flags < 0 || fcntl(device->context_->async_fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return system_error("cannot make the event descriptor non-blocking", errno, device->name());
  }
  device->protection_domain_ = {verbs.alloc_pd(device->context_.get()), {&verbs}};
  if (!device->protection_domain_) {
    const int failed = errno;
    return system_error("ibv_alloc_pd failed", failed, device->name(), open_hint(failed));
  }
  return device;
}

Result<verbs::MemoryRegion> OpenDevice::register_memory(void* address, std::size_t length, bool relaxed) const {
  const unsigned access = kAccess | (relaxed ? unsigned(IBV_ACCESS_RELAXED_ORDERING) : 0);
  verbs::MemoryRegion region(verbs_.reg_mr(protection_domain_.get(), address, length, access), {&verbs_});
  if (!region) {
    const int code = errno;
    return system_error(text::format("ibv_reg_mr of {} bytes failed", length), code, name(),
                        register_hint(code, MemoryKind::host));
  }
  return region;
}

Result<std::shared_ptr<const RegisteredMemory>> OpenDevice::register_user(const UserMemory& memory,
                                                                          bool relaxed) const {
  const unsigned access = kAccess | (relaxed ? unsigned(IBV_ACCESS_RELAXED_ORDERING) : 0);
  const auto make = [&]() -> Result<std::shared_ptr<const RegisteredMemory>> {
    if (memory.dmabuf < 0) {
      auto region = register_memory(memory.data, memory.size, relaxed);
      if (!region) return region.take_error();
      return std::make_shared<const RegisteredMemory>(shared_from_this(), region.take());
    }
    ibv_mr* made = verbs_.reg_dmabuf_mr(protection_domain_.get(), memory.offset, memory.size,
                                        reinterpret_cast<std::uintptr_t>(memory.data), memory.dmabuf, access);
    verbs::MemoryRegion region(made, {&verbs_});
    if (!region) {
      const int code = errno;
      return system_error(text::format("ibv_reg_dmabuf_mr of {} bytes at offset {} of descriptor {} failed",
                                       memory.size, memory.offset, memory.dmabuf),
                          code, name(), register_hint(code, MemoryKind::dmabuf));
    }
    return std::make_shared<const RegisteredMemory>(shared_from_this(), std::move(region));
  };
  return registrations_.find_or_make(
      {reinterpret_cast<std::uint64_t>(memory.data), memory.size, access, memory.dmabuf >= 0, memory.of_gpu}, make);
}

}  // namespace weft::setup
