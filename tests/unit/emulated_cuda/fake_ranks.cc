#include "tests/unit/emulated_cuda/fake_ranks.h"

#include <cstring>
#include <thread>

namespace weft::nccl_kernels::testing {
namespace {

// Small, so that a collective of some thousand elements goes around the FIFO several times.
constexpr int kBufferBytes[kProtocols] = {8 * 16 * 64, 8 * 128 * 32, 8 * 4096};

}  // namespace

// From one rank to another, for collectives and for send and receive.
struct FakeRanks::Fifo {
  Fifo() {
    for (int protocol = 0; protocol < kProtocols; protocol++) {
      // Aligned as NCCL aligns them: whole lines.
      buffers[protocol].resize(std::size_t(kBufferBytes[protocol]) / sizeof(Line));
    }
  }
  void connect(ConnectionInfo& info) {
    for (int protocol = 0; protocol < kProtocols; protocol++)
      info.buffers[protocol] = reinterpret_cast<char*>(buffers[protocol].data());
    info.head = &head;
    info.tail = &tail;
    info.step_bytes = kBufferBytes[kSimple] / kSteps;
  }

  struct alignas(128) Line {
    std::uint64_t words[16];
  };
  std::vector<Line> buffers[kProtocols];
  alignas(64) std::uint64_t head = 0;
  alignas(64) std::uint64_t tail = 0;
};

struct FakeRanks::Rank {
  Communicator communicator{};
  Channel channel{};
  std::vector<ChannelPeer> peers;
  std::vector<ChannelPeer*> peer_pointers;
  std::vector<int> user_ranks;
};

FakeRanks::FakeRanks(int ranks) : ranks_(ranks) {
  for (int rank = 0; rank < ranks; rank++) {
    auto member = std::make_unique<Rank>();
    member->peers.resize(std::size_t(ranks), ChannelPeer{});
    for (int i = 0; i < ranks; i++) {
      member->peer_pointers.push_back(&member->peers[std::size_t(i)]);
      member->user_ranks.push_back((rank + i) % ranks);
    }
    Communicator& communicator = member->communicator;
    communicator.rank = rank;
    communicator.ranks = ranks;
    std::memcpy(communicator.buffer_bytes, kBufferBytes, sizeof kBufferBytes);
    communicator.send_receive_chunk_bytes = kBufferBytes[kSimple] / kSteps;
    communicator.abort_flag = &abort_flag_;
    communicator.channels = &member->channel;
    Channel& channel = member->channel;
    channel.peers = member->peer_pointers.data();
    channel.ring.previous = (rank + ranks - 1) % ranks;
    channel.ring.next = (rank + 1) % ranks;
    channel.ring.user_ranks = member->user_ranks.data();
    channel.ring.index = rank;
    // A binary tree: children 2r + 1 and 2r + 2.
    channel.tree.up = rank == 0 ? -1 : (rank - 1) / 2;
    for (int i = 0; i < kTreeChildren; i++) {
      const int child = 2 * rank + 1 + i;
      channel.tree.down[i] = i < 2 && child < ranks ? child : -1;
    }
    members_.push_back(std::move(member));
  }
  for (int from = 0; from < ranks; from++) {
    for (int to = 0; to < ranks; to++) {
      for (const int connection : {kCollectiveConnection, kSendReceiveConnection}) {
        auto fifo = std::make_unique<Fifo>();
        fifo->connect(members_[std::size_t(from)]->peers[std::size_t(to)].send[connection]);
        fifo->connect(members_[std::size_t(to)]->peers[std::size_t(from)].receive[connection]);
        fifos_.push_back(std::move(fifo));
      }
    }
  }
}

FakeRanks::~FakeRanks() = default;

Block FakeRanks::block(int rank) {
  Rank& member = *members_[std::size_t(rank)];
  return {&member.communicator, &member.channel, 0};
}

void FakeRanks::run(const std::function<void(const Block& block, int rank)>& work) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks_; rank++)
    threads.emplace_back([this, rank, &work] { work(block(rank), rank); });
  for (std::thread& thread : threads)
    thread.join();
}

void FakeRanks::set_step(std::uint64_t step) {
  for (auto& fifo : fifos_)
    fifo->head = fifo->tail = step;
  for (auto& member : members_) {
    for (ChannelPeer& peer : member->peers) {
      for (int i = 0; i < 2; i++)
        peer.send[i].step = peer.receive[i].step = step;
    }
  }
}

}  // namespace weft::nccl_kernels::testing
