// How the ranks of a job meet without a network of their own: a folder on the machine they all run on. Works across
// network and mount namespaces as long as the folder is the same one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "common/result/result.h"

namespace weft::rank {

using Deadline = std::chrono::steady_clock::time_point;

class Exchange {
 public:
  // Opens (the first comer makes) the meeting place of `ranks` ranks in `folder`, which must exist.
  static Result<Exchange> open(const std::string& folder, int ranks);
  Exchange(Exchange&& other) noexcept;
  Exchange& operator=(Exchange&&) = delete;
  ~Exchange();

  // A rank publishes bytes under a name, others wait for them.
  Result<void> publish(const std::string& name, const std::string& content);
  Result<std::string> await(const std::string& name, Deadline deadline);

  // Returns when all ranks have called it. An error when the deadline passes or a rank has called fail().
  Result<void> barrier(Deadline deadline);

  // Tells the ranks that wait, now or later, that this one is lost.
  void fail(int rank);
  // An error where one has.
  Result<void> lost() const;

 private:
  struct Shared {
    std::atomic<std::uint32_t> arrived;
    std::atomic<std::uint32_t> generation;
    std::atomic<std::uint32_t> failed_rank;  // rank + 1, 0 for none
  };
  Exchange(std::string folder, int ranks, Shared* shared);

  std::string folder_;
  std::uint32_t ranks_;
  Shared* shared_;
};

}  // namespace weft::rank
