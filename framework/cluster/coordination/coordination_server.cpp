#include <tessera/framework/cluster/coordination/coordination_server.hpp>

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/coordination/failure_report.hpp>
#include <tessera/framework/cluster/coordination/rendezvous.hpp>
#include <tessera/framework/cluster/internal/environment.hpp>
#include <tessera/framework/cluster/internal/rank_text.hpp>

namespace tessera::detail {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

constexpr auto line_interval = 10s;
constexpr auto hello_time = 5s;   ///< deadline for the registration of a new connection
constexpr auto ask_time = 500ms;  ///< deadline for the last calls of ranks when the run ends
constexpr auto close_time = 1s;   ///< deadline for ranks to read the end of the run
/// Maximum number of unregistered connections; the oldest is closed to make room.
constexpr ptrdiff_t max_pending = 128;
/// Maximum size of the reason that a rank gives for ending the run.
constexpr size_t max_reason_bytes = 16384;
/// Maximum number of connections accepted at a time, so that existing ones are served, too.
constexpr int max_accepts = 64;

}  // namespace

CoordinationServer::CoordinationServer(const CoordinationOptions& options)
    : options_(options),
      interval_(heartbeat_interval(options.timeout)),
      present_(static_cast<size_t>(options.size)),
      now_(steady_clock::now()),
      begin_(now_),
      next_heartbeat_(now_),
      next_line_(now_ + 1500ms),
      next_warning_(now_),
      next_accept_(now_) {
  if (options.size > 1) {
    listener_ = listen_on(options.address, options.port);
    const std::string open =
        check_access("coordination", "rank 0", options.address, options.access);
    if (!open.empty()) say(open);
  }
  auto [own_end, hub_end] = connected_pair();
  own_end_ = std::move(own_end);
  connections_.push_back({FrameSocket(std::move(hub_end), max_hello_bytes), {true, ""}});
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

void CoordinationServer::rethrow_failure() const {
  if (has_failed_) std::rethrow_exception(failure_);
}

void CoordinationServer::run() {
  try {
    while (!finished()) {
      wait();
      tick();
      remove_closed();
    }
  } catch (const std::exception& error) {
    // Out of memory, for example. The other ranks notice the broken connections.
    failure_ = std::current_exception();
    has_failed_ = true;
    say(str("[coordination] rank 0 can serve the other ranks. Received: ", error.what(), "."));
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
    entries.push_back(
        {each.socket.descriptor(), static_cast<short>(unsent ? POLLIN | POLLOUT : POLLIN), 0});
  }
  const int ready = ::poll(entries.data(), entries.size(), poll_time(wake_time()));
  const Time before = std::exchange(now_, steady_clock::now());
  if (monitor_ && now_ - before > 4 * interval_) monitor_->discount_pause(now_ - before);
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
  Time time = next_heartbeat_;
  if (phase_ == Phase::waiting) time = std::min(time, begin_ + options_.connect_timeout);
  if (phase_ == Phase::waiting && options_.given_up) time = std::min(time, now_ + patience_step);
  if (phase_ == Phase::asking || phase_ == Phase::over) time = std::min(time, deadline_);
  return time;
}

void CoordinationServer::accept_all() {
  for (int count = 0; count < max_accepts && listener_.valid(); ++count) {
    FileDescriptor accepted = accept_from(listener_);
    if (!accepted.valid() && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!accepted.valid()) {
      // Most likely out of descriptors: retrying at once would fail, too.
      if (errno != EAGAIN) next_accept_ = now_ + 50ms;
      return;
    }
    const auto is_unregistered = [](const Connection& each) {
      return each.rank < 0 && !each.handshake.own() && !each.closed;
    };
    if (std::count_if(connections_.begin(), connections_.end(), is_unregistered) >= max_pending) {
      close(*std::find_if(connections_.begin(), connections_.end(), is_unregistered));
    }
    const std::string address = other_address(accepted.get());
    connections_.push_back({FrameSocket(std::move(accepted), max_hello_bytes), {false, address}});
    connections_.back().deadline = now_ + hello_time;
    serve(connections_.back());
  }
}

void CoordinationServer::serve(Connection& connection) {
  const bool open = connection.socket.receive();
  try {
    while (!connection.closed && !connection.ignored) {
      const std::optional<Frame> frame = connection.socket.next();
      if (!frame) break;
      handle(connection, *frame);
    }
  } catch (const ChangedFrame&) {
    // The frames of this rank cannot be trusted any more; it still reads why the run ends.
    connection.ignored = true;
    answered_.insert(connection.rank);
    end(changed_frame_text(*present_[static_cast<size_t>(connection.rank)]));
    end_if_answered();
  } catch (const BadFrame& error) {
    const int rank = connection.rank;
    if (rank >= 0) end(invalid_frame_text(*present_[static_cast<size_t>(rank)], error.what()));
    close(connection);
  }
  if (connection.ignored) connection.socket.discard();
  if (!open && !connection.closed) close(connection);
}

void CoordinationServer::handle(Connection& connection, const Frame& frame) {
  const int rank = connection.rank;
  if (rank < 0) return greet(connection, frame);
  if (phase_ == Phase::waiting && frame.type != FrameType::heartbeat) {
    throw BadFrame(str("a frame of type ", static_cast<int>(frame.type), " before the start"));
  }
  if (!monitor_) return;
  monitor_->note_alive(rank, now_);
  BodyReader body(frame.body);
  std::optional<PendingGather> complete;
  std::string reason;
  if (frame.type == FrameType::calls && phase_ == Phase::asking) {
    std::vector<CallRecord> calls(body.count(64));
    for (CallRecord& call : calls) call = body.call();
    monitor_->set_calls(rank, std::move(calls));
    answered_.insert(rank);
    return end_if_answered();
  }
  if (frame.type == FrameType::note) return monitor_->set_note(rank, body.text());
  if (phase_ != Phase::running) return;
  switch (frame.type) {
    case FrameType::heartbeat:
      reason = monitor_->on_heartbeat(rank, body.last_call(), now_);
      break;
    case FrameType::gather: {
      const std::string key = body.text();
      reason = monitor_->gather(rank, key, body.text(), now_, complete);
      break;
    }
    case FrameType::check:
      reason = monitor_->check(rank, body.call(), now_, complete);
      break;
    case FrameType::abort:
      reason = body.text().substr(0, max_reason_bytes);
      break;
    case FrameType::goodbye:
      return leave(rank, body.last_call());
    default:
      throw BadFrame(str("a frame of type ", static_cast<int>(frame.type)));
  }
  body.finish();
  answer(complete);
  if (!reason.empty()) end(reason);
}

void CoordinationServer::close(Connection& connection) {
  connection.closed = true;
  connection.socket.close();
  const int rank = connection.rank;
  if (phase_ == Phase::waiting) {
    if (rank < 0 && connection.handshake.own()) end(server_lost_text());
    if (rank >= 0) end(lost_early_text(*present_[static_cast<size_t>(rank)]));
  } else if (rank >= 0 && monitor_ && monitor_->is_present(rank)) {
    const std::string reason = monitor_->mark_lost(rank);
    if (phase_ == Phase::running) end(reason);
    end_if_answered();
  }
}

void CoordinationServer::remove_closed() {
  for (Connection& each : connections_) {
    if (!each.closed && each.rank < 0 && each.deadline <= now_) close(each);
  }
  connections_.remove_if([](const Connection& each) { return each.closed; });
}

void CoordinationServer::tick() {
  if (phase_ == Phase::waiting) tick_waiting();
  if (phase_ == Phase::asking && deadline_ <= now_) {
    for (int rank = 0; rank < options_.size; ++rank) {
      if (monitor_->is_present(rank) && !answered_.contains(rank))
        monitor_->mark_unresponsive(rank);
    }
    end_if_answered();
  }
  if (next_heartbeat_ > now_) return;
  next_heartbeat_ = now_ + interval_;
  broadcast(FrameType::heartbeat);
  if (phase_ != Phase::running) return;
  const std::string reason = monitor_->check_deadlines(now_);
  if (!reason.empty()) end(reason);
}

void CoordinationServer::greet(Connection& connection, const Frame& frame) {
  const HandshakeReply reply = connection.handshake.reply_to(frame, options_, present_);
  // Where processes meet again and again, the next ones may come before these have left.
  if (!reply.warning.empty() && !options_.given_up && next_warning_ <= now_) {
    next_warning_ = now_ + line_interval;
    say(reply.warning);
  }
  connection.socket.send(reply.type, reply.body);
  if (reply.type == FrameType::accepted) admit(connection, reply);
  if (reply.type != FrameType::refused) return;
  connection.ignored = true;
  connection.deadline = now_ + 1s;
  connection.socket.finish_sending();
}

void CoordinationServer::admit(Connection& connection, const HandshakeReply& reply) {
  connection.rank = connection.handshake.peer().rank;
  connection.socket.set_max_body(max_body_bytes);
  if (reply.keys) connection.socket.protect(*reply.keys, options_.access.encrypt);
  present_[static_cast<size_t>(connection.rank)] = connection.handshake.peer();
}

void CoordinationServer::tick_waiting() {
  const std::vector<int> absent = missing();
  if (absent.empty()) return start();
  if (options_.given_up && options_.given_up()) return end(given_up_text(options_));
  if (now_ - begin_ >= options_.connect_timeout) {
    const double seconds = std::chrono::duration<double>(options_.connect_timeout).count();
    const std::string here = address_text(options_.address, options_.port);
    return end(CommError("coordination", str("all ", options_.size, " ranks must join at ", here),
                         str("after ", seconds, " s no sign of ", rank_names(absent)),
                         "start them with this address and port, or look at their output")
                   .what());
  }
  if (now_ < next_line_) return;
  next_line_ = now_ + line_interval;
  say(str("[coordination] waiting for ", rank_names(absent)));
}

void CoordinationServer::start() {
  std::vector<Peer> peers;
  for (const std::optional<Peer>& peer : present_) peers.push_back(*peer);
  // Ranks on rank 0's host may have connected over loopback, which other hosts cannot reach.
  std::string here = options_.address;
  for (const Connection& each : connections_) {
    const std::string address = own_address(each.socket.descriptor());
    if (each.rank > 0 && (each.rank == 1 || is_loopback(here))) here = address;
  }
  for (Peer& peer : peers) {
    if (peer.rank == 0 || is_loopback(peer.address)) peer.address = here;
  }
  BodyWriter body;
  body.number(peers.size());
  for (const Peer& peer : peers) body.peer(peer);
  monitor_.emplace(std::move(peers), options_.timeout, now_);
  phase_ = Phase::running;
  broadcast(FrameType::started, body.bytes());
}

void CoordinationServer::leave(int rank, const std::optional<CallRecord>& last) {
  const std::string reason = monitor_->mark_left(rank, last, now_);
  if (!reason.empty()) end(reason);
  bool all = true;
  for (int each = 0; each < options_.size; ++each) all = all && !monitor_->is_present(each);
  if (all && phase_ == Phase::running) return finish(FrameType::farewell, "");
  // Rank 0 stays until all have left.
  for (Connection& each : connections_) {
    if (each.rank == rank && rank != 0) each.socket.send(FrameType::farewell);
  }
}

void CoordinationServer::answer(const std::optional<PendingGather>& complete) {
  if (!complete) return;
  if (complete->is_check) {
    return broadcast(FrameType::checked, BodyWriter().text(complete->key).bytes());
  }
  for (size_t rank = 0; rank < complete->texts.size(); ++rank) {
    BodyWriter body;
    body.text(complete->key).number(rank).text(*complete->texts[rank]);
    broadcast(FrameType::gathered, body.bytes());
  }
}

void CoordinationServer::end(const std::string& reason) {
  if (phase_ == Phase::asking || phase_ == Phase::over) return;
  listener_.reset();
  reason_ = reason;
  if (!monitor_) return finish(FrameType::end, reason);
  phase_ = Phase::asking;
  deadline_ = now_ + ask_time;
  broadcast(FrameType::ask);
  end_if_answered();
}

void CoordinationServer::end_if_answered() {
  if (phase_ != Phase::asking) return;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (monitor_->is_present(rank) && !answered_.contains(rank)) return;
  }
  finish(FrameType::end, end_text(options_.job, reason_, monitor_->reports()));
}

void CoordinationServer::finish(FrameType type, const std::string& body) {
  listener_.reset();
  phase_ = Phase::over;
  deadline_ = now_ + close_time;
  broadcast(type, body);
}

bool CoordinationServer::finished() const {
  if (phase_ != Phase::over) return false;
  const auto is_member = [](const Connection& each) { return each.rank >= 0 && !each.closed; };
  return deadline_ <= now_ || std::none_of(connections_.begin(), connections_.end(), is_member);
}

void CoordinationServer::broadcast(FrameType type, std::string_view body) {
  // Rank 0's own connection, the first, is served last: its process may exit once it has read this.
  for (auto each = connections_.rbegin(); each != connections_.rend(); ++each) {
    if (each->rank >= 0 && !each->closed) each->socket.send(type, body);
  }
}

std::vector<int> CoordinationServer::missing() const {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < present_.size(); ++rank) {
    if (!present_[rank]) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

void CoordinationServer::say(const std::string& line) const {
  if (options_.say) return options_.say(line);
  std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace tessera::detail
