#include <tessera/framework/cluster/membership/register_server.hpp>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

using Kind = RegisterMessage::Kind;

constexpr auto join_time = 5s;     ///< deadline of a new connection for proof and join
constexpr auto dismiss_time = 2s;  ///< how long a refused process may take to read why
/// How long a process that was expelled may sleep on and still be told.
constexpr auto expelled_time = 10min;
constexpr auto warning_interval = 10s;
/// Shortest time without serve() that counts as a pause of this process.
constexpr auto pause_time = 2s;
/// Maximum number of connections that are no members; the oldest is closed to make room.
constexpr ptrdiff_t max_strangers = 128;
/// Maximum number of connections accepted at a time, so that existing ones are served, too.
constexpr int max_accepted = 64;

}  // namespace

RegisterServer::RegisterServer(const RegisterOptions& options)
    : options_(options),
      register_(options.rules, steady_clock::now()),
      now_(steady_clock::now()),
      served_(now_),
      next_accept_(now_),
      next_warning_(now_) {
  check_rules("--elastic", options.rules);
  check_access("elastic", "the register of members", options.address, options.access);
  std::string error;
  listener_ = listen_at(options.address, port_, error);
  if (!listener_.valid()) {
    throw CommError("elastic", str("the register of members can listen at ", options.address),
                    error, "name an address of this host");
  }
  handshake_ = register_handshake(options.job, options.access, options.address, port_);
}

void RegisterServer::add_to(std::vector<pollfd>& entries) const {
  if (next_accept_ <= steady_clock::now()) entries.push_back({listener_.get(), POLLIN, 0});
  for (const Connection& each : connections_) {
    const bool unsent = each.socket.has_unsent();
    entries.push_back(
        {each.socket.descriptor(), static_cast<short>(unsent ? POLLIN | POLLOUT : POLLIN), 0});
  }
}

steady_clock::time_point RegisterServer::wake_time() const {
  Time time = std::max(register_.wake_time(), next_accept_);
  for (const Connection& each : connections_) {
    if (each.id.empty() || each.ignored) time = std::min(time, each.deadline);
  }
  return time;
}

void RegisterServer::serve() {
  now_ = steady_clock::now();
  // Members may have been silent only because nobody listened.
  if (now_ - served_ > pause_time) register_.discount_pause(now_ - served_);
  if (next_accept_ <= now_) accept_all();
  for (Connection& each : connections_) {
    if (each.socket.has_unsent()) each.socket.flush();
    receive_from(each, "its connection closed: killed or crashed");
  }
  register_.tick(now_);
  tell_removed();
  tell_membership();
  close_overdue();
  served_ = steady_clock::now();
}

void RegisterServer::accept_all() {
  for (int count = 0; count < max_accepted; ++count) {
    FileDescriptor accepted = accept_from(listener_);
    if (!accepted.valid() && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!accepted.valid()) {
      // Most likely out of descriptors: retrying at once would fail, too.
      if (errno != EAGAIN) next_accept_ = now_ + 50ms;
      return;
    }
    const auto is_stranger = [](const Connection& each) {
      return (each.id.empty() || each.ignored) && !each.closed;
    };
    if (std::count_if(connections_.begin(), connections_.end(), is_stranger) >= max_strangers) {
      close(*std::find_if(connections_.begin(), connections_.end(), is_stranger), "");
    }
    const std::string address = other_address(accepted.get());
    connections_.push_back({FrameSocket(std::move(accepted), max_hello_bytes), {false, address}});
    connections_.back().deadline = now_ + join_time;
  }
}

void RegisterServer::receive_from(Connection& connection, const std::string& gone) {
  if (connection.closed) return;
  const bool open = connection.socket.receive();
  try {
    while (!connection.closed && !connection.ignored) {
      const std::optional<Frame> frame = connection.socket.next();
      if (!frame) break;
      handle(connection, *frame);
    }
  } catch (const BadFrame& error) {
    close(connection, str("it sent ", one_line(error.what(), 200)));
  }
  if (connection.ignored) connection.socket.discard();
  if (!open && !connection.closed) close(connection, gone);
}

void RegisterServer::handle(Connection& connection, const Frame& frame) {
  if (!connection.admitted) return greet(connection, frame);
  if (frame.type != FrameType::members) {
    throw BadFrame(str("a frame of type ", static_cast<int>(frame.type)));
  }
  const RegisterMessage message = decode_message(frame.body);
  const std::string& id = connection.id;
  if (message.kind == Kind::join && id.empty()) return admit(connection, message.member);
  if (id.empty()) throw BadFrame("a message before it joined");
  register_.hear(id, now_);
  switch (message.kind) {
    case Kind::alive:
      return;
    case Kind::leave:
      return register_.leave(id, now_);
    case Kind::lost:
      register_.report_lost(id, message.generation, message.id, message.reason, now_);
      return;
    case Kind::finish:
      register_.finish(id, message.generation);
      return;
    default:
      throw BadFrame("a message that only the register sends, or a second join");
  }
}

void RegisterServer::greet(Connection& connection, const Frame& frame) {
  constexpr std::optional<Peer> nobody[2] = {};
  const HandshakeReply reply = connection.handshake.reply_to(frame, handshake_, nobody);
  if (!reply.warning.empty() && next_warning_ <= now_ && options_.say) {
    next_warning_ = now_ + warning_interval;
    options_.say(reply.warning);
  }
  connection.socket.send(reply.type, reply.body);
  if (reply.type == FrameType::refused) {
    connection.ignored = true;
    connection.deadline = now_ + dismiss_time;
    connection.socket.finish_sending();
  } else if (reply.type == FrameType::accepted) {
    connection.admitted = true;
    connection.socket.set_max_body(max_member_bytes);
    if (reply.keys) connection.socket.protect(*reply.keys, options_.access.encrypt);
  }
}

void RegisterServer::admit(Connection& connection, const Member& member) {
  const std::string refused = register_.join(member, now_);
  if (!refused.empty()) return dismiss(connection, Kind::refused, refused, dismiss_time);
  connection.id = member.id;
  connection.pid = static_cast<pid_t>(member.pid);
  // Also before the first generation: the newcomer learns that it is known.
  send(connection, {.kind = Kind::membership,
                    .generation = membership().generation,
                    .membership = membership()});
  connection.told = membership().revision;
}

void RegisterServer::send(Connection& connection, const RegisterMessage& message) {
  connection.socket.send(FrameType::members, encode_message(message));
}

void RegisterServer::dismiss(Connection& connection, Kind kind, const std::string& reason,
                             std::chrono::milliseconds time) {
  send(connection, {.kind = kind, .generation = membership().generation, .reason = reason});
  connection.ignored = true;
  connection.deadline = now_ + time;
  connection.socket.finish_sending();
}

void RegisterServer::close(Connection& connection, const std::string& reason) {
  connection.closed = true;
  connection.socket.close();
  if (!connection.ignored && !connection.id.empty()) register_.lose(connection.id, reason, now_);
}

void RegisterServer::tell_removed() {
  for (const Departure& removed : register_.take_removed()) {
    for (Connection& each : connections_) {
      if (each.id != removed.member.id || each.closed || each.ignored) continue;
      dismiss(each, Kind::expelled, removed.reason, expelled_time);
    }
  }
}

void RegisterServer::tell_membership() {
  const Membership& newest = membership();
  for (Connection& each : connections_) {
    if (each.id.empty() || each.ignored || each.closed || each.told == newest.revision) continue;
    send(each, {.kind = Kind::membership, .generation = newest.generation, .membership = newest});
    each.told = newest.revision;
  }
}

void RegisterServer::close_overdue() {
  for (Connection& each : connections_) {
    if ((each.id.empty() || each.ignored) && !each.closed && each.deadline <= now_) close(each, "");
  }
  connections_.remove_if([](const Connection& each) { return each.closed; });
}

void RegisterServer::lose_process(pid_t pid, const std::string& reason) {
  now_ = steady_clock::now();
  for (Connection& each : connections_) {
    if (each.pid == pid && !each.id.empty() && !each.closed) {
      // What it said before it ended counts, such as that it leaves or that the run is complete.
      receive_from(each, reason);
      if (!each.closed) close(each, reason);
    }
  }
}

void RegisterServer::fail(const std::string& reason) { register_.fail(reason); }

}  // namespace tessera::detail
