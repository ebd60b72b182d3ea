// Session: when a connection gets more paths, and the messages about it.
#include <algorithm>

#include "common/text/format.h"
#include "net_plugin/setup/session.h"

namespace weft::setup {
namespace {

// How often the control thread looks whether a connection has sent enough: often while bytes move.
constexpr std::chrono::milliseconds kShortestLook{10}, kLongestLook{200};

// Thousands of connections that have nothing to send are looked at together.
TimePoint next_look(TimePoint now, std::chrono::milliseconds interval) {
  const TimePoint at = now + interval;
  return interval < kLongestLook ? at : at - at.time_since_epoch() % (kLongestLook / 2);
}

}  // namespace

GrowthSetup Session::growth_setup(std::size_t paths) const {
  GrowthSetup setup;
  setup.role = role_;
  setup.link = handed_;
  setup.options = setup_.options;
  setup.here = here_;
  setup.peer = peer_hello_->devices;
  setup.receive_queues = receive_queues_;
  setup.first = paths_;
  setup.ports.assign(ports_.begin() + std::ptrdiff_t(paths_), ports_.begin() + std::ptrdiff_t(paths_ + paths));
  return setup;
}

// New queue pairs would take the address that the GID's slot has now, and the peer knows the one from before (F12).
// Empty where nothing has changed.
std::string Session::moved() const {
  for (std::size_t i = 0; i < here_.size(); i++) {
    const devices::GidEntry &was = here_[i].gid, now = setup_.devices[i]->state().gid;
    if (was.index != now.index || was.bytes != now.bytes)
      return text::format("the address of {} was {} when the connection began and has changed since",
                          setup_.devices[i]->name(), devices::address_text(was));
  }
  return {};
}

void Session::look_at_need(TimePoint now) {
  if (role_ != Role::sender || grown_ || growth_ || !handed_ || now < next_look_) return;
  const std::uint64_t sent = peer_->sent();
  look_interval_ = sent != sent_before_ ? kShortestLook : std::min(2 * look_interval_, kLongestLook);
  sent_before_ = sent;
  next_look_ = next_look(now, look_interval_);
  if (sent < setup_.options.grow_after) return;
  if (const std::string why = moved(); !why.empty()) return stop_growth(why, false);
  const auto room = (ports_.size() - paths_) / pairs();
  const int sets = share_->grow();
  // The budget is taken by others for now; what a connection has never shrinks.
  if (sets == 0) {
    next_look_ = next_look(now, kLongestLook);
    return;
  }
  growth_.emplace(growth_setup(std::min(room, std::size_t(sets)) * pairs()));
  deadline_ = now + setup_.options.connect_timeout;
  advance_growth(growth_->begin());
}

bool Session::handle_growth(const Frame& frame) {
  if (state_ != State::watching || !handed_) return true;  // this side is closing
  if (frame.type == MessageType::grow_stop) {
    stop_growth(decode_text(frame), false);
    return true;
  }
  if (frame.type == MessageType::grow && role_ == Role::receiver && !growth_) {
    if (const std::string why = moved(); !why.empty()) {
      stop_growth(why, true);
      return true;
    }
    growth_.emplace(growth_setup(ports_.size() - paths_));
    deadline_ = std::chrono::steady_clock::now() + setup_.options.connect_timeout;
  }
  // A late answer to what was given up.
  if (!growth_) return true;
  return advance_growth(growth_->handle(frame));
}

// Sends what the growth wants to say, and hands the paths over when they are proven on both sides.
bool Session::advance_growth(Growth::Reply reply) {
  if (!reply) {
    stop_growth(reply.error().text(), true);
    return true;
  }
  if (!reply->empty() && !send(*reply)) return false;
  auto paths = growth_->take_finished();
  if (!paths) return true;
  paths_ += paths->paths.size();
  growth_.reset();
  grown_ = true;
  peer_->offer(std::move(paths));
  return true;
}

void Session::stop_growth(const std::string& why, bool tell) {
  if (setup_.remark && !grown_) {
    setup_.remark(text::format("{} <-> {}: goes on with {} paths instead of more: {}", setup_.device_name, peer_name(),
                               paths_, why));
  }
  growth_.reset();
  grown_ = true;
  if (tell) send(encode_text(MessageType::grow_stop, why));
}

}  // namespace weft::setup
