#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/owner.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/coordination/coordination_client.hpp>
#include <tessera/framework/cluster/coordination/failure_report.hpp>
#include <tessera/framework/cluster/coordination/rendezvous.hpp>

namespace tessera::detail {

using std::chrono::steady_clock;

void CoordinationClient::run() {
  try {
    serve();
  } catch (const std::exception& error) {
    // Out of memory, for example. The other ranks notice the broken connection.
    fail_here(error.what());
  } catch (...) {
    fail_here("an exception of unknown type");
  }
}

void CoordinationClient::fail_here(const char* what) noexcept {
  try {
    end(end_text(options_.job,
                 str("[coordination] rank ", options_.rank,
                     " can serve its connection. Received: ", what, "."),
                 {}));
    call_on_end();
  } catch (...) {
    close(Phase::ended);
    const std::lock_guard lock(mutex_);
    // Short enough to need no memory.
    if (reason_.empty()) reason_ = "out of memory";
  }
}

void CoordinationClient::serve() {
  const auto interval = heartbeat_interval(options_.timeout);
  Time next_heartbeat = steady_clock::now();
  Time woken = next_heartbeat;
  // Frames that arrived together with the reply to the hello.
  handle_all();
  while (true) {
    bool joining = false;
    std::optional<std::string> given_up;
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
      joining = phase_ == Phase::joining;
      given_up = std::exchange(given_up_, std::nullopt);
    }
    if (joining && options_.given_up && options_.given_up()) given_up = given_up_text(options_);
    if (given_up) end(*given_up);
    wait(joining && options_.given_up ? std::min(next_heartbeat, woken + patience_step)
                                      : next_heartbeat);
    const Time now = steady_clock::now();
    const Time before = std::exchange(woken, now);
    // This process itself did not run for a while.
    if (now - before > 4 * interval) last_received_ += now - before;
    if (socket_.valid() && now - last_received_ > options_.timeout) {
      end_here(unresponsive_text(hub_peer(),
                                 std::chrono::duration<double>(now - last_received_).count()));
    }
    send_goodbye();
    if (next_heartbeat <= now) {
      next_heartbeat = now + interval;
      send_heartbeat();
    }
    call_on_end();
  }
}

void CoordinationClient::wait(Time until) {
  pollfd entries[2] = {{waker_.descriptor(), POLLIN, 0}, {socket_.descriptor(), POLLIN, 0}};
  {
    const std::lock_guard lock(mutex_);
    if (socket_.has_unsent()) entries[1].events |= POLLOUT;
  }
  // poll() skips the descriptor of a closed connection, as it is negative.
  if (::poll(entries, 2, poll_time(until)) <= 0) return;
  if (entries[0].revents != 0) waker_.clear();
  if ((entries[1].revents & POLLOUT) != 0) {
    const std::lock_guard lock(mutex_);
    socket_.flush();
  }
  if ((entries[1].revents & ~POLLOUT) == 0) return;
  const bool open = socket_.receive();
  last_received_ = steady_clock::now();
  handle_all();
  if (open || !socket_.valid()) return;
  const Peer hub = hub_peer();
  end_here(peers_.empty() ? lost_early_text(hub) : lost_text(hub, ""));
}

void CoordinationClient::handle_all() {
  try {
    while (socket_.valid()) {
      const std::optional<Frame> frame = socket_.next();
      if (!frame) return;
      handle(*frame);
    }
  } catch (const ChangedFrame&) {
    const std::string reason = changed_frame_text(hub_peer());
    // Rank 0 still receives the frames of this rank unchanged.
    abort(reason);
    end_here(reason);
  } catch (const BadFrame& error) {
    end_here(invalid_frame_text(hub_peer(), error.what()));
  }
}

void CoordinationClient::handle(const Frame& frame) {
  switch (frame.type) {
    case FrameType::heartbeat:
      return;
    case FrameType::started:
      return welcome(frame);
    case FrameType::gathered:
    case FrameType::checked:
      return handle_text(frame);
    case FrameType::ask: {
      const std::vector<CallRecord> calls = last_calls();
      BodyWriter body;
      body.number(calls.size());
      for (const CallRecord& call : calls) body.call(call);
      return send(FrameType::calls, body.bytes());
    }
    case FrameType::end:
      return end(frame.body);
    case FrameType::farewell:
      return close(Phase::left);
    default:
      throw BadFrame(str("a frame of type ", static_cast<int>(frame.type)));
  }
}

void CoordinationClient::handle_text(const Frame& frame) {
  const bool is_check = frame.type == FrameType::checked;
  BodyReader body(frame.body);
  const std::string key = body.text();
  const size_t rank = is_check ? 0 : body.number();
  const std::lock_guard lock(mutex_);
  const auto it = waiters_.find(key);
  if (it == waiters_.end() || rank >= peers_.size()) {
    throw BadFrame(str("an unexpected reply for ", in_quotes(key)));
  }
  Waiter& waiter = *it->second.front();
  if (!is_check) waiter.texts[rank] = body.text();
  ++waiter.count;
  if (!is_check && waiter.count < waiter.texts.size()) return;
  waiter.done = true;
  it->second.pop_front();
  if (it->second.empty()) waiters_.erase(it);
  changed_.notify_all();
}

void CoordinationClient::welcome(const Frame& frame) {
  BodyReader body(frame.body);
  std::vector<Peer> peers(body.count(32));
  for (Peer& peer : peers) peer = body.peer();
  body.finish();
  if (peers.size() != static_cast<size_t>(options_.size)) {
    throw BadFrame(str("a list of ", peers.size(), " ranks"));
  }
  // Rank 0 does not know by which of its addresses this rank reaches it.
  if (!hub_) peers[0].address = other_address(socket_.descriptor());
  const std::lock_guard lock(mutex_);
  peers_ = std::move(peers);
  phase_ = Phase::running;
  changed_.notify_all();
}

std::vector<CallRecord> CoordinationClient::last_calls() {
  const std::lock_guard lock(callbacks_mutex_);
  try {
    return calls_ ? calls_() : std::vector<CallRecord>();
  } catch (const std::exception&) {
    // A report without them is better than none.
    return {};
  }
}

void CoordinationClient::send_heartbeat() {
  // After the goodbye rank 0 may close at any time; a heartbeat that it has not read by then would
  // look like a broken connection.
  if (!socket_.valid() || goodbye_sent_) return;
  send(FrameType::heartbeat, BodyWriter().last_call(last_calls()).bytes());
}

void CoordinationClient::send_goodbye() {
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::leaving || goodbye_sent_) return;
  }
  goodbye_sent_ = true;
  send(FrameType::goodbye, BodyWriter().last_call(last_calls()).bytes());
}

void CoordinationClient::end_here(const std::string& reason) {
  end(end_text(options_.job, reason, {{own_peer(), "", "", last_calls()}}));
}

void CoordinationClient::end(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  reason_ = reason;
  socket_.close();
  phase_ = Phase::ended;
  changed_.notify_all();
}

void CoordinationClient::close(Phase phase) {
  const std::lock_guard lock(mutex_);
  socket_.close();
  phase_ = phase;
  changed_.notify_all();
}

void CoordinationClient::call_on_end() {
  const std::lock_guard lock(callbacks_mutex_);
  if (!on_end_) return;
  std::string reason;
  {
    const std::lock_guard state(mutex_);
    if (phase_ != Phase::ended) return;
    reason = reason_;
  }
  try {
    std::exchange(on_end_, nullptr)(reason);
  } catch (...) {
    // reason() still returns the reason; this thread has no one to report the exception to.
  }
}

Peer CoordinationClient::own_peer() const {
  if (!peers_.empty()) return peers_[static_cast<size_t>(options_.rank)];
  return Peer{options_.rank, ::getpid(), host_name(), ""};
}

Peer CoordinationClient::hub_peer() const {
  if (!peers_.empty()) return peers_[0];
  return Peer{0, 0, options_.address, options_.address};
}

}  // namespace tessera::detail
