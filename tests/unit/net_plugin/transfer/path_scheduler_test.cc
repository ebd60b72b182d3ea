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
  Simulation(std::vector<double> bytes_per_ns, Nanoseconds delay)
      : rates_(std::move(bytes_per_ns)), delays_(rates_.size(), delay) {
    free_at_.resize(rates_.size());
    carried_.resize(rates_.size());
  }

  void set_delay(std::size_t spine, Nanoseconds delay) { delays_[spine] = delay; }
  // All spines together are faster than the NIC.
  void set_nic(double bytes_per_ns) { nic_ = bytes_per_ns; }

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
  // How long pieces took: the longer, the more of them wait in queues.
  Nanoseconds median_piece_time() {
    std::nth_element(piece_times_.begin(), piece_times_.begin() + std::ptrdiff_t(piece_times_.size() / 2),
                     piece_times_.end());
    return piece_times_[piece_times_.size() / 2];
  }

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
    bool measured;
    bool operator<(const Event& other) const { return at > other.at; }
  };

  void offer(std::size_t index) {
    Connection& connection = connections_[index];
    connection_ = &connection;
    while (int(connection.messages.size()) < connection.at_once)
      connection.messages.emplace_back();
    const PiecePlan plan = plan_pieces(connection.message, {0, connection.scheduler.paths(), 0}, 256);
    for (std::size_t i = 0; i < connection.messages.size(); i++) {
      Message& message = connection.messages[i];
      while (message.posted < connection.message) {
        const std::size_t bytes = std::min(plan.bytes, connection.message - message.posted);
        const int path = connection.scheduler.choose(bytes, left(i, message, bytes));
        if (path < 0) return;
        const int spine = connection.spine_of_path[std::size_t(path)];
        double arrives = double(now_);
        if (nic_ > 0) arrives = nic_free_at_ = std::max(nic_free_at_, arrives) + double(bytes) / nic_;
        double& free_at = free_at_[std::size_t(spine)];
        free_at = std::max(free_at, arrives) + double(bytes) / rates_[std::size_t(spine)];
        carried_[std::size_t(spine)] += double(bytes);
        message.posted += bytes;
        const bool measured = connection.scheduler.measures(path, bytes, plan.pieces == 1);
        events_.push({Nanoseconds(free_at) + delays_[std::size_t(spine)], index, connection.first + i, bytes,
                      connection.scheduler.posted(path, bytes), now_, path, measured});
      }
    }
  }

  std::size_t left(std::size_t first, const Message& message, std::size_t bytes) const {
    const Connection& connection = *connection_;
    std::size_t sum = connection.message - message.posted - bytes;
    for (std::size_t i = first + 1; i < connection.messages.size(); i++)
      sum += connection.message - connection.messages[i].posted;
    return sum;
  }

  void finish(const Event& event) {
    piece_times_.push_back(now_ - event.posted_at);
    Connection& connection = connections_[event.connection];
    connection.scheduler.completed(event.path, event.bytes, event.under_way, event.measured ? event.posted_at : 0,
                                   now_);
    connection.messages[event.number - connection.first].acknowledged += event.bytes;
    while (!connection.messages.empty() && connection.messages.front().acknowledged == connection.message) {
      connection.messages.pop_front();
      connection.first++;
      connection.completed++;
    }
    offer(event.connection);
  }

  std::vector<double> rates_;
  std::vector<Nanoseconds> delays_;
  double nic_ = 0, nic_free_at_ = 0;
  std::vector<Nanoseconds> piece_times_;
  const Connection* connection_ = nullptr;
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

// More delay than all else takes: its pieces must not hold up the messages of the others.
TEST(PathScheduler, ADelayedSpineCostsItsOwnShareOnly) {
  std::mt19937 random(6);
  Simulation simulation(std::vector<double>(4, kSpine), 500'000);
  simulation.set_delay(3, 10'500'000);
  for (int i = 0; i < 2; i++)
    simulation.add_connection(random_spines(random, 16, 4), 512 * 1024, 4);
  EXPECT_GE(simulation.run(4 * kSecond), 0.75 * 0.95);
}

// As on real links: the delay is many times what a piece takes to pass. One path alone must fill the link all the same.
TEST(PathScheduler, OnePathFillsALongLink) {
  constexpr double kFast = 50;  // bytes per nanosecond: 400 Gbit/s
  for (const Nanoseconds delay : {2'000, 10'000, 50'000}) {
    Simulation simulation({kFast}, delay);
    simulation.add_connection({0}, 4 << 20, 4);
    EXPECT_GE(simulation.run(kSecond / 10), 0.95) << delay << " ns";
    EXPECT_LE(simulation.median_piece_time(), delay + 8 * Nanoseconds(65536 / kFast)) << "a queue for nothing";
  }
}

TEST(PathScheduler, ManyPathsFillALongLink) {
  constexpr double kFast = 12.5;  // 100 Gbit/s each
  std::mt19937 random(3);
  Simulation simulation(std::vector<double>(4, kFast), 10'000);
  for (int i = 0; i < 2; i++)
    simulation.add_connection(random_spines(random, 24, 4), 1 << 20, 4);
  EXPECT_GE(simulation.run(kSecond / 50), 0.93);
}

// Where the NIC is what limits, paths have nothing to gain from a second piece: the queue stays short, whatever the
// history, and does not creep up.
TEST(PathScheduler, QueuesStayShortBehindASlowNic) {
  for (unsigned seed = 0; seed < 20; seed++) {
    std::mt19937 random(seed);
    Simulation simulation(std::vector<double>(4, kSpine), 500'000);
    simulation.set_nic(2 * kSpine);
    for (int i = 0; i < 2; i++)
      simulation.add_connection(random_spines(random, 24, 4), 512 * 1024, 4);
    EXPECT_GE(simulation.run(4 * kSecond), 0.5 * 0.97);
    // 48 paths with one piece of 8 KiB each.
    EXPECT_LE(double(simulation.median_piece_time()), 1.5 * 48 * 8192 / (2 * kSpine)) << "seed " << seed;
  }
}

// A path was down for a while and its pieces took a thousand times longer: the others go on as before.
TEST(PathScheduler, PiecesThatHungDoNotLengthenTheQueuesOfOthers) {
  PathScheduler scheduler(8);
  Nanoseconds now = 0;
  const auto round = [&](Nanoseconds took) {
    std::vector<std::pair<int, std::size_t>> posted;
    for (int path = 0; (path = scheduler.choose(16384, 1 << 24)) >= 0;)
      posted.push_back({path, scheduler.posted(path, 16384)});
    const Nanoseconds posted_at = now;
    now += took;
    for (const auto& [path, under_way] : posted)
      scheduler.completed(path, 16384, under_way, posted_at, now);
    return posted.size();
  };
  for (int i = 0; i < 50; i++)
    round(1'000'000);
  round(1'000'000'000);
  for (int i = 0; i < 50; i++)
    EXPECT_LE(round(1'000'000), 24u) << "rounds after the outage: " << i;
}

TEST(PathScheduler, APathThatStandsStillHoldsOnePiece) {
  PathScheduler scheduler(4);
  Nanoseconds now = 0;
  int held = 0;
  for (int step = 0; step < 1000; step++) {
    now += 1'000'000;
    const int path = scheduler.choose(16384, 1 << 20);
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
    const int path = scheduler.choose(16384, 1 << 20);
    ASSERT_GE(path, 0);
    scheduler.posted(path, 16384);
    used[std::size_t(path)]++;
  }
  EXPECT_EQ(used, std::vector<int>(8, 1));
  EXPECT_EQ(scheduler.choose(16384, 1 << 20), -1)
      << "nothing is known of any path: one piece each until something completes";
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
        const int path = scheduler.choose(bytes, random() % (1 << 22));
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

// The short cut of a sender with much to send. What it is told by plenty() holds until something completes, and the
// path it gets is the one that choose() would have given it: idle, and not slow.
TEST(PathScheduler, TheNextGoodPathIsTheOneThatWouldHaveBeenChosen) {
  std::mt19937 random(2);
  int taken = 0, slow_taken = 0;
  for (int run = 0; run < 50; run++) {
    const int paths = 2 + int(random() % 80);
    PathScheduler scheduler(paths);
    struct Posted {
      int path;
      std::size_t under_way;
      Nanoseconds at;
    };
    std::vector<Posted> open;
    Nanoseconds now = 1;
    constexpr std::size_t kPiece = 65536;
    for (int step = 0; step < 300; step++) {
      std::size_t waiting = kPiece * (1 + random() % 100);
      const bool plenty = scheduler.plenty(kPiece, waiting);
      while (waiting > 0) {
        ASSERT_EQ(scheduler.plenty(kPiece, waiting), plenty);
        const PathScheduler::Turn turn = plenty ? scheduler.next_good() : PathScheduler::Turn{};
        if (turn.paths == 0) break;
        const int path = turn.next();
        ASSERT_EQ(scheduler.under_way(path), 0u);
        PathScheduler asked = scheduler;
        ASSERT_EQ(asked.choose(kPiece, waiting - kPiece), path);
        taken++;
        if (path == 0 && step > 100) slow_taken++;
        open.push_back({path, scheduler.posted(path, kPiece), now});
        waiting -= kPiece;
      }
      // Path 0 takes ten times as long as the others.
      now += 1'000'000;
      for (std::size_t i = 0; i < open.size();) {
        if (now < open[i].at + (open[i].path == 0 ? 10'000'000u : 1'000'000u)) {
          i++;
          continue;
        }
        scheduler.completed(open[i].path, kPiece, open[i].under_way, open[i].at, now);
        open.erase(open.begin() + std::ptrdiff_t(i));
      }
    }
  }
  EXPECT_GT(taken, 10'000);
  EXPECT_EQ(slow_taken, 0);
}

// Handed out in one go or one by one, it is the same.
TEST(PathScheduler, PathsTakenTogetherAreTakenOneByOne) {
  std::mt19937 random(3);
  for (int run = 0; run < 200; run++) {
    const int paths = 1 + int(random() % 140);
    PathScheduler together(paths), singly(paths);
    for (int step = 0; step < 20; step++) {
      const PathScheduler::Turn turn = together.next_good();
      ASSERT_EQ(turn.paths, singly.next_good().paths);
      if (turn.paths == 0) break;
      PathScheduler::Turn left = turn;
      for (std::size_t most = 1 + random() % 64; left.paths != 0 && most > 0; most--, left.paths &= left.paths - 1) {
        ASSERT_LT(left.next(), paths);
        ASSERT_EQ(together.holds(left.next(), 8192), singly.posted(left.next(), 8192));
      }
      together.taken({turn.first, turn.paths ^ left.paths});
      const int back = int(random() % std::uint32_t(paths));
      if (together.under_way(back) == 0) continue;
      together.completed(back, 8192, 8192, 0, 1);
      singly.completed(back, 8192, 8192, 0, 1);
    }
    ASSERT_EQ(together.choose(8192, 1 << 20), singly.choose(8192, 1 << 20));
  }
}

// A look at the clock for each piece would be dear: of a path that does what is expected of it one in 64 KiB is enough,
// of another every piece counts.
TEST(PathScheduler, ASampleOfAGoodPathIsMeasuredAndEveryPieceOfAnother) {
  PathScheduler scheduler(4);
  EXPECT_FALSE(scheduler.measures(0, 1024, false)) << "small pieces say little";
  EXPECT_FALSE(scheduler.measures(0, 4096, true)) << "nor do small messages";
  int measured[4] = {};
  Nanoseconds now = 1;
  for (int round = 0; round < 100; round++) {
    for (int path = 0; path < 4; path++) {
      const bool measures = scheduler.measures(path, 8192, false);
      measured[path] += measures;
      const std::size_t under_way = scheduler.posted(path, 8192);
      scheduler.completed(path, 8192, under_way, measures ? now : 0, now + (path == 3 ? 100'000 : 10'000));
    }
    now += 1'000'000;
  }
  EXPECT_EQ(measured[0], 13);
  EXPECT_EQ(measured[1], 13);
  EXPECT_EQ(measured[2], 13);
  EXPECT_GE(measured[3], 98);
}

}  // namespace
}  // namespace weft::transfer
