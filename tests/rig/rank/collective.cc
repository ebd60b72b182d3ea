#include "tests/rig/rank/collective.h"

namespace weft::rank {
namespace {

int add_peer(int rank, int step, int ranks) {
  return (rank + step + ranks) % ranks;
}

Layout reducing(const Operation& operation, int rank, int ranks, std::uint64_t iteration) {
  const std::size_t count = operation.bytes / element_size(operation.element);
  Layout out;
  out.send_bytes = out.receive_bytes = operation.bytes;
  out.send.push_back({0, count, 0, reduction_input(operation.element, operation.reduction, rank, iteration)});
  const Pattern result = reduction_result(operation.element, operation.reduction, ranks, iteration);
  if (operation.kind == Kind::all_reduce || rank == operation.root) out.receive.push_back({0, count, 0, result});
  if (operation.kind == Kind::reduce_scatter) {
    const std::size_t part = count / std::size_t(ranks);
    out.receive_bytes = operation.bytes / std::size_t(ranks);
    out.in_place_offset = out.receive_bytes * std::size_t(rank);
    out.receive = {{0, part, part * std::size_t(rank), result}};
  }
  return out;
}

Layout all_gather(const Operation& operation, int rank, int ranks, std::uint64_t iteration) {
  const std::size_t block = operation.bytes / std::size_t(ranks), count = block / element_size(operation.element);
  Layout out;
  out.send_bytes = block;
  out.receive_bytes = operation.bytes;
  out.in_place_offset = block * std::size_t(rank);
  out.send.push_back({0, count, 0, transfer(operation.element, rank, rank, iteration)});
  for (int from = 0; from < ranks; from++) {
    out.receive.push_back({block * std::size_t(from), count, 0, transfer(operation.element, from, from, iteration)});
  }
  return out;
}

Layout broadcast(const Operation& operation, int rank, std::uint64_t iteration) {
  const std::size_t count = operation.bytes / element_size(operation.element);
  const Pattern content = transfer(operation.element, operation.root, operation.root, iteration);
  Layout out;
  out.send_bytes = out.receive_bytes = operation.bytes;
  if (rank == operation.root) out.send.push_back({0, count, 0, content});
  out.receive.push_back({0, count, 0, content});
  return out;
}

Layout send_recv_ring(const Operation& operation, int rank, int ranks, std::uint64_t iteration) {
  const std::size_t count = operation.bytes / element_size(operation.element);
  const int next = add_peer(rank, 1, ranks), previous = add_peer(rank, -1, ranks);
  Layout out;
  out.send_bytes = out.receive_bytes = operation.bytes;
  out.send.push_back({0, count, 0, transfer(operation.element, rank, next, iteration)});
  out.receive.push_back({0, count, 0, transfer(operation.element, previous, rank, iteration)});
  return out;
}

Layout all_to_all(const Operation& operation, int rank, int ranks, std::uint64_t iteration) {
  const std::size_t block = operation.bytes / std::size_t(ranks), count = block / element_size(operation.element);
  Layout out;
  out.send_bytes = out.receive_bytes = operation.bytes;
  for (int peer = 0; peer < ranks; peer++) {
    const std::size_t offset = block * std::size_t(peer);
    out.send.push_back({offset, count, 0, transfer(operation.element, rank, peer, iteration)});
    out.receive.push_back({offset, count, 0, transfer(operation.element, peer, rank, iteration)});
  }
  return out;
}

}  // namespace

Layout layout(const Operation& operation, int rank, int ranks, std::uint64_t iteration) {
  switch (operation.kind) {
    case Kind::all_reduce:
    case Kind::reduce:
    case Kind::reduce_scatter:
      return reducing(operation, rank, ranks, iteration);
    case Kind::all_gather:
      return all_gather(operation, rank, ranks, iteration);
    case Kind::broadcast:
      return broadcast(operation, rank, iteration);
    case Kind::send_recv_ring:
      return send_recv_ring(operation, rank, ranks, iteration);
    case Kind::all_to_all:
      return all_to_all(operation, rank, ranks, iteration);
    case Kind::net_stream:
    case Kind::net_incast:
    case Kind::net_ping_pong:
      break;  // net_job.h
  }
  return {};
}

int enqueue(const Libraries& libraries, const Operation& operation, int rank, int ranks, const std::byte* send,
            std::byte* receive, Communicator communicator, Stream stream) {
  const int type = int(operation.element), reduction = int(operation.reduction);
  const std::size_t count = operation.bytes / element_size(operation.element), part = count / std::size_t(ranks);
  switch (operation.kind) {
    case Kind::all_reduce:
      return libraries.ncclAllReduce(send, receive, count, type, reduction, communicator, stream);
    case Kind::all_gather:
      return libraries.ncclAllGather(send, receive, part, type, communicator, stream);
    case Kind::reduce_scatter:
      return libraries.ncclReduceScatter(send, receive, part, type, reduction, communicator, stream);
    case Kind::broadcast:
      return libraries.ncclBroadcast(send, receive, count, type, operation.root, communicator, stream);
    case Kind::reduce:
      return libraries.ncclReduce(send, receive, count, type, reduction, operation.root, communicator, stream);
    default:
      break;
  }
  const bool ring = operation.kind == Kind::send_recv_ring;
  const std::size_t each = ring ? count : part, block = ring ? 0 : operation.bytes / std::size_t(ranks);
  int code = libraries.ncclGroupStart();
  for (int step = 0; step < (ring ? 1 : ranks) && code == 0; step++) {
    const int to = ring ? add_peer(rank, 1, ranks) : step, from = ring ? add_peer(rank, -1, ranks) : step;
    code = libraries.ncclSend(send + block * std::size_t(to), each, type, to, communicator, stream);
    if (code == 0)
      code = libraries.ncclRecv(receive + block * std::size_t(from), each, type, from, communicator, stream);
  }
  const int end = libraries.ncclGroupEnd();
  return code != 0 ? code : end;
}

}  // namespace weft::rank
