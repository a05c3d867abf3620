#include <tessera/framework/cluster/membership/register_client.hpp>

#include <poll.h>
#include <unistd.h>

#include <exception>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/owner.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/coordination/rendezvous.hpp>
#include <tessera/framework/cluster/internal/environment.hpp>
#include <tessera/framework/cluster/internal/free_port.hpp>

namespace tessera::detail {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

using MessageKind = RegisterMessage::Kind;

constexpr std::chrono::milliseconds alive_interval = 250ms;
/// How long finish() waits for the register's answer.
constexpr auto finish_time = 10s;

constexpr const char* launcher_gone =
    "[elastic] the register of members stays until the end of the run. Received: its connection "
    "closed. To fix: look at the output of the launcher.";

}  // namespace

RegisterClient::RegisterClient(const MembershipOptions& options)
    : options_(options), socket_(connect()) {
  send({.kind = MessageKind::join, .member = self_});
  thread_ = std::thread([this] { run(); });
}

RegisterClient::~RegisterClient() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  waker_.wake();
  thread_.join();
}

FrameSocket RegisterClient::connect() {
  const HostPort where = read_host_port("TESSERA_MEMBERS", options_.where);
  CoordinationOptions handshake =
      register_handshake(options_.job, options_.access, where.host, where.port);
  handshake.connect_timeout = options_.connect_timeout;
  check_access("elastic", "the register of members", where.host, options_.access);
  try {
    FrameSocket socket = connect_to_server(handshake);
    socket.set_max_body(max_membership_bytes);
    self_ = {new_member_id(), host_name(), ::getpid(), options_.address, free_port()};
    if (self_.address.empty()) self_.address = own_address(socket.descriptor());
    return socket;
  } catch (const CommError& error) {
    throw CommError(
        "elastic", str("the register of members answers at ", options_.where, " (TESSERA_MEMBERS)"),
        error.what(), "start the program by launch --elastic, which holds it");
  }
}

void RegisterClient::run() {
  try {
    serve();
  } catch (const std::exception& error) {
    // Out of memory, for example.
    news_.expel(str("its connection with the register failed: ", one_line(error.what(), 500)));
  }
  const std::lock_guard lock(mutex_);
  socket_.close();
}

void RegisterClient::serve() {
  auto next_alive = steady_clock::now();
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (stop_ || !socket_.valid()) return;
    }
    if (next_alive <= steady_clock::now()) {
      next_alive = steady_clock::now() + alive_interval;
      send({.kind = MessageKind::alive, .generation = news_.newest().generation});
    }
    wait();
  }
}

void RegisterClient::wait() {
  pollfd entries[2] = {{waker_.descriptor(), POLLIN, 0}, {socket_.descriptor(), POLLIN, 0}};
  {
    const std::lock_guard lock(mutex_);
    if (socket_.has_unsent()) entries[1].events |= POLLOUT;
  }
  if (::poll(entries, 2, static_cast<int>(alive_interval.count())) <= 0) return;
  if (entries[0].revents != 0) waker_.clear();
  if ((entries[1].revents & POLLOUT) != 0) {
    const std::lock_guard lock(mutex_);
    socket_.flush();
  }
  if ((entries[1].revents & ~POLLOUT) == 0) return;
  const bool open = socket_.receive();
  handle_all();
  if (open || !socket_.valid()) return;
  // Nothing happens if the register has said before why.
  news_.expel(launcher_gone);
  const std::lock_guard lock(mutex_);
  socket_.close();
}

void RegisterClient::handle_all() {
  try {
    while (socket_.valid()) {
      const std::optional<Frame> frame = socket_.next();
      if (!frame) return;
      if (frame->type != FrameType::members) throw BadFrame("a frame that no register sends");
      handle(decode_message(frame->body));
    }
  } catch (const BadFrame& error) {
    news_.expel(str("the register sent ", one_line(error.what(), 500)));
    const std::lock_guard lock(mutex_);
    socket_.close();
  }
}

void RegisterClient::handle(const RegisterMessage& message) {
  switch (message.kind) {
    case MessageKind::membership:
      if (message.generation != message.membership.generation) {
        throw BadFrame("a membership of another generation than its message");
      }
      news_.update(message.membership);
      return;
    case MessageKind::refused:
    case MessageKind::expelled: {
      news_.expel(message.reason);
      const std::lock_guard lock(mutex_);
      socket_.close();
      return;
    }
    default:
      throw BadFrame("a message that only members send");
  }
}

void RegisterClient::send(const RegisterMessage& message) {
  const std::lock_guard lock(mutex_);
  if (!socket_.valid()) return;
  socket_.send(FrameType::members, encode_message(message));
  if (socket_.has_unsent()) waker_.wake();
}

void RegisterClient::report_lost(uint64_t generation, const std::string& id,
                                 const std::string& reason) {
  send({.kind = MessageKind::lost,
        .generation = generation,
        .id = id,
        .reason = one_line(reason, 4000)});
}

void RegisterClient::leave() {
  send({.kind = MessageKind::leave, .generation = news_.newest().generation});
}

bool RegisterClient::finish(uint64_t generation) {
  send({.kind = MessageKind::finish, .generation = generation});
  const Membership last = news_.wait_for_end_of(generation, finish_time);
  return last.phase == MembershipPhase::finished && last.generation == generation;
}

}  // namespace tessera::detail
