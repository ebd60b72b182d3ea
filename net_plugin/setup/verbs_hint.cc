#include "net_plugin/setup/verbs_hint.h"

#include <sys/resource.h>

#include <cerrno>

#include "common/text/format.h"

namespace weft::setup {
namespace {

// Field report R24: blamed only where it is limited.
std::string locked_memory() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return "locked memory is not limited here, so the NIC or the host is out of memory";
  return text::format(
      "locked memory is limited to {} KiB (ulimit -l); raise it, or give the container IPC_LOCK (docker: --ulimit "
      "memlock=-1; slurm: PropagateResourceLimitsExcept=MEMLOCK)",
      limit.rlim_cur / 1024);
}

std::string device_gone() {
  return "the device has gone or is being reset: look at the kernel log";
}

std::string no_permission() {
  return "may this user open /dev/infiniband/uverbs*? In a container pass the devices in (--device=/dev/infiniband)";
}

}  // namespace

std::string initialise_hint(int code) {
  switch (code) {
    case EINVAL:
      return "the partition key index is not in the port's table (NCCL_IB_PKEY, ibv_devinfo -v)";
    case ENODEV:
    case EIO:
      return device_gone();
    case ENOMEM:
      return locked_memory();
    default:
      return "look at the kernel log of this host";
  }
}

std::string ready_to_receive_hint(int code, const std::string& from, const std::string& to) {
  const std::string look = text::format("try: ip route get {} from {}", to, from);
  switch (code) {
    case ETIMEDOUT:
      return "the peer's address could not be resolved in time; " + look;
    case ENETUNREACH:
      return "there is no route to the peer; " + look;
    case EHOSTUNREACH:
      return "the peer's neighbour entry can't be resolved; " + look;
    case ENETDOWN:
      return "the NIC's network interface is down: ip link";
    case EADDRNOTAVAIL:
      return "the GID's address is not on the NIC's interface any more: ip address";
    case ENODEV:
      return "the GID's slot is empty or belongs to another network namespace";
    case EINVAL:
      return "the NIC rejected an attribute: GID type, MTU or port";
    case ENOMEM:
      return locked_memory();
    case EIO:
      return device_gone();
    case EAGAIN:
      return "the neighbour entry is being resolved; try again";
    case EPERM:
    case EACCES:
      return no_permission();
    default:
      return look;
  }
}

std::string ready_to_send_hint(int code) {
  switch (code) {
    case EINVAL:
      return "the NIC rejected the timeout or the retry counts (NCCL_IB_TIMEOUT, NCCL_IB_RETRY_CNT)";
    case ENODEV:
    case EIO:
      return device_gone();
    case ENOMEM:
      return locked_memory();
    default:
      return "look at the kernel log of this host";
  }
}

std::string create_hint(int code, const char* kind, long most) {
  switch (code) {
    case ENOMEM:
      return text::format("the device has {} {} for all processes of this host; {}", most, kind, locked_memory());
    case EINVAL:
      return text::format("more than the device allows in one object? It has {} {} (ibv_devinfo -v)", most, kind);
    case ENODEV:
    case EIO:
      return device_gone();
    case EPERM:
    case EACCES:
      return no_permission();
    case ENOSPC:
      return text::format("the device has no {} left ({} in all)", kind, most);
    default:
      return "look at the kernel log of this host";
  }
}

std::string register_hint(int code, MemoryKind kind) {
  const bool dmabuf = kind == MemoryKind::dmabuf;
  switch (code) {
    case ENOMEM:
      return kind == MemoryKind::host
                 ? locked_memory()
                 : "the GPU's BAR1 or the NIC's translation table is full: nvidia-smi -q -d MEMORY shows BAR1";
    case EFAULT:
      return "this is not memory that the NIC can reach: for GPU memory load nvidia_peermem or use dma-buf";
    case EINVAL:
      return dmabuf ? "offset or length don't suit the exported buffer, or the NIC can't reach the GPU"
                    : "address or length are not acceptable to the driver";
    case EOPNOTSUPP:
      return dmabuf ? "driver or kernel don't take dma-buf descriptors: Linux 5.12 and rdma-core 34 do" : "";
    case EBADF:
      return "the descriptor is closed or no dma-buf";
    case EPERM:
    case EACCES:
      return "the memory is mapped read-only, or locked memory is not allowed (IPC_LOCK)";
    case ENODEV:
    case EIO:
      return device_gone();
    default:
      return "look at the kernel log of this host";
  }
}

std::string open_hint(int code) {
  switch (code) {
    case EACCES:
    case EPERM:
      return no_permission();
    case ENOENT:
    case ENODEV:
    case ENXIO:
      return "/dev/infiniband has no node for it: pass it into the container";
    case EMFILE:
    case ENFILE:
      return "no file descriptor left (ulimit -n)";
    case ENOMEM:
      return locked_memory();
    case ENOSYS:
      return "rdma-core has no provider for this NIC here: install ibverbs-providers";
    default:
      return "look at the kernel log of this host";
  }
}

}  // namespace weft::setup
