// Protection domains and memory registration, GPU memory included.
#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <mutex>

#include "tests/rig/soft_rnic/verbs/handles.h"
#include "tests/rig/soft_rnic/verbs/host.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

using weft::soft_rnic::handle_of;
using weft::soft_rnic::Host;
using weft::soft_rnic::MemoryRegion;

namespace {

// Whether a range is memory of the emulated CUDA runtime's devices. That runtime is asked by name, if the process has
// it; it may be loaded later than this library.
bool is_gpu_memory(const void* address, std::size_t length) {
  using Question = bool (*)(const void*, std::size_t);
  static std::atomic<Question> known{nullptr};
  Question question = known;
  if (question == nullptr) {
    question = reinterpret_cast<Question>(dlsym(RTLD_DEFAULT, "emulated_cuda_is_device"));
    known = question;
  }
  return question != nullptr && question(address, length);
}

ibv_mr* register_memory(ibv_pd* domain, void* address, std::size_t length, std::uint64_t iova, unsigned access) {
  constexpr unsigned kRemoteWriting = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  if ((access & kRemoteWriting) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) {
    errno = EINVAL;  // the specification's rule: remote writing needs local writing
    return nullptr;
  }
  MemoryRegion region;
  region.protection_domain = domain;
  region.base = static_cast<std::uint8_t*>(address);
  region.address = iova;
  region.length = length;
  region.access = static_cast<int>(access & ~static_cast<unsigned>(IBV_ACCESS_OPTIONAL_RANGE));
  region.gpu = is_gpu_memory(address, length);

  auto* result = new ibv_mr();
  result->context = domain->context;
  result->pd = domain;
  result->addr = address;
  result->length = length;
  auto& nic = *handle_of(domain->context).nic;
  const std::lock_guard lock(nic.mutex());
  result->lkey = result->rkey = nic.regions().add(region);
  return result;
}

}  // namespace

extern "C" {

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  auto* domain = new ibv_pd();
  domain->context = context;
  return domain;
}

int ibv_dealloc_pd(ibv_pd* domain) {
  delete domain;
  return 0;
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, size_t length, uint64_t iova, unsigned access) {
  // Without a peer-memory module the kernel cannot pin GPU memory by its address.
  if (!Host::instance().description().gpu_direct && is_gpu_memory(address, length)) {
    errno = EFAULT;
    return nullptr;
  }
  return register_memory(domain, address, length, iova, access);
}

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, size_t length, int access) {
  return ibv_reg_mr_iova2(domain, address, length, reinterpret_cast<std::uint64_t>(address),
                          static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* domain, void* address, size_t length, uint64_t iova, int access) {
  return ibv_reg_mr_iova2(domain, address, length, iova, static_cast<unsigned>(access));
}

// Applications probe with descriptor -1: EBADF says that the kernel knows dma-buf, EOPNOTSUPP that it does not.
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* domain, uint64_t, size_t length, uint64_t iova, int descriptor, int access) {
  if (!Host::instance().description().gpu_dmabuf) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  if (descriptor < 0) {
    errno = EBADF;
    return nullptr;
  }
  // The emulated GPU lives in this process, so its memory is reached by the address that the descriptor stands for.
  auto* address = reinterpret_cast<void*>(iova);
  if (!is_gpu_memory(address, length)) {
    errno = EINVAL;
    return nullptr;
  }
  return register_memory(domain, address, length, iova, static_cast<unsigned>(access));
}

int ibv_dereg_mr(ibv_mr* region) {
  auto& nic = *handle_of(region->context).nic;
  {
    const std::lock_guard lock(nic.mutex());
    nic.deregister(region->lkey);
  }
  delete region;
  return 0;
}

}  // extern "C"
