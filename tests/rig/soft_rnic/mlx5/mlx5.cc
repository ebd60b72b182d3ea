// The vendor calls of libmlx5 that the product looks up, on emulated devices.
#include <infiniband/mlx5dv.h>

#include <cstring>

extern "C" {

int soft_rnic_modify_source_port(ibv_qp* queue_pair, uint16_t source_port);  // from our libibverbs.so.1

// A device counts as mlx5 by its name, as udev names real ones.
bool mlx5dv_is_supported(ibv_device* device) {
  return std::strncmp(device->name, "mlx5_", 5) == 0;
}

// 0 or an errno: EOPNOTSUPP where the host file takes the capability away, EINVAL for a queue pair that is not ready to
// send.
int mlx5dv_modify_qp_udp_sport(ibv_qp* queue_pair, uint16_t source_port) {
  if (!mlx5dv_is_supported(queue_pair->context->device)) return EOPNOTSUPP;
  return soft_rnic_modify_source_port(queue_pair, source_port);
}

}  // extern "C"
