// The runtime through its public functions.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/rig/emulated_cuda/emulated_cuda.h"
#include "tests/rig/emulated_cuda/runtime/cuda_api.h"

namespace {

// Keeps a stream busy until it is told to go on.
class Gate {
 public:
  explicit Gate(cudaStream_t stream) {
    cudaLaunchHostFunc(
        stream,
        [](void* gate) {
          while (!static_cast<Gate*>(gate)->open_)
            std::this_thread::yield();
        },
        this);
  }
  void open() { open_ = true; }

 private:
  std::atomic<bool> open_ = false;
};

class Stream {
 public:
  explicit Stream(unsigned flags = kStreamNonBlocking) { cudaStreamCreateWithFlags(&stream_, flags); }
  ~Stream() { cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { cudaEventCreate(&event_); }
  ~Event() { cudaEventDestroy(event_); }
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

void set_flag(void* flag) {
  *static_cast<std::atomic<bool>*>(flag) = true;
}

TEST(Streams, WorkRunsInOrder) {
  Stream stream;
  std::vector<int> seen;
  struct Note {
    std::vector<int>* seen;
    int number;
  };
  std::vector<Note> notes;
  for (int i = 0; i < 100; i++)
    notes.push_back({&seen, i});
  for (Note& note : notes) {
    cudaLaunchHostFunc(
        stream,
        [](void* user) {
          auto* entry = static_cast<Note*>(user);
          entry->seen->push_back(entry->number);
        },
        &note);
  }
  cudaStreamSynchronize(stream);
  ASSERT_EQ(seen.size(), 100u);
  for (int i = 0; i < 100; i++)
    EXPECT_EQ(seen[std::size_t(i)], i);
}

TEST(Streams, AQueryDoesNotWait) {
  Stream stream;
  EXPECT_EQ(cudaStreamQuery(stream), kCudaSuccess);
  Gate gate(stream);
  EXPECT_EQ(cudaStreamQuery(stream), kCudaNotReady);
  gate.open();
  cudaStreamSynchronize(stream);
  EXPECT_EQ(cudaStreamQuery(stream), kCudaSuccess);
  EXPECT_EQ(cudaGetLastError(), kCudaSuccess) << "\"not ready\" is not kept as an error";
}

TEST(Streams, DestroyingFinishesTheWork) {
  std::atomic<bool> done = false;
  {
    Stream stream;
    cudaLaunchHostFunc(stream, set_flag, &done);
  }
  EXPECT_TRUE(done);
}

TEST(Streams, AnUnknownHandleIsAnErrorOnce) {
  cudaStream_t gone;
  cudaStreamCreate(&gone);
  cudaStreamDestroy(gone);
  EXPECT_EQ(cudaStreamSynchronize(gone), kCudaInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(nullptr), kCudaInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), kCudaInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), kCudaSuccess);
}

TEST(Events, AnotherStreamWaits) {
  Stream first, second;
  Event event;
  Gate gate(first);
  cudaEventRecord(event, first);
  cudaStreamWaitEvent(second, event, 0);
  std::atomic<bool> reached = false;
  cudaLaunchHostFunc(second, set_flag, &reached);
  EXPECT_EQ(cudaEventQuery(event), kCudaNotReady);
  EXPECT_FALSE(reached);
  gate.open();
  cudaStreamSynchronize(second);
  EXPECT_TRUE(reached);
  EXPECT_EQ(cudaEventQuery(event), kCudaSuccess);
}

TEST(Events, AWaitIsForTheRecordThatWasCurrent) {
  Stream first, second, third;
  Event event;
  cudaEventRecord(event, first);
  cudaStreamSynchronize(first);
  cudaStreamWaitEvent(second, event, 0);
  Gate gate(third);
  cudaEventRecord(event, third);
  EXPECT_EQ(cudaStreamSynchronize(second), kCudaSuccess) << "must not wait for the later record";
  EXPECT_EQ(cudaEventQuery(event), kCudaNotReady);
  gate.open();
  EXPECT_EQ(cudaEventSynchronize(event), kCudaSuccess);
}

TEST(Events, ElapsedTimeIsBetweenRecords) {
  Stream stream;
  Event begin, end;
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), kCudaInvalidResourceHandle);
  cudaEventRecord(begin, stream);
  cudaEventRecord(end, stream);
  cudaEventSynchronize(end);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), kCudaSuccess);
  EXPECT_GE(milliseconds, 0);
}

TEST(DefaultStream, WaitsForBlockingStreamsAndTheyForIt) {
  Stream blocking(0);
  std::atomic<bool> in_default = false, in_blocking = false;
  Gate gate(blocking);
  cudaLaunchHostFunc(nullptr, set_flag, &in_default);
  cudaLaunchHostFunc(blocking, set_flag, &in_blocking);
  EXPECT_FALSE(in_default);
  EXPECT_FALSE(in_blocking);
  gate.open();
  cudaStreamSynchronize(blocking);
  EXPECT_TRUE(in_default) << "work behind it in the blocking stream has run";
  EXPECT_TRUE(in_blocking);
}

TEST(DefaultStream, LeavesNonBlockingStreamsAlone) {
  Stream independent(kStreamNonBlocking);
  Gate gate(independent);
  EXPECT_EQ(cudaStreamSynchronize(nullptr), kCudaSuccess);
  EXPECT_EQ(cudaStreamQuery(independent), kCudaNotReady);
  gate.open();
}

TEST(Memory, DeviceMemoryIsZeroAndKnown) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 10000), kCudaSuccess);
  const auto* bytes = static_cast<const char*>(memory);
  EXPECT_EQ(std::accumulate(bytes, bytes + 10000, 0), 0);
  CudaPointerAttributes attributes{};
  cudaPointerGetAttributes(&attributes, bytes + 9999);
  EXPECT_EQ(attributes.type, 2);
  EXPECT_EQ(attributes.host_pointer, nullptr);
  EXPECT_TRUE(emulated_cuda_is_device(memory, 10000));
  EXPECT_FALSE(emulated_cuda_is_device(memory, 10001)) << "beyond the allocation";
  EXPECT_FALSE(emulated_cuda_is_device(bytes + 10000, 1));
  EXPECT_EQ(cudaFree(memory), kCudaSuccess);
  EXPECT_FALSE(emulated_cuda_is_device(memory, 1));
  EXPECT_EQ(cudaFree(memory), kCudaInvalidValue);
  cudaGetLastError();
}

TEST(Memory, HostMemoryIsNotDeviceMemory) {
  void* memory = nullptr;
  ASSERT_EQ(cudaHostAlloc(&memory, 100, 0), kCudaSuccess);
  EXPECT_FALSE(emulated_cuda_is_device(memory, 100));
  void* device_pointer = nullptr;
  EXPECT_EQ(cudaHostGetDevicePointer(&device_pointer, memory, 0), kCudaSuccess);
  EXPECT_EQ(device_pointer, memory);
  EXPECT_EQ(cudaFreeHost(memory), kCudaSuccess);

  std::vector<char> own(100);
  EXPECT_EQ(cudaHostGetDevicePointer(&device_pointer, own.data(), 0), kCudaInvalidValue);
  cudaHostRegister(own.data(), own.size(), 0);
  EXPECT_EQ(cudaHostGetDevicePointer(&device_pointer, own.data() + 50, 0), kCudaSuccess);
  EXPECT_EQ(cudaHostUnregister(own.data()), kCudaSuccess);
  own.assign(100, 'x');  // still ours
  CudaPointerAttributes attributes{};
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, own.data()), kCudaSuccess);
  EXPECT_EQ(attributes.type, 0);
  cudaGetLastError();
}

TEST(Memory, NothingIsAllocatedForNoBytes) {
  void* memory = &memory;
  EXPECT_EQ(cudaMalloc(&memory, 0), kCudaSuccess);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(cudaFree(nullptr), kCudaSuccess);
}

TEST(Copies, APageableSourceMayChangeAfterTheCall) {
  Stream stream;
  void* memory = nullptr;
  cudaMalloc(&memory, 4);
  Gate gate(stream);
  char source[4] = {1, 2, 3, 4};
  cudaMemcpyAsync(memory, source, 4, 1, stream);
  std::memset(source, 9, sizeof source);
  gate.open();
  cudaStreamSynchronize(stream);
  EXPECT_EQ(static_cast<char*>(memory)[2], 3);
  char back[4] = {};
  cudaMemcpyAsync(back, memory, 4, 2, stream);
  EXPECT_EQ(back[3], 4) << "complete on return, as the destination is pageable";
  cudaFree(memory);
}

TEST(Copies, DeviceMemoryIsReadInStreamOrder) {
  Stream stream;
  void *from = nullptr, *to = nullptr;
  cudaMalloc(&from, 8);
  cudaMalloc(&to, 8);
  cudaMemsetAsync(from, 1, 8, stream);
  cudaMemcpyAsync(to, from, 8, 3, stream);
  cudaMemsetAsync(from, 2, 8, stream);
  cudaStreamSynchronize(stream);
  char back[8];
  cudaMemcpy(back, to, 8, 2);
  EXPECT_EQ(back[7], 1);
  cudaFree(from);
  cudaFree(to);
}

TEST(Devices, OrdinalsAreChecked) {
  int count = 0, value = 0;
  cudaGetDeviceCount(&count);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(cudaSetDevice(1), kCudaInvalidDevice);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, 75, -1), kCudaInvalidDevice);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, 75, 0), kCudaSuccess);
  EXPECT_EQ(value, 8);
  char text[16];
  EXPECT_EQ(cudaDeviceGetPCIBusId(text, 5, 0), kCudaInvalidValue);
  EXPECT_EQ(cudaDeviceGetPCIBusId(text, sizeof text, 0), kCudaSuccess);
  EXPECT_STREQ(text, "0000:10:00.0");
  int device = -1;
  EXPECT_EQ(cudaDeviceGetByPCIBusId(&device, text), kCudaSuccess);
  EXPECT_EQ(device, 0);
  cudaGetLastError();
}

TEST(Devices, SharedMemoryIsEnoughForNccl) {
  int bytes = 0;
  cudaDeviceGetAttribute(&bytes, 97, 0);
  EXPECT_GE(bytes, 82240);
}

TEST(DriverEntryPoints, UnknownNamesAreAbsentWithoutAnError) {
  void* function = &function;
  int status = -1;
  EXPECT_EQ(cudaGetDriverEntryPoint("cuMemCreate", &function, 0, &status), kCudaSuccess);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(cudaGetDriverEntryPoint("cuLaunchKernelEx", &function, 0, &status), kCudaSuccess);
  EXPECT_NE(function, nullptr);
  EXPECT_EQ(status, 0);
}

// A kernel that somebody provides: adds a number to a counter.
struct AddArguments {
  std::atomic<int>* counter;
  int number;
};

TEST(Kernels, RunInTheStreamWithCopiedArguments) {
  static const emulated_cuda_kernels provider{[](const char* kernel) { return std::strcmp(kernel, "add") == 0; },
                                              [](const char*, const std::size_t** sizes) {
                                                static constexpr std::size_t kSizes[] = {8, 4};
                                                *sizes = kSizes;
                                                return std::size(kSizes);
                                              },
                                              [](const emulated_cuda_launch* launch) {
                                                auto* arguments = static_cast<AddArguments*>(launch->arguments);
                                                *arguments->counter += arguments->number * int(launch->blocks);
                                              }};
  emulated_cuda_provide_kernels(&provider);
  static const char stub = 0;
  __cudaRegisterFunction(nullptr, &stub, nullptr, "add", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  std::atomic<int> counter = 0;
  std::atomic<int>* pointer = &counter;
  int number = 5;
  void* arguments[] = {&pointer, &number};
  Stream stream;
  Gate gate(stream);
  EXPECT_EQ(cudaLaunchKernel(&stub, {2, 3, 1}, {32, 1, 1}, arguments, 0, stream), kCudaSuccess);
  number = 1000;
  gate.open();
  cudaStreamSynchronize(stream);
  EXPECT_EQ(counter, 30);
}

TEST(Kernels, UnknownOnesAreRefusedWithTheirName) {
  static const char stub = 0, unknown = 0;
  EXPECT_EQ(cudaLaunchKernel(&unknown, {1, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr), kCudaInvalidDeviceFunction);
  cudaGetLastError();
  __cudaRegisterFunction(nullptr, &stub, nullptr, "mystery", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  EXPECT_DEATH(cudaLaunchKernel(&stub, {1, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr), "not emulated: kernel mystery");
}

}  // namespace
