#include <tessera/framework/cluster/coordination/coordination_server.hpp>

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <exception>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/strings.hpp>

namespace tessera {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

/// What a connection may take to say who it is.
constexpr auto hello_time = 5s;
/// Connections that have not said who they are; the oldest makes room.
constexpr ptrdiff_t max_strangers = 128;
/// Of the reason that a rank gives for the end of the run.
constexpr size_t max_reason_bytes = 16384;
/// Accepted at a time, so that those that are there are served too.
constexpr int max_accepts = 64;

}  // namespace

CoordinationServer::CoordinationServer(const CoordinationOptions& options)
    : options_(options),
      interval_(beat_interval(options.timeout)),
      present_(static_cast<size_t>(options.size)),
      now_(steady_clock::now()),
      begin_(now_),
      next_beat_(now_),
      next_line_(now_ + 1500ms),
      next_accept_(now_) {
  if (options.size > 1) listener_ = listen_on(options.address, options.port);
  auto [own_end, hub_end] = connected_pair();
  own_end_ = std::move(own_end);
  connections_.push_back({FrameSocket(std::move(hub_end), max_hello_bytes), true});
  connections_.back().deadline = Time::max();
  thread_ = std::thread([this] { run(); });
}

CoordinationServer::~CoordinationServer() {
  own_end_.reset();
  wait_for_end();
}

void CoordinationServer::wait_for_end() {
  const std::lock_guard lock(end_mutex_);
  if (thread_.joinable()) thread_.join();
}

void CoordinationServer::run() {
  try {
    while (!finished()) {
      wait();
      tick();
      remove_closed();
    }
  } catch (const std::exception& error) {
    // Out of memory, say. The others see that the connection is gone.
    say(str("[control] rank 0 can serve the other ranks. Received: ", error.what(), "."));
  }
  connections_.clear();
  listener_.reset();
}

void CoordinationServer::wait() {
  std::vector<pollfd> entries;
  const bool accepts = listener_.valid() && next_accept_ <= now_;
  if (accepts) entries.push_back({listener_.get(), POLLIN, 0});
  for (const Connection& each : connections_) {
    const bool unsent = each.socket.has_unsent();
    entries.push_back({each.socket.descriptor(),
                       static_cast<short>(unsent ? POLLIN | POLLOUT : POLLIN), 0});
  }
  const int ready = ::poll(entries.data(), entries.size(), poll_time(wake_time()));
  const Time before = std::exchange(now_, steady_clock::now());
  if (judge_ && now_ - before > 4 * interval_) judge_->discount_pause(now_ - before);
  if (ready <= 0) return;
  size_t at = accepts ? 1 : 0;
  for (Connection& each : connections_) {
    const short events = entries[at++].revents;
    if ((events & POLLOUT) != 0) each.socket.flush();
    if ((events & ~POLLOUT) != 0) serve(each);
  }
  if (accepts && entries[0].revents != 0) accept_all();
}

CoordinationServer::Time CoordinationServer::wake_time() const {
  Time time = next_beat_;
  if (phase_ == Phase::waiting) time = std::min(time, begin_ + options_.connect_timeout);
  if (phase_ == Phase::asking || phase_ == Phase::over) time = std::min(time, deadline_);
  return time;
}

void CoordinationServer::accept_all() {
  for (int count = 0; count < max_accepts && listener_.valid(); ++count) {
    FileDescriptor accepted = accept_from(listener_);
    if (!accepted.valid() && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!accepted.valid()) {
      // Most likely out of descriptors: the next try would fail at once, too.
      if (errno != EAGAIN) next_accept_ = now_ + 50ms;
      return;
    }
    const auto is_stranger = [](const Connection& each) {
      return each.rank < 0 && !each.own && !each.gone;
    };
    if (std::count_if(connections_.begin(), connections_.end(), is_stranger) >= max_strangers) {
      close(*std::find_if(connections_.begin(), connections_.end(), is_stranger));
    }
    connections_.push_back({FrameSocket(std::move(accepted), max_hello_bytes)});
    connections_.back().deadline = now_ + hello_time;
    serve(connections_.back());
  }
}

void CoordinationServer::serve(Connection& connection) {
  const bool open = connection.socket.receive();
  try {
    while (!connection.gone && !connection.refused) {
      const std::optional<Frame> frame = connection.socket.next();
      if (!frame) break;
      handle(connection, *frame);
    }
  } catch (const BadFrame& error) {
    const int rank = connection.rank;
    if (rank >= 0) end(garbled_text(*present_[static_cast<size_t>(rank)], error.what()));
    close(connection);
  }
  if (connection.refused) connection.socket.discard();
  if (!open && !connection.gone) close(connection);
}

void CoordinationServer::handle(Connection& connection, const Frame& frame) {
  const int rank = connection.rank;
  if (rank < 0) return greet(connection, frame);
  if (phase_ == Phase::waiting && frame.type != FrameType::beat) {
    throw BadFrame(str("a frame of type ", static_cast<int>(frame.type), " before the start"));
  }
  if (!judge_) return;
  judge_->heard(rank, now_);
  BodyReader body(frame.body);
  std::optional<Round> complete;
  std::string reason;
  if (frame.type == FrameType::calls && phase_ == Phase::asking) {
    std::vector<CallRecord> calls(body.count(40));
    for (CallRecord& call : calls) call = body.call();
    judge_->set_calls(rank, std::move(calls));
    answered_.insert(rank);
    return end_if_answered();
  }
  if (frame.type == FrameType::note) return judge_->note(rank, body.text());
  if (phase_ != Phase::running) return;
  switch (frame.type) {
    case FrameType::beat: reason = judge_->beat(rank, body.last_call(), now_); break;
    case FrameType::gather: {
      const std::string key = body.text();
      reason = judge_->gather(rank, key, body.text(), now_, complete);
      break;
    }
    case FrameType::check: reason = judge_->check(rank, body.call(), now_, complete); break;
    case FrameType::abort: reason = body.text().substr(0, max_reason_bytes); break;
    case FrameType::goodbye: return leave(rank, body.last_call());
    default: throw BadFrame(str("a frame of type ", static_cast<int>(frame.type)));
  }
  body.finish();
  answer(complete);
  if (!reason.empty()) end(reason);
}

void CoordinationServer::close(Connection& connection) {
  connection.gone = true;
  connection.socket.close();
  const int rank = connection.rank;
  if (rank < 0) return;
  if (phase_ == Phase::waiting) {
    end(lost_early_text(*present_[static_cast<size_t>(rank)]));
  } else if (judge_ && judge_->is_there(rank)) {
    const std::string reason = judge_->lost(rank);
    if (phase_ == Phase::running) end(reason);
    end_if_answered();
  }
}

void CoordinationServer::remove_closed() {
  for (Connection& each : connections_) {
    if (!each.gone && (each.rank < 0 || each.refused) && each.deadline <= now_) close(each);
  }
  connections_.remove_if([](const Connection& each) { return each.gone; });
}

void CoordinationServer::tick() {
  if (phase_ == Phase::waiting) tick_waiting();
  if (phase_ == Phase::asking && deadline_ <= now_) {
    for (int rank = 0; rank < options_.size; ++rank) {
      if (judge_->is_there(rank) && !answered_.contains(rank)) judge_->silent(rank);
    }
    end_if_answered();
  }
  if (next_beat_ > now_) return;
  next_beat_ = now_ + interval_;
  broadcast(FrameType::beat);
  if (phase_ != Phase::running) return;
  const std::string reason = judge_->judge(now_);
  if (!reason.empty()) end(reason);
}

}  // namespace tessera
