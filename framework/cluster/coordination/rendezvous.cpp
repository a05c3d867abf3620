#include <tessera/framework/cluster/coordination/rendezvous.hpp>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/owner.hpp>
#include <tessera/framework/base/internal/secret.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/coordination/peer_handshake.hpp>

namespace tessera::detail {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

constexpr size_t max_refusal_bytes = 2000;

void check_given_up(const CoordinationOptions& options) {
  if (options.given_up && options.given_up()) throw CommError(given_up_text(options));
}

/// Returns milliseconds for poll() until the deadline, or until it is time to look whether the
/// caller has given up.
int wait_time(const CoordinationOptions& options, steady_clock::time_point deadline) {
  const int time = poll_time(deadline);
  return options.given_up ? std::min(time, static_cast<int>(patience_step.count())) : time;
}

/// Registration of this rank over a connection to rank 0.
class Registration {
 public:
  Registration(const CoordinationOptions& options, FileDescriptor connection)
      : options_(options), socket_(std::move(connection)) {
    const Peer self{options.rank, ::getpid(), host_name(), ""};
    const JobAccess& access = options.access;
    hello_ = encode_hello(
        {options.job, options.size, self, random_nonce(), !access.secret.empty(), access.encrypt});
    socket_.send(FrameType::hello, hello_);
  }

  /// Waits for admission. Returns false, with the reason in `error`, if the attempt failed.
  bool wait_until_accepted(steady_clock::time_point deadline, std::string& error) {
    while (steady_clock::now() < deadline) {
      check_given_up(options_);
      pollfd entry{socket_.descriptor(), POLLIN, 0};
      if (::poll(&entry, 1, wait_time(options_, deadline)) <= 0) continue;
      const bool open = socket_.receive();
      const std::optional<Frame> frame = socket_.next();
      if (frame && frame->type == FrameType::accepted) {
        check_proof(frame->body);
        protect();
        return true;
      }
      if (frame && frame->type == FrameType::refused) {
        throw ConfigError(one_line(frame->body, max_refusal_bytes));
      }
      if (frame && frame->type == FrameType::challenge && nonce_.empty()) {
        prove(frame->body);
        continue;
      }
      if (frame || !open) {
        error = "it closed the connection";
        return false;
      }
    }
    error = "it does not answer";
    return false;
  }

  FrameSocket take_socket() { return std::move(socket_); }

 private:
  void prove(const std::string& nonce) {
    if (options_.access.secret.empty()) fail("requires the secret of its job", "none here");
    nonce_ = nonce;
    socket_.send(FrameType::proof,
                 proof_of(options_.access.secret, {proof_of_rank, hello_, nonce}));
  }

  void check_proof(const std::string& proof) const {
    const std::string& secret = options_.access.secret;
    if (secret.empty() || same_secret(proof, proof_of(secret, {proof_of_hub, hello_, nonce_}))) {
      return;
    }
    fail("must prove that it knows the secret of the job",
         nonce_.empty() ? "it has none" : "it has another one");
  }

  void protect() {
    const JobAccess& access = options_.access;
    if (access.secret.empty()) return;
    socket_.protect(control_keys(access.secret, hello_, nonce_, false), access.encrypt);
  }

  [[noreturn]] void fail(const std::string& does, const std::string& received) const {
    throw ConfigError(
        "coordination", str("rank 0 at ", address_text(options_.address, options_.port), " ", does),
        received, "give all processes the same TESSERA_SECRET_FILE or TESSERA_SECRET");
  }

  const CoordinationOptions& options_;
  FrameSocket socket_;
  std::string hello_;
  std::string nonce_;  ///< nonce of rank 0's challenge
};

[[noreturn]] void fail_to_join(const CoordinationOptions& options, const std::string& error) {
  const double seconds = std::chrono::duration<double>(options.connect_timeout).count();
  throw CommError("coordination",
                  str("rank ", options.rank, " reaches rank 0 at ",
                      address_text(options.address, options.port)),
                  str(error, ", for ", seconds, " s"),
                  "start rank 0 there, and check address, port and firewall");
}

}  // namespace

std::string given_up_text(const CoordinationOptions& options) {
  return CommError("coordination", str("all ", options.size, " ranks join"),
                   "other processes are to meet instead", "")
      .what();
}

FrameSocket register_rank(const CoordinationOptions& options, FileDescriptor connection) {
  std::string error;
  Registration registration(options, std::move(connection));
  const auto deadline = steady_clock::now() + options.connect_timeout;
  if (!registration.wait_until_accepted(deadline, error)) fail_to_join(options, error);
  return registration.take_socket();
}

FrameSocket connect_to_server(const CoordinationOptions& options) {
  const auto deadline = steady_clock::now() + options.connect_timeout;
  std::string error = "no answer";
  for (auto pause = 10ms;; pause = std::min<std::chrono::milliseconds>(2 * pause, 250ms)) {
    check_given_up(options);
    FileDescriptor connection = connect_to(options.address, options.port, deadline, error);
    if (connection.valid()) {
      Registration registration(options, std::move(connection));
      try {
        if (registration.wait_until_accepted(deadline, error)) return registration.take_socket();
      } catch (const BadFrame&) {
        error = "something else answers there";
      } catch (const ConfigError& refusal) {
        // With given_up, rank 0 may still listen for the processes that met before these.
        if (!options.given_up) throw;
        error = one_line(refusal.what(), max_refusal_bytes);
      }
    }
    if (steady_clock::now() + pause >= deadline) fail_to_join(options, error);
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace tessera::detail
