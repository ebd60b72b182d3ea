#include "tests/rig/rank/net_connection.h"

#include <algorithm>
#include <cstring>

#include "common/text/format.h"
#include "tests/rig/rank/libraries.h"

namespace weft::rank {
namespace {

// Every so many bytes of a message say which message it is; the bytes between are the same in all messages.
constexpr std::size_t kStampEvery = 1024;
constexpr int kTag = 3;

std::byte filling(std::size_t place) {
  return std::byte((place * 131 + place / 251) & 0xff);
}

}  // namespace

NetConnection::NetConnection(versions::NetInterface& net, const NetEnd& end)
    : net_(net),
      end_(end),
      stride_((std::max(end.bytes, sizeof(std::uint64_t)) + 4095) / 4096 * 4096),
      buffers_(stride_ * std::size_t(end.in_flight)),
      slots_(std::size_t(end.in_flight)) {
  for (std::size_t i = 0; i < buffers_.size(); i++)
    buffers_[i] = end_.sends ? filling(i % stride_) : std::byte(0xee);
}

NetConnection::~NetConnection() {
  if (registered_) net_.deregister(comm_, memory_);
  if (comm_) end_.sends ? net_.close_send(comm_) : net_.close_receive(comm_);
  if (listening_) net_.close_listen(listening_);
}

Result<void> NetConnection::check(const char* call, ncclResult_t code) const {
  if (code == ncclSuccess) return {};
  return Error{text::format("{} failed with {}", call, nccl_result_name(code)), end_.name, 0, "the log has the cause"};
}

Result<void> NetConnection::listen(int device, Exchange& exchange) {
  if (auto listening = check("listen", net_.listen(device, handle_, &listening_)); !listening) return listening;
  return exchange.publish(end_.name, std::string(handle_, sizeof handle_));
}

Result<void> NetConnection::connect(int device, Exchange& exchange, Deadline deadline) {
  if (comm_) return {};
  if (end_.sends && !has_handle_) {
    auto content = exchange.await(end_.name, deadline);
    if (!content) return content.take_error();
    std::memcpy(handle_, content->data(), std::min(content->size(), sizeof handle_));
    has_handle_ = true;
  }
  const auto step = end_.sends ? check("connect", net_.connect(device, handle_, &comm_))
                               : check("accept", net_.accept(listening_, &comm_));
  if (!step || !comm_) return step;
  const auto registered =
      check("regMr", net_.register_memory(comm_, buffers_.data(), buffers_.size(), NCCL_PTR_HOST, &memory_));
  registered_ = registered.ok();
  return registered;
}

void NetConnection::begin(int messages) {
  wanted_ += std::uint64_t(messages);
}

void NetConnection::stamp(std::uint64_t message) {
  for (std::size_t at = 0; at + sizeof message <= end_.bytes; at += kStampEvery)
    std::memcpy(buffer(message) + at, &message, sizeof message);
}

// The stamps of every message; all bytes of the first ones, for nothing would show a difference later that it does not
// show there, and comparing all would be measured as well.
void NetConnection::inspect(std::uint64_t message, int size) {
  if (size != int(end_.bytes)) wrong_++;
  for (std::size_t at = 0; at + sizeof message <= end_.bytes; at += kStampEvery)
    wrong_ += std::memcmp(buffer(message) + at, &message, sizeof message) != 0;
  if (message >= slots_.size()) return;
  for (std::size_t at = 0; at < end_.bytes; at++) {
    const bool stamped =
        at % kStampEvery < sizeof message && at / kStampEvery * kStampEvery + sizeof message <= end_.bytes;
    wrong_ += !stamped && buffer(message)[at] != filling(at);
  }
}

Result<void> NetConnection::advance() {
  while (started_ < wanted_ && started_ - done_ < slots_.size()) {
    Slot& slot = slots_[std::size_t(started_ % slots_.size())];
    ncclResult_t code = ncclSuccess;
    if (end_.sends) {
      stamp(started_);
      code = net_.isend(comm_, buffer(started_), end_.bytes, kTag, memory_, &slot.request);
    } else {
      code = net_.irecv(comm_, {buffer(started_)}, {end_.bytes}, {kTag}, {memory_}, &slot.request);
      slot.offered = Clock::now();
    }
    if (auto begun = check(end_.sends ? "isend" : "irecv", code); !begun) return begun;
    if (!slot.request) break;
    started_++;
  }
  while (done_ < started_) {
    Slot& slot = slots_[std::size_t(done_ % slots_.size())];
    int done = 0, size = 0;
    if (auto tested = check("test", net_.test(slot.request, &done, &size)); !tested) return tested;
    if (!done) break;
    slot.request = nullptr;
    if (!end_.sends) {
      message_us_.push_back(std::chrono::duration<double, std::micro>(Clock::now() - slot.offered).count());
      inspect(done_, size);
    }
    done_++;
  }
  return {};
}

std::vector<double> NetConnection::take_message_times() {
  return std::exchange(message_us_, {});
}

}  // namespace weft::rank
