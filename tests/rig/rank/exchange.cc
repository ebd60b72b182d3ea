#include "tests/rig/rank/exchange.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "common/text/format.h"

namespace weft::rank {
namespace {

// Short against a collective on the emulated fabric (milliseconds), long against the cost of waking up.
constexpr std::chrono::microseconds kNap{50};

}  // namespace

Exchange::Exchange(std::string folder, int ranks, Shared* shared)
    : folder_(std::move(folder)), ranks_(std::uint32_t(ranks)), shared_(shared) {}

Exchange::Exchange(Exchange&& other) noexcept
    : folder_(std::move(other.folder_)), ranks_(other.ranks_), shared_(other.shared_) {
  other.shared_ = nullptr;
}

Exchange::~Exchange() {
  if (shared_) munmap(shared_, sizeof(Shared));
}

Result<Exchange> Exchange::open(const std::string& folder, int ranks) {
  const std::string path = folder + "/barrier";
  // A new file is all zeros, which is the state before anybody arrived: no rank has to come first.
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return system_error("cannot open", errno, path);
  if (ftruncate(file, sizeof(Shared)) != 0) {
    const int code = errno;
    close(file);
    return system_error("cannot size", code, path);
  }
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int code = errno;
  close(file);
  if (memory == MAP_FAILED) return system_error("cannot map", code, path);
  return Exchange(folder, ranks, static_cast<Shared*>(memory));
}

Result<void> Exchange::publish(const std::string& name, const std::string& content) {
  const std::string path = folder_ + "/" + name, unfinished = path + ".unfinished";
  std::ofstream file(unfinished, std::ios::binary);
  file << content;
  file.close();
  if (!file || std::rename(unfinished.c_str(), path.c_str()) != 0) return system_error("cannot write", errno, path);
  return {};
}

Result<std::string> Exchange::await(const std::string& name, Deadline deadline) {
  const std::string path = folder_ + "/" + name;
  while (true) {
    std::ifstream file(path, std::ios::binary);
    if (file) {
      std::ostringstream content;
      content << file.rdbuf();
      return content.str();
    }
    if (auto state = lost(); !state) return state.take_error();
    if (std::chrono::steady_clock::now() > deadline) return Error{"nobody published it in time", path, ETIMEDOUT, {}};
    std::this_thread::sleep_for(kNap);
  }
}

Result<void> Exchange::lost() const {
  const std::uint32_t failed = shared_->failed_rank.load(std::memory_order_acquire);
  if (failed == 0) return {};
  return Error{text::format("rank {} is lost", failed - 1), "barrier", 0, {}};
}

Result<void> Exchange::barrier(Deadline deadline) {
  const std::uint32_t generation = shared_->generation.load(std::memory_order_acquire);
  if (shared_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks_) {
    shared_->arrived.store(0, std::memory_order_relaxed);
    shared_->generation.fetch_add(1, std::memory_order_release);
    return {};
  }
  while (shared_->generation.load(std::memory_order_acquire) == generation) {
    if (auto state = lost(); !state) return state;
    if (std::chrono::steady_clock::now() > deadline) {
      return Error{
          text::format("{} of {} ranks came in time", shared_->arrived.load(), ranks_), "barrier", ETIMEDOUT, {}};
    }
    std::this_thread::sleep_for(kNap);
  }
  return {};
}

void Exchange::fail(int rank) {
  std::uint32_t none = 0;
  shared_->failed_rank.compare_exchange_strong(none, std::uint32_t(rank) + 1, std::memory_order_acq_rel);
}

}  // namespace weft::rank
