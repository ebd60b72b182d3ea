// What NCCL holds between isend, irecv or iflush and test. Requests live in pools of the connection; nothing is
// allocated.
#pragma once

#include <cstdint>

namespace weft::transfer {

enum class RequestKind : std::uint8_t { send, receive, flush };

class Sender;
class Receiver;

struct Request {
  RequestKind kind = RequestKind::send;
  bool in_use = false;
  std::uint32_t number = 0;  // of the (first) message; of the flush
  int group = 1;             // receives of the group
  union {
    Sender* sender;
    Receiver* receiver;
  };
};

// The outcome of a call on the data path. `failed`: the connection's failure() says why.
enum class Progress { done, not_yet, failed };

}  // namespace weft::transfer
