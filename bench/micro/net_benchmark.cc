// What the data path costs the CPU: isend, irecv and test of whole messages over a NIC that carries work out at once,
// against the verbs calls that the same messages need, made directly. Both run here, alternately; the ratio is printed
// with the allocations of the data path, of which there must be none. No NIC, no wire: CPU time of this machine.
#include <benchmark/benchmark.h>

#include <vector>

#include "tests/unit/net_plugin/fake/loopback.h"

// Of this whole program so far (counted_new.cc).
extern std::size_t allocations;

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;
using transfer::Progress;
using transfer::Request;

double nanoseconds(Clock::duration time) {
  return std::chrono::duration<double, std::nano>(time).count();
}

// One message through Weft.
struct Message {
  transfer::Sender* sender;
  transfer::Receiver* receiver;
  std::vector<std::uint8_t> from, to;
  transfer::Registration from_memory, to_memory;

  bool carry() {
    Request *receive = nullptr, *send = nullptr;
    const transfer::Receive offer{to.data(), to.size(), 0, &to_memory};
    if (receiver->receive(&offer, 1, &receive) != Progress::done) return false;
    if (sender->send(from.data(), from.size(), 0, from_memory, &send) != Progress::done) return false;
    int size = 0;
    Progress sent = Progress::not_yet, received = Progress::not_yet;
    while (sent == Progress::not_yet || received == Progress::not_yet) {
      if (sent == Progress::not_yet) sent = sender->test(*send, &size);
      if (received == Progress::not_yet) received = receiver->test(*receive, &size);
    }
    return sent == Progress::done && received == Progress::done;
  }
};

// The same with bare verbs on two queue pairs of another connection: a record's WRITE, the pieces' WRITEs with
// immediate, receives queued again, completions polled.
struct BareVerbs {
  transfer::Link* sending;
  transfer::Link* receiving;
  std::size_t pieces;
  std::uint32_t from_key, to_key, record_key;

  bool write(transfer::Link& link, std::size_t path, ibv_wr_opcode opcode, void* from, std::uint32_t local_key,
             void* to, std::uint32_t remote_key, std::size_t bytes, bool signaled) const {
    ibv_sge segment{reinterpret_cast<std::uint64_t>(from), std::uint32_t(bytes), local_key};
    ibv_send_wr work{}, *bad = nullptr;
    work.sg_list = &segment;
    work.num_sge = 1;
    work.opcode = opcode;
    work.send_flags = signaled ? unsigned(IBV_SEND_SIGNALED) : 0u;
    work.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(to);
    work.wr.rdma.rkey = remote_key;
    return ibv_post_send(link.paths[path].qp.get(), &work, &bad) == 0;
  }

  bool carry(std::uint8_t* from, std::uint8_t* to, std::size_t size, std::uint8_t (&record)[128]) const {
    const std::size_t bytes = size / pieces;
    bool good = write(*receiving, 0, IBV_WR_RDMA_WRITE, record, record_key, record + 64, record_key, 64, false);
    for (std::size_t i = 0; i < pieces; i++) {
      good = good && write(*sending, i % sending->paths.size(), IBV_WR_RDMA_WRITE_WITH_IMM, from + i * bytes, from_key,
                           to + i * bytes, to_key, bytes, true);
    }
    ibv_wc completions[16];
    for (std::size_t left = pieces; left > 0;)
      left -= std::size_t(ibv_poll_cq(sending->cqs[0].get(), 16, completions));
    for (std::size_t left = pieces; left > 0;) {
      const int count = ibv_poll_cq(receiving->cqs[0].get(), 16, completions);
      left -= std::size_t(count);
      ibv_recv_wr list[16], *bad = nullptr;
      for (int i = 0; i < count; i++) {
        list[i] = {};
        list[i].next = i + 1 < count ? &list[i + 1] : nullptr;
      }
      good = good && (count == 0 || ibv_post_srq_recv(receiving->devices[0].srq.get(), list, &bad) == 0);
    }
    return good;
  }
};

void Transfer(benchmark::State& state) {
  const auto size = std::size_t(state.range(0));
  fake::Loopback loop, bare_loop;
  auto ends = loop.connect(), bare_ends = bare_loop.connect();
  if (!ends || !bare_ends) {
    state.SkipWithError("no connection");
    return;
  }
  Message message{ends->first, ends->second, std::vector<std::uint8_t>(size), std::vector<std::uint8_t>(size), {}, {}};
  message.from_memory = loop.registration(message.from.data(), size);
  message.to_memory = loop.registration(message.to.data(), size);
  const std::size_t pieces = transfer::plan_pieces(size, {0, 24, 100'000}, transfer::kMaxPieces).pieces;
  std::uint8_t record[128] = {};
  const transfer::Registration bare_from = bare_loop.registration(message.from.data(), size),
                               bare_to = bare_loop.registration(message.to.data(), size),
                               bare_record = bare_loop.registration(record, sizeof record);
  const BareVerbs bare{&bare_ends->first->link(), &bare_ends->second->link(), pieces,
                       bare_from.local_keys[0],   bare_to.remote_keys[0],     bare_record.local_keys[0]};
  double ours = 0, theirs = 0;
  bool good = true;
  std::size_t allocated = 0, rounds = 0;
  for (auto _ : state) {
    const std::size_t before = allocations;
    const auto start = Clock::now();
    good = good && message.carry();
    const auto middle = Clock::now();
    allocated += allocations - before;
    good = good && bare.carry(message.from.data(), message.to.data(), size, record);
    const auto end = Clock::now();
    ours += nanoseconds(middle - start);
    theirs += nanoseconds(end - middle);
    rounds++;
    state.SetIterationTime(nanoseconds(middle - start) * 1e-9);
  }
  if (!good) state.SkipWithError("a message was not carried");
  state.counters["bare_verbs_ns"] = theirs / double(rounds);
  state.counters["ratio"] = ours / theirs;
  state.counters["pieces"] = double(pieces);
  state.counters["allocations"] = double(allocated);
}
BENCHMARK(Transfer)->Arg(8)->Arg(4096)->Arg(65536)->Arg(1 << 20)->UseManualTime();

// test() of a request that is not done: what NCCL's progress thread does most of the time.
void PollNothing(benchmark::State& state) {
  fake::Loopback loop;
  auto ends = loop.connect();
  if (!ends) {
    state.SkipWithError("no connection");
    return;
  }
  std::uint8_t byte = 0;
  const transfer::Registration memory = loop.registration(&byte, 1);
  const transfer::Receive offer{&byte, 1, 0, &memory};
  Request* receive = nullptr;
  (void)ends->second->receive(&offer, 1, &receive);
  const std::size_t before = allocations;
  for (auto _ : state)
    benchmark::DoNotOptimize(ends->second->test(*receive, nullptr));
  state.counters["allocations"] = double(allocations - before);
}
BENCHMARK(PollNothing);

}  // namespace
}  // namespace weft
