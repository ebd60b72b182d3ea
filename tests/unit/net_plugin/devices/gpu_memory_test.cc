// What is known of the way to GPU memory, with a scripted CUDA driver.
#include "net_plugin/devices/gpu_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "net_plugin/devices/discovery.h"
#include "tests/unit/net_plugin/fake/fake_cuda_driver.h"
#include "tests/unit/net_plugin/fake/fake_sysfs.h"
#include "tests/unit/net_plugin/fake/fake_verbs.h"

namespace weft::devices {
namespace {

using fake::DeviceDescription;
using fake::kGpuMemory;
using testing::AllOf;
using testing::HasSubstr;

class GpuMemory : public testing::Test {
 protected:
  void SetUp() override { sysfs_.device("mlx5_0", "0000:41:00.0"); }

  // The port that is found with such a NIC beside such a GPU.
  Port find(DeviceDescription nic) {
    nic.name = "mlx5_0";
    nic.ports[0].gids = {fake::ipv4_gid(10, 1, 1, 2)};
    fake::FakeVerbs verbs({nic});
    verbs.gpu_memory = kGpuMemory;
    Port port;
    {
      const GpuTrial trial(std::make_unique<fake::ScriptedDriver>(script_));
      const Discovery found = discover(verbs, {}, sysfs_.root(), &trial);
      EXPECT_EQ(found.ports.size(), 1u);
      if (!found.ports.empty()) port = found.ports[0];
    }
    EXPECT_EQ(verbs.objects(), 0);
    EXPECT_EQ(script_.allocated, 0) << "the buffer is given back";
    return port;
  }

  fake::FakeSysfs sysfs_;
  fake::CudaScript script_;
};

DeviceDescription nic(int dmabuf_error, int gpu_pointer_error) {
  DeviceDescription out;
  out.dmabuf_error = dmabuf_error;
  out.gpu_pointer_error = gpu_pointer_error;
  return out;
}

TEST_F(GpuMemory, WhatRegistersIsProven) {
  const Port both = find(nic(0, 0));
  EXPECT_TRUE(both.gpu_proven && both.dmabuf && both.peer_memory);
  EXPECT_EQ(describe_gpu_memory(both), "dma-buf");
  const Port one = find(nic(0, EFAULT));
  EXPECT_TRUE(one.dmabuf);
  EXPECT_FALSE(one.peer_memory);
  const Port other = find(nic(EOPNOTSUPP, 0));
  EXPECT_FALSE(other.dmabuf);
  EXPECT_EQ(describe_gpu_memory(other), "peer memory");
}

// The module is loaded and the driver takes descriptors, but the NIC does not reach this GPU's memory.
TEST_F(GpuMemory, F58_APromiseThatIsNotKeptCountsForNothing) {
  sysfs_.write("module/nvidia_peermem/version", "1");
  const Port port = find(nic(EINVAL, EFAULT));
  EXPECT_TRUE(port.gpu_proven);
  EXPECT_FALSE(port.reaches_device_memory());
  EXPECT_THAT(describe_gpu_memory(port),
              AllOf(HasSubstr("dma-buf: EINVAL"), HasSubstr("peer memory: EFAULT"), HasSubstr("nvidia_peermem")));
}

TEST_F(GpuMemory, F60_AGpuThatExportsNothingIsNamed) {
  script_.export_result = 801;
  const Port port = find(nic(0, EFAULT));
  EXPECT_FALSE(port.reaches_device_memory());
  EXPECT_THAT(describe_gpu_memory(port), HasSubstr("the GPU's driver exports none (CUresult 801)"));
  EXPECT_TRUE(find(nic(0, 0)).peer_memory);
}

// Without a GPU in use there is nothing but what sysfs and the NIC's driver say, and it is called that.
TEST_F(GpuMemory, WithoutAGpuInUseNothingIsProven) {
  sysfs_.write("module/nvidia_peermem/version", "1");
  script_.context = false;
  const Port no_context = find(nic(0, EFAULT));
  EXPECT_FALSE(no_context.gpu_proven);
  EXPECT_TRUE(no_context.dmabuf && no_context.peer_memory);
  EXPECT_EQ(describe_gpu_memory(no_context), "dma-buf (not proven)");
  script_.context = true;
  script_.allocate_result = 2;  // CUDA_ERROR_OUT_OF_MEMORY
  EXPECT_FALSE(find(nic(0, EFAULT)).gpu_proven);
  EXPECT_EQ(describe_gpu_memory(find(nic(EOPNOTSUPP, EFAULT))), "peer memory (not proven)");
}

TEST_F(GpuMemory, AProcessWithoutTheDriverHasNone) {
  EXPECT_EQ(cuda_driver_in_use(), nullptr);
  EXPECT_FALSE(GpuTrial(nullptr).possible());
}

}  // namespace
}  // namespace weft::devices
