#include "net_plugin/transfer/path_scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <queue>
#include <random>
#include <vector>

#include "net_plugin/transfer/piece_plan.h"

namespace weft::transfer {
namespace {

// A host that sends to another one over spines that are first-come-first-served servers. Several connections, each with
// a few messages at a time as NCCL's ring has them: a new one is offered when the oldest has been completed. In
// simulation; shows the policy, not the speed of anything.
class Simulation {
 public:
  Simulation(std::vector<double> bytes_per_ns, Nanoseconds delay) : rates_(std::move(bytes_per_ns)), delay_(delay) {
    free_at_.resize(rates_.size());
    carried_.resize(rates_.size());
  }

  void add_connection(const std::vector<int>& spine_of_path, std::size_t message, int at_once) {
    connections_.push_back({PathScheduler(int(spine_of_path.size())), spine_of_path, message, at_once, {}, 0, 0});
  }

  // Share of what all spines together could have carried, by messages completed in order.
  double run(Nanoseconds duration) {
    for (std::size_t i = 0; i < connections_.size(); i++)
      offer(i);
    while (!events_.empty() && events_.top().at < duration) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      finish(event);
    }
    double done = 0;
    for (const Connection& connection : connections_)
      done += double(connection.completed) * double(connection.message);
    return done / (std::accumulate(rates_.begin(), rates_.end(), 0.0) * double(duration));
  }

  const std::vector<double>& carried() const { return carried_; }

 private:
  struct Message {
    std::size_t posted = 0, acknowledged = 0;
  };
  struct Connection {
    PathScheduler scheduler;
    std::vector<int> spine_of_path;
    std::size_t message;
    int at_once;
    std::deque<Message> messages;  // oldest first
    std::size_t first;             // number of messages.front()
    std::size_t completed;
  };
  struct Event {
    Nanoseconds at;
    std::size_t connection, number, bytes, under_way;
    Nanoseconds posted_at;
    int path;
    bool operator<(const Event& other) const { return at > other.at; }
  };

  void offer(std::size_t index) {
    Connection& connection = connections_[index];
    while (int(connection.messages.size()) < connection.at_once)
      connection.messages.emplace_back();
    const PiecePlan plan = plan_pieces(connection.message, {0, connection.scheduler.paths(), 0}, 256);
    for (std::size_t i = 0; i < connection.messages.size(); i++) {
      Message& message = connection.messages[i];
      while (message.posted < connection.message) {
        const std::size_t bytes = std::min(plan.bytes, connection.message - message.posted);
        const int path = connection.scheduler.choose(bytes, now_);
        if (path < 0) return;
        const int spine = connection.spine_of_path[std::size_t(path)];
        double& free_at = free_at_[std::size_t(spine)];
        free_at = std::max(free_at, double(now_)) + double(bytes) / rates_[std::size_t(spine)];
        carried_[std::size_t(spine)] += double(bytes);
        message.posted += bytes;
        events_.push({Nanoseconds(free_at) + delay_, index, connection.first + i, bytes,
                      connection.scheduler.posted(path, bytes), now_, path});
      }
    }
  }

  void finish(const Event& event) {
    Connection& connection = connections_[event.connection];
    connection.scheduler.completed(event.path, event.bytes, event.under_way, event.posted_at, now_);
    connection.messages[event.number - connection.first].acknowledged += event.bytes;
    while (!connection.messages.empty() && connection.messages.front().acknowledged == connection.message) {
      connection.messages.pop_front();
      connection.first++;
      connection.completed++;
    }
    offer(event.connection);
  }

  std::vector<double> rates_;
  Nanoseconds delay_;
  std::vector<double> free_at_, carried_;
  std::vector<Connection> connections_;
  std::priority_queue<Event> events_;
  Nanoseconds now_ = 0;
};

constexpr double kSpine = 50e6 / 8 / 1e9;  // 50 Mbit/s in bytes per nanosecond
constexpr Nanoseconds kSecond = 1'000'000'000;

std::vector<int> random_spines(std::mt19937& random, int paths, int spines) {
  std::vector<int> out;
  for (int i = 0; i < paths; i++)
    out.push_back(int(random() % unsigned(spines)));
  return out;
}

TEST(PathScheduler, FillsFourSpinesWithRandomPorts) {
  std::vector<double> shares;
  for (unsigned seed = 0; seed < 40; seed++) {
    std::mt19937 random(seed);
    Simulation simulation(std::vector<double>(4, kSpine), 500'000);
    for (int i = 0; i < 2; i++)
      simulation.add_connection(random_spines(random, 16, 4), 512 * 1024, 4);
    shares.push_back(simulation.run(4 * kSecond));
  }
  std::sort(shares.begin(), shares.end());
  EXPECT_GE(shares[20], 0.95);
  EXPECT_GE(shares[2], 0.90);
}

TEST(PathScheduler, ASlowSpineCostsItsOwnShareOnly) {
  std::mt19937 random(5);
  Simulation simulation({kSpine, kSpine, kSpine, kSpine / 4}, 500'000);
  for (int i = 0; i < 2; i++)
    simulation.add_connection(random_spines(random, 16, 4), 512 * 1024, 4);
  EXPECT_GE(simulation.run(4 * kSecond), 0.88);
}

TEST(PathScheduler, CrowdedPathsTakeLess) {
  // Seven paths on one spine, one on the other: both must be busy all the time.
  Simulation simulation({kSpine, kSpine}, 500'000);
  simulation.add_connection({0, 0, 0, 0, 0, 0, 0, 1}, 512 * 1024, 4);
  EXPECT_GE(simulation.run(4 * kSecond), 0.90);
  EXPECT_NEAR(simulation.carried()[0] / simulation.carried()[1], 1.0, 0.15);
}

TEST(PathScheduler, APathThatStandsStillHoldsOnePiece) {
  PathScheduler scheduler(4);
  Nanoseconds now = 0;
  int held = 0;
  for (int step = 0; step < 1000; step++) {
    now += 1'000'000;
    const int path = scheduler.choose(16384, now);
    if (path < 0) continue;
    const std::size_t under_way = scheduler.posted(path, 16384);
    if (path == 2)
      held++;
    else
      scheduler.completed(path, 16384, under_way, now, now + 1'000'000);
  }
  EXPECT_EQ(held, 1);
}

TEST(PathScheduler, EqualPathsTakeTurns) {
  PathScheduler scheduler(8);
  std::vector<int> used(8);
  for (int i = 0; i < 8; i++) {
    const int path = scheduler.choose(16384, 1);
    ASSERT_GE(path, 0);
    scheduler.posted(path, 16384);
    used[std::size_t(path)]++;
  }
  EXPECT_EQ(used, std::vector<int>(8, 1));
  EXPECT_EQ(scheduler.choose(16384, 1), -1) << "nothing is known of any path: one piece each until something completes";
}

// Whatever the history: a path that is idle and measured as good as the others is never refused, and what is under way
// is the sum of what was posted and not completed.
TEST(PathScheduler, KeepsCountUnderRandomHistories) {
  std::mt19937 random(1);
  for (int run = 0; run < 50; run++) {
    PathScheduler scheduler(1 + int(random() % 20));
    struct Posted {
      int path;
      std::size_t bytes, under_way;
      Nanoseconds at;
    };
    std::vector<Posted> open;
    std::vector<std::size_t> expected(std::size_t(scheduler.paths()));
    Nanoseconds now = 1;
    for (int step = 0; step < 2000; step++) {
      now += random() % 100'000;
      if (random() % 2 == 0) {
        const std::size_t bytes = random() % 65536;
        const int path = scheduler.choose(bytes, now);
        if (path < 0) {
          ASSERT_FALSE(open.empty()) << "with nothing under way there is always a path";
          continue;
        }
        expected[std::size_t(path)] += bytes;
        open.push_back({path, bytes, scheduler.posted(path, bytes), now});
      } else if (!open.empty()) {
        const std::size_t pick = random() % open.size();
        const Posted done = open[pick];
        open.erase(open.begin() + std::ptrdiff_t(pick));
        expected[std::size_t(done.path)] -= done.bytes;
        scheduler.completed(done.path, done.bytes, done.under_way, done.at, now);
      }
      for (int i = 0; i < scheduler.paths(); i++)
        ASSERT_EQ(scheduler.under_way(i), expected[std::size_t(i)]);
    }
  }
}

}  // namespace
}  // namespace weft::transfer
