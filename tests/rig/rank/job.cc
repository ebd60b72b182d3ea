#include "tests/rig/rank/job.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "common/text/format.h"
#include "tests/rig/rank/collective.h"
#include "tests/rig/rank/device_memory.h"

namespace weft::rank {
namespace {

using Clock = std::chrono::steady_clock;

// What a buffer holds before an operation: no pattern contains it, so an element that never arrived shows.
constexpr int kPoison = 0xa5;

// Between two looks at the stream: quick at first, for small operations, then out of the way of the threads that work.
// The end of an operation is noticed late by 1.6 % of its duration at most.
std::chrono::nanoseconds nap(Clock::duration waited) {
  return std::clamp<std::chrono::nanoseconds>(waited / 64, std::chrono::microseconds(20), std::chrono::milliseconds(1));
}

class Job {
 public:
  Job(const Libraries& libraries, const RankFile& file, Exchange& exchange, Deadline deadline, Report& report)
      : libraries_(libraries), file_(file), exchange_(exchange), deadline_(deadline), report_(report) {}

  void run() {
    if (!start()) return;
    bool good = true;
    {
      auto stream = DeviceStream::create(libraries_);
      good = stream.ok() || own("cudaStreamCreateWithFlags", stream.error());
      for (const Operation& operation : file_.operations) {
        if (!good) break;
        good = run_operation(operation, stream->get());
      }
    }
    // All ranks meet before one of them goes: NCCL 2.22.3 drops posted proxy work when a communicator is destroyed
    // early (tests/rig/emulated_cuda/README.md, "Destroying a communicator").
    if (good) good = meet("barrier before ncclCommDestroy");
    if (good)
      nccl("ncclCommDestroy", libraries_.ncclCommDestroy(communicator_));
    else
      libraries_.ncclCommAbort(communicator_);
  }

 private:
  bool fail(Failure failure) {
    report_.fail(std::move(failure));
    exchange_.fail(file_.rank);
    abort();
    return false;
  }

  // At once: kernels wait for the lost peer until the communicator is aborted, and streams and memory can't go before
  // kernels have.
  void abort() {
    if (!communicator_) return;
    libraries_.ncclCommAbort(communicator_);
    communicator_ = nullptr;
  }

  bool own(const char* call, const Error& error) { return fail({call, 0, "", error.text()}); }

  bool nccl(const char* call, int code) {
    if (code == 0) return true;
    const char* last =
        communicator_ ? libraries_.ncclGetLastError(communicator_) : libraries_.ncclGetLastError(nullptr);
    return fail({call, code, nccl_result_name(code),
                 text::format("{}; {}", libraries_.ncclGetErrorString(code), last ? last : "")});
  }

  bool cuda(const char* call, int code) {
    if (code == 0) return true;
    return fail({call, code, "cudaError", libraries_.cudaGetErrorString(code)});
  }

  bool meet(const char* call) {
    auto met = exchange_.barrier(deadline_);
    return met.ok() || own(call, met.error());
  }

  bool start() {
    int version = 0;
    if (!nccl("ncclGetVersion", libraries_.ncclGetVersion(&version))) return false;
    report_.set_version(version);
    if (!cuda("cudaSetDevice", libraries_.cudaSetDevice(file_.device))) return false;
    UniqueId id{};
    if (file_.rank == 0) {
      if (!nccl("ncclGetUniqueId", libraries_.ncclGetUniqueId(&id))) return false;
      auto published = exchange_.publish("unique_id", std::string(id.bytes, sizeof id.bytes));
      if (!published) return own("publish unique id", published.error());
    } else {
      auto received = exchange_.await("unique_id", deadline_);
      if (!received) return own("await unique id", received.error());
      std::memcpy(id.bytes, received->data(), std::min(received->size(), sizeof id.bytes));
    }
    const auto begin = Clock::now();
    if (!nccl("ncclCommInitRank", libraries_.ncclCommInitRank(&communicator_, file_.ranks, id, file_.rank)))
      return false;
    report_.set_init_seconds(std::chrono::duration<double>(Clock::now() - begin).count());
    return true;
  }

  bool run_operation(const Operation& operation, Stream stream) {
    const Layout sizes = layout(operation, file_.rank, file_.ranks, 0);
    const std::size_t larger = std::max(sizes.send_bytes, sizes.receive_bytes);
    auto first = DeviceMemory::allocate(libraries_, larger);
    if (!first) return own("cudaMalloc", first.error());
    std::optional<DeviceMemory> second;
    if (!operation.in_place) {
      auto memory = DeviceMemory::allocate(libraries_, larger);
      if (!memory) return own("cudaMalloc", memory.error());
      second.emplace(memory.take());
    }
    const bool send_is_part = sizes.send_bytes < sizes.receive_bytes,
               receive_is_part = sizes.receive_bytes < sizes.send_bytes;
    std::byte* send = first->at(operation.in_place && send_is_part ? sizes.in_place_offset : 0);
    std::byte* receive =
        second ? second->at() : first->at(operation.in_place && receive_is_part ? sizes.in_place_offset : 0);
    host_.resize(larger);

    OperationReport outcome{operation, {}, 0, std::nullopt, {}};
    bool good = true;
    for (int i = 0; i < operation.warmup + operation.iterations && good; i++) {
      const Layout now = layout(operation, file_.rank, file_.ranks, ++iteration_);
      double time_us = 0;
      good = prepare(operation, now, send, receive, first->at(), larger) &&
             time_one(operation, send, receive, stream, time_us) && inspect(now, receive, outcome);
      if (good && i >= operation.warmup) outcome.time_us.push_back(time_us);
    }
    report_.add(std::move(outcome));
    return good;
  }

  bool prepare(const Operation& operation, const Layout& now, std::byte* send, std::byte* receive, std::byte* whole,
               std::size_t larger) {
    if (operation.in_place) {
      if (!cuda("cudaMemset", libraries_.cudaMemset(whole, kPoison, larger))) return false;
    } else if (!cuda("cudaMemset", libraries_.cudaMemset(receive, kPoison, now.receive_bytes))) {
      return false;
    }
    for (const Block& block : now.send) {
      fill(block.pattern, operation.element, block.first, block.count, host_.data() + block.offset);
    }
    if (now.send.empty()) return true;
    return cuda("cudaMemcpy", libraries_.cudaMemcpy(send, host_.data(), now.send_bytes, kCopyHostToDevice));
  }

  bool time_one(const Operation& operation, const std::byte* send, std::byte* receive, Stream stream, double& time_us) {
    if (!meet("barrier before an iteration")) return false;
    const auto begin = Clock::now();
    const int code = enqueue(libraries_, operation, file_.rank, file_.ranks, send, receive, communicator_, stream);
    if (!nccl(kind_name(operation.kind).c_str(), code) || !wait(stream)) return false;
    time_us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    return true;
  }

  // Waits for the stream while watching for the communicator's asynchronous error, which is how NCCL reports a lost
  // peer.
  bool wait(Stream stream) {
    const auto begin = Clock::now();
    while (true) {
      const int state = libraries_.cudaStreamQuery(stream);
      if (state == 0) return true;
      if (state != kCudaNotReady) return cuda("cudaStreamQuery", state);
      int error = 0;
      if (!nccl("ncclCommGetAsyncError", libraries_.ncclCommGetAsyncError(communicator_, &error))) return false;
      if (error != 0) return nccl("asynchronous error", error);
      const auto now = Clock::now();
      if (now > deadline_) return fail({"time limit", 0, "", "the operation did not finish in time"});
      std::this_thread::sleep_for(nap(now - begin));
    }
  }

  bool inspect(const Layout& now, const std::byte* receive, OperationReport& outcome) {
    if (now.receive.empty()) return true;
    if (!cuda("cudaMemcpy", libraries_.cudaMemcpy(host_.data(), receive, now.receive_bytes, kCopyDeviceToHost)))
      return false;
    for (const Block& block : now.receive) {
      const Check found =
          check(block.pattern, outcome.operation.element, block.first, block.count, host_.data() + block.offset);
      outcome.wrong += found.wrong;
      if (!outcome.first_wrong && found.first) outcome.first_wrong = found.first;
    }
    return true;
  }

  const Libraries& libraries_;
  const RankFile& file_;
  Exchange& exchange_;
  Deadline deadline_;
  Report& report_;
  Communicator communicator_ = nullptr;
  std::vector<std::byte> host_;
  std::uint64_t iteration_ = 0;
};

}  // namespace

void run_job(const Libraries& libraries, const RankFile& file, Exchange& exchange, Deadline deadline, Report& report) {
  Job(libraries, file, exchange, deadline, report).run();
}

}  // namespace weft::rank
