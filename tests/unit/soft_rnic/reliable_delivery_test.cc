// Properties of the protocol under random loss, duplication, overtaking and full sockets: every byte arrives once and
// right, completions come in order and only for what has arrived, and calm weather causes no retransmission.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/soft_rnic/simulation.h"

namespace weft::soft_rnic {
namespace {

using test::End;
using test::HostMemory;
using test::post_receive;
using test::prepare;
using test::Simulation;
using test::Weather;

struct Season {
  const char* name;
  Weather weather;
};

constexpr Nanoseconds kUs = kMicrosecond;

const Season kSeasons[] = {
    {"Calm", {}},
    {"Loss", {.lose = 20}},
    {"HeavyLoss", {.lose = 150}},
    {"Overtaking", {.overtake = 100, .overtake_by = 300 * kUs}},
    {"LateOvertaking", {.overtake = 20, .overtake_by = 5000 * kUs}},
    {"Duplication", {.duplicate = 100, .overtake_by = 100 * kUs}},
    {"FullSockets", {.refuse = 200}},
    {"Everything", {.lose = 30, .duplicate = 30, .overtake = 50, .overtake_by = 3000 * kUs, .refuse = 50}},
};

RequesterSettings settings_for(std::uint32_t seed) {
  RequesterSettings settings;
  settings.mtu = seed % 2 == 0 ? 256 : 1024;
  settings.window_packets = 4 + seed % 61;
  settings.max_outstanding_reads = seed % 4;
  settings.timeout = 8;  // about 1 ms
  settings.retry_count = 7;
  return settings;
}

class Weathers : public testing::TestWithParam<std::tuple<int, std::uint32_t>> {
 protected:
  Season season() const { return kSeasons[std::get<0>(GetParam())]; }
  std::uint32_t seed() const { return std::get<1>(GetParam()); }
};

// A mixture of all operations in both directions; the model is a plain copy of the two memories on which the operations
// are carried out at once.
struct Job {
  ibv_wr_opcode opcode;
  std::size_t offset;
  std::uint32_t length;
};

class Traffic {
 public:
  Traffic(Simulation& simulation, End& from, End& to) : simulation_(&simulation), from_(&from), to_(&to) {}

  // Every job has its own stretch of memory: [next_, next_ + length).
  void post_one(std::uint64_t id) {
    static constexpr ibv_wr_opcode kOpcodes[] = {
        IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,  IBV_WR_SEND,
        IBV_WR_RDMA_READ,  IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_IMM,
    };
    std::mt19937& random = simulation_->random();
    const ibv_wr_opcode opcode = kOpcodes[random() % std::size(kOpcodes)];
    const bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    const std::uint32_t length = atomic ? 8 : random() % 8 == 0 ? 0 : random() % 6000;
    const bool reads = opcode == IBV_WR_RDMA_READ;
    next_ = (next_ + 7) / 8 * 8;
    std::uint8_t* source = (reads || atomic ? to_ : from_)->memory.bytes.data() + next_;
    for (std::uint32_t index = 0; index < length; ++index)
      source[index] = static_cast<std::uint8_t>(random());
    SendRequest& request = prepare(*from_, opcode, id, next_, length);
    request.immediate = static_cast<std::uint32_t>(id * 2654435761U);
    request.swap_or_add = 3;
    if (request.has_immediate() || opcode == IBV_WR_SEND) {
      post_receive(*to_, id, next_, opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? 0 : length);
      expected_receives_.push_back(id);
    }
    expected_.emplace_back(source, source + length);
    jobs_.push_back({opcode, next_, length});
    from_->requester.post();
    next_ += length;
  }

  void check() const {
    ASSERT_EQ(from_->sent.completions.size(), jobs_.size());
    for (std::size_t index = 0; index < jobs_.size(); ++index) {
      const Job& job = jobs_[index];
      const ibv_wc& completion = from_->sent.completions[index];
      EXPECT_EQ(completion.wr_id, index) << "completions out of order";
      EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
      const bool pulled = job.opcode == IBV_WR_RDMA_READ || job.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
      const auto& target = (pulled ? from_ : to_)->memory.bytes;
      EXPECT_TRUE(std::equal(expected_[index].begin(), expected_[index].end(),
                             target.begin() + static_cast<std::ptrdiff_t>(job.offset)))
          << "job " << index << " opcode " << job.opcode;
      if (job.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        std::uint64_t before = 0;
        std::uint64_t after = 0;
        std::memcpy(&before, expected_[index].data(), 8);
        std::memcpy(&after, to_->memory.bytes.data() + job.offset, 8);
        EXPECT_EQ(after, before + 3) << "an atomic must happen exactly once";
      }
    }
    ASSERT_EQ(to_->received.completions.size(), expected_receives_.size());
    for (std::size_t index = 0; index < expected_receives_.size(); ++index) {
      const ibv_wc& completion = to_->received.completions[index];
      const Job& job = jobs_[expected_receives_[index]];
      EXPECT_EQ(completion.wr_id, expected_receives_[index]);
      EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
      EXPECT_EQ(completion.byte_len, job.length);
      if (job.opcode != IBV_WR_SEND) {
        EXPECT_EQ(completion.imm_data, static_cast<std::uint32_t>(completion.wr_id * 2654435761U));
        EXPECT_EQ(completion.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
      }
    }
  }

 private:
  Simulation* simulation_;
  End* from_;
  End* to_;
  std::size_t next_ = 0;
  std::vector<Job> jobs_;
  std::vector<std::vector<std::uint8_t>> expected_;
  std::vector<std::uint64_t> expected_receives_;
};

TEST_P(Weathers, EverythingArrivesOnceAndInOrder) {
  Simulation simulation(seed(), season().weather, settings_for(seed()));
  // Left uses its own region upward for what it starts, right likewise: separate simulations of one direction each
  // would not test that answers and requests share the connection, so the two run together on two copies of the memory.
  Traffic there(simulation, simulation.left(), simulation.right());
  for (std::uint64_t id = 0; id < 60; ++id) {
    there.post_one(id);
    if (simulation.random()() % 3 == 0) simulation.run(simulation.random()() % (200 * kUs));
  }
  simulation.run(60'000 * kMillisecond);
  there.check();
  EXPECT_FALSE(simulation.wrote_malformed_packet());
  EXPECT_TRUE(simulation.left().requester.idle());
}

TEST_P(Weathers, BothDirectionsAtOnce) {
  Simulation simulation(seed(), season().weather, settings_for(seed()));
  constexpr std::uint32_t kHalf = 1 << 19;
  std::vector<std::uint8_t> from_left(400'000);
  std::vector<std::uint8_t> from_right(400'000);
  for (std::size_t index = 0; index < from_left.size(); ++index) {
    from_left[index] = static_cast<std::uint8_t>(simulation.random()());
    from_right[index] = static_cast<std::uint8_t>(simulation.random()());
  }
  auto& left = simulation.left();
  auto& right = simulation.right();
  std::copy(from_left.begin(), from_left.end(), left.memory.bytes.begin());
  std::copy(from_right.begin(), from_right.end(), right.memory.bytes.begin() + kHalf);
  for (std::uint64_t id = 0; id < 8; ++id) {
    prepare(left, IBV_WR_RDMA_WRITE, id, id * 50'000, 50'000);
    left.requester.post();
    prepare(right, IBV_WR_RDMA_WRITE, id, kHalf + id * 50'000, 50'000);
    right.requester.post();
  }
  simulation.run(60'000 * kMillisecond);
  EXPECT_EQ(left.sent.completions.size(), 8U);
  EXPECT_EQ(right.sent.completions.size(), 8U);
  EXPECT_TRUE(std::equal(from_left.begin(), from_left.end(), right.memory.bytes.begin()));
  EXPECT_TRUE(std::equal(from_right.begin(), from_right.end(), left.memory.bytes.begin() + kHalf));
}

// At no moment may a completion say more than what lies in the peer's memory.
TEST_P(Weathers, NoCompletionBeforeTheBytesAreThere) {
  Simulation simulation(seed(), season().weather, settings_for(seed()));
  auto& left = simulation.left();
  for (std::size_t index = 0; index < 200'000; ++index)
    left.memory.bytes[index] = 0xa5;
  for (std::uint64_t id = 0; id < 20; ++id) {
    prepare(left, IBV_WR_RDMA_WRITE, id, id * 10'000, 10'000);
    left.requester.post();
  }
  const std::vector<std::uint8_t> written(10'000, 0xa5);
  for (int step = 0; step < 100'000 && !left.requester.idle(); ++step) {
    simulation.run(10 * kUs);
    for (std::size_t done = 0; done < left.sent.completions.size(); ++done) {
      const auto begin = simulation.right().memory.bytes.begin() + static_cast<std::ptrdiff_t>(done * 10'000);
      ASSERT_TRUE(std::equal(written.begin(), written.end(), begin)) << "completion " << done << " came too early";
    }
  }
  EXPECT_TRUE(left.requester.idle());
}

INSTANTIATE_TEST_SUITE_P(Seasons, Weathers,
                         testing::Combine(testing::Range(0, static_cast<int>(std::size(kSeasons))),
                                          testing::Range<std::uint32_t>(1, 7)),
                         [](const auto& tested) {
                           return std::string(kSeasons[std::get<0>(tested.param)].name) + "Seed" +
                                  std::to_string(std::get<1>(tested.param));
                         });

TEST(ReliableDelivery, CalmWeatherNeedsEveryPacketOnce) {
  RequesterSettings settings;
  settings.window_packets = 64;
  Simulation simulation(1, {}, settings);
  for (std::uint64_t id = 0; id < 10; ++id) {
    prepare(simulation.left(), IBV_WR_RDMA_WRITE, id, 0, 100 * 1024);
    simulation.left().requester.post();
  }
  simulation.run();
  EXPECT_EQ(simulation.left().requester.counters().timeouts, 0U);
  EXPECT_EQ(simulation.right().responder.counters().duplicates, 0U);
  EXPECT_EQ(simulation.right().memory.stored, 10U * 100 * 1024);
  EXPECT_LE(simulation.packets(), 1000U + 1000U / 4);  // acknowledgements are few
}

TEST(ReliableDelivery, ShortOvertakingCausesNoRetransmission) {
  Weather weather;
  weather.overtake = 200;
  weather.overtake_by = 500 * kUs;
  RequesterSettings settings;
  settings.timeout = 14;
  Simulation simulation(7, weather, settings);
  for (std::uint64_t id = 0; id < 10; ++id) {
    prepare(simulation.left(), IBV_WR_RDMA_WRITE, id, 0, 100 * 1024);
    simulation.left().requester.post();
  }
  simulation.run();
  EXPECT_EQ(simulation.left().sent.completions.size(), 10U);
  EXPECT_GT(simulation.right().responder.counters().overtaken, 0U);
  EXPECT_EQ(simulation.right().responder.counters().gaps, 0U);
  EXPECT_EQ(simulation.right().memory.stored, 10U * 100 * 1024);
}

}  // namespace
}  // namespace weft::soft_rnic
