#include <tessera/framework/cluster/coordination/rendezvous.hpp>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/owner.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

constexpr size_t max_refusal_bytes = 2000;

/// Waits for rank 0's answer; false with why there is none.
bool is_accepted(FrameSocket& socket, steady_clock::time_point deadline, std::string& error) {
  while (steady_clock::now() < deadline) {
    pollfd entry{socket.descriptor(), POLLIN, 0};
    if (::poll(&entry, 1, poll_time(deadline)) <= 0) continue;
    const bool open = socket.receive();
    const std::optional<Frame> frame = socket.next();
    if (frame && frame->type == FrameType::accepted) return true;
    if (frame && frame->type == FrameType::refused) {
      throw ConfigError(one_line(frame->body, max_refusal_bytes));
    }
    if (frame || !open) {
      error = "it closed the connection";
      return false;
    }
  }
  error = "it does not answer";
  return false;
}

FrameSocket say_hello(const CoordinationOptions& options, FileDescriptor connection) {
  FrameSocket socket(std::move(connection));
  const Peer self{options.rank, ::getpid(), host_name(), ""};
  socket.send(FrameType::hello, encode_hello({options.job, options.size, self}));
  return socket;
}

[[noreturn]] void fail_to_join(const CoordinationOptions& options, const std::string& error) {
  const double seconds = std::chrono::duration<double>(options.connect_timeout).count();
  throw CommError("control",
                  str("rank ", options.rank, " reaches rank 0 at ",
                      address_text(options.address, options.port)),
                  str(error, ", for ", seconds, " s"),
                  "start rank 0 there, and check address, port and firewall");
}

}  // namespace

FrameSocket introduce(const CoordinationOptions& options, FileDescriptor connection) {
  std::string error;
  FrameSocket socket = say_hello(options, std::move(connection));
  const auto deadline = steady_clock::now() + options.connect_timeout;
  if (!is_accepted(socket, deadline, error)) fail_to_join(options, error);
  return socket;
}

FrameSocket find_hub(const CoordinationOptions& options) {
  const auto deadline = steady_clock::now() + options.connect_timeout;
  std::string error = "no answer";
  for (auto pause = 10ms;; pause = std::min<std::chrono::milliseconds>(2 * pause, 250ms)) {
    FileDescriptor connection = connect_to(options.address, options.port, deadline, error);
    if (connection.valid()) {
      FrameSocket socket = say_hello(options, std::move(connection));
      try {
        if (is_accepted(socket, deadline, error)) return socket;
      } catch (const BadFrame&) {
        error = "something else answers there";
      }
    }
    if (steady_clock::now() + pause >= deadline) fail_to_join(options, error);
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace tessera::detail
