#include "net_plugin/setup/growth.h"

#include <algorithm>

#include "common/text/format.h"

namespace weft::setup {

Result<void> Growth::create() {
  auto batch = Batch::create(*setup_.link, setup_.role, setup_.options, setup_.ports, setup_.first, setup_.peer.size(),
                             setup_.receive_queues);
  if (!batch) return batch.take_error();
  batch_.emplace(batch.take());
  return {};
}

Growth::Reply Growth::begin() {
  if (auto made = create(); !made) return made.take_error();
  return encode_offers(MessageType::grow, batch_->offers());
}

Growth::Reply Growth::handle(const Frame& frame) {
  switch (frame.type) {
    case MessageType::grow:
    case MessageType::grown:
      return answer(frame);
    case MessageType::grow_ready:
      return start_proof();
    case MessageType::grow_proven:
      peer_proven_ = true;
      return std::vector<std::byte>();
    default:
      return Error{text::format("message {} does not belong here", int(frame.type)), {}, 0, {}};
  }
}

Growth::Reply Growth::answer(const Frame& frame) {
  const bool right = (frame.type == MessageType::grow) == (setup_.role == Role::receiver);
  if (!right || proving_) return Error{"a message that only the other side may send", {}, 0, {}};
  auto offers = decode_offers(frame, setup_.peer.size(), setup_.link->devices.size());
  if (!offers) return offers.take_error();
  peer_offers_ = offers.take();
  if (setup_.role == Role::receiver) {
    if (batch_) return Error{"the peer asks twice for the same paths", {}, 0, {}};
    if (peer_offers_.paths.size() > setup_.ports.size())
      return Error{text::format("{} more paths are too many", peer_offers_.paths.size()), {}, 0, {}};
    setup_.ports.resize(peer_offers_.paths.size());
    if (auto made = create(); !made) return made.take_error();
  }
  if (peer_offers_.paths.size() != batch_->size()) return Error{"not as many paths as were offered", {}, 0, {}};
  batch_->take_extensions(peer_offers_);
  if (auto connected = batch_->connect(setup_.options, setup_.here, setup_.peer, peer_offers_); !connected)
    return connected.take_error();
  if (setup_.role == Role::receiver) return encode_offers(MessageType::grown, batch_->offers());
  if (auto started = start_proof(); !started) return started;
  return encode_text(MessageType::grow_ready, "");
}

Growth::Reply Growth::start_proof() {
  if (!batch_ || proving_) return Error{"a message out of turn", {}, 0, {}};
  proving_ = true;
  if (auto started = batch_->start_proof(peer_offers_); !started) return started.take_error();
  return std::vector<std::byte>();
}

Growth::Reply Growth::continue_proof() {
  auto done = batch_->continue_proof();
  if (!done) return done.take_error();
  if (!*done) return std::vector<std::byte>();
  proven_ = true;
  return encode_text(MessageType::grow_proven, "");
}

std::unique_ptr<transfer::PathBatch> Growth::take_finished() {
  if (!proven_ || !peer_proven_ || !batch_) return nullptr;
  auto paths = batch_->take();
  batch_.reset();
  return paths;
}

}  // namespace weft::setup
