#include "net_plugin/paths/path_budget.h"

#include <algorithm>

namespace weft::paths {

int PathBudget::allowed(std::uint64_t peer, int have) const {
  const auto known = connections_of_.find(peer);
  const int sharing = std::max(1, known == connections_of_.end() ? 1 : known->second);
  const int wanted =
      std::clamp(limits_.per_peer / sharing, std::min(limits_.least, limits_.per_connection), limits_.per_connection);
  // At most twice as many as with one path each, where that is more than anybody minds.
  int room = std::max(kFreeExtra, connections_) - (paths_ - connections_);
  // Something is left for the device's other users.
  if (limits_.device > 0) room = std::min(room, limits_.device / 2 - paths_);
  return std::clamp(wanted - have, 0, std::max(0, room));
}

int PathBudget::open(std::uint64_t peer) {
  std::lock_guard lock(mutex_);
  connections_of_[peer]++;
  connections_++;
  paths_++;
  return 1 + allowed(peer, 1);
}

void PathBudget::close(std::uint64_t peer, int paths) {
  std::lock_guard lock(mutex_);
  const auto known = connections_of_.find(peer);
  if (known != connections_of_.end() && --known->second == 0) connections_of_.erase(known);
  connections_--;
  paths_ -= paths;
}

int PathBudget::grow(std::uint64_t peer, int have) {
  std::lock_guard lock(mutex_);
  const int more = allowed(peer, have);
  paths_ += more;
  return more;
}

int PathBudget::connections() const {
  std::lock_guard lock(mutex_);
  return connections_;
}

int PathBudget::paths() const {
  std::lock_guard lock(mutex_);
  return paths_;
}

PathShare::PathShare(std::shared_ptr<PathBudget> budget, std::uint64_t peer)
    : budget_(std::move(budget)), peer_(peer), paths_(1) {
  possible_ = budget_->open(peer_);
}

PathShare::~PathShare() {
  if (budget_) budget_->close(peer_, paths_);
}

int PathShare::grow() {
  const int more = budget_ ? budget_->grow(peer_, paths_) : 0;
  paths_ += more;
  return more;
}

}  // namespace weft::paths
