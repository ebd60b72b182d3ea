// How many paths the connections over one NIC may have. Pure.
//
// A connection begins with one path and gets more once it has moved enough bytes. Queue pairs cost a NIC memory and
// about a millisecond of firmware each, so they follow need: the connections between two NICs share a number of paths,
// however many channels NCCL makes, and all connections of a NIC together stay near one queue pair each where there are
// many peers. docs/net-plugin.md says how the numbers were chosen.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace weft::paths {

struct BudgetLimits {
  int per_connection = 24;
  int per_peer = 48;  // shared by the connections between two NICs
  int device = 0;     // queue pairs that the device has for everybody; 0: not known
  int least = 2;      // what each connection may have however many share
};

class PathBudget {
 public:
  explicit PathBudget(const BudgetLimits& limits) : limits_(limits) {}

  // A connection to `peer` has been made, with one path; returns how many it could have in all.
  int open(std::uint64_t peer);
  void close(std::uint64_t peer, int paths);
  // How many more paths a connection that has `have` gets now; they are taken from the budget.
  int grow(std::uint64_t peer, int have);

  int connections() const;
  int paths() const;

  // So many paths beyond the first of each connection are nothing to worry about on one NIC.
  static constexpr int kFreeExtra = 512;

 private:
  int allowed(std::uint64_t peer, int have) const;

  const BudgetLimits limits_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, int> connections_of_;
  int connections_ = 0;
  int paths_ = 0;
};

// A connection's part of a budget, given back when it goes.
class PathShare {
 public:
  PathShare() = default;
  PathShare(std::shared_ptr<PathBudget> budget, std::uint64_t peer);
  PathShare(PathShare&&) = default;
  PathShare& operator=(PathShare&&) = delete;
  ~PathShare();

  // More paths for this connection, 0: none now.
  int grow();
  int paths() const { return paths_; }
  // Paths that a connection made now could have in all.
  int possible() const { return possible_; }

 private:
  std::shared_ptr<PathBudget> budget_;
  std::uint64_t peer_ = 0;
  int paths_ = 0;
  int possible_ = 0;
};

}  // namespace weft::paths
