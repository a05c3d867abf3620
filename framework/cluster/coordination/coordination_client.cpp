#include <tessera/framework/cluster/coordination/coordination_client.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/cluster/coordination/rendezvous.hpp>

namespace tessera::detail {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

/// How long a leaving rank waits for rank 0's reply to its goodbye.
constexpr auto goodbye_time = 5s;

/// Registers rank 0 at its own server. Throws the server's failure if that is why it has ended.
FrameSocket register_at(CoordinationServer& hub, const CoordinationOptions& options) {
  try {
    return register_rank(options, hub.take_own_end());
  } catch (const CommError&) {
    hub.rethrow_failure();
    throw;
  }
}

}  // namespace

CoordinationClient::CoordinationClient(const CoordinationOptions& options)
    : options_(options),
      hub_(options.rank == 0 ? std::make_unique<CoordinationServer>(options) : nullptr),
      socket_(hub_ ? register_at(*hub_, options) : connect_to_server(options)),
      last_received_(steady_clock::now()) {
  thread_ = std::thread([this] { run(); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return phase_ != Phase::joining; });
  if (phase_ == Phase::running) return;
  const std::string reason = reason_;
  stop_ = true;
  lock.unlock();
  waker_.wake();
  thread_.join();
  if (hub_) hub_->rethrow_failure();
  throw CommError(reason);
}

CoordinationClient::~CoordinationClient() {
  leave();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  waker_.wake();
  thread_.join();
}

void CoordinationClient::fail_over() const {
  if (hub_) hub_->rethrow_failure();
  if (phase_ == Phase::ended) throw CommError(reason_);
  throw CommError("coordination",
                  str("rank ", options_.rank, " must not exchange texts after leave()"),
                  "a call after leave()", "call leave() last");
}

std::vector<std::string> CoordinationClient::exchange(FrameType type, const std::string& key,
                                                      const std::string& body) {
  const auto waiter = std::make_shared<Waiter>();
  waiter->texts.resize(static_cast<size_t>(options_.size));
  std::unique_lock lock(mutex_);
  if (phase_ != Phase::running) fail_over();
  waiters_[key].push_back(waiter);
  socket_.send(type, body);
  if (socket_.has_unsent()) waker_.wake();
  changed_.wait(lock, [&] { return waiter->done || over(); });
  if (!waiter->done) fail_over();
  return std::move(waiter->texts);
}

std::vector<std::string> CoordinationClient::gather(const std::string& key,
                                                    const std::string& text) {
  if (text.size() > max_text_bytes || key.size() > 4096) {
    throw CommError("coordination",
                    str("ranks exchange texts of at most ", max_text_bytes, " bytes"),
                    str(text.size(), " bytes for ", in_quotes(key)), "split the text");
  }
  BodyWriter body;
  body.text(key).text(text);
  return exchange(FrameType::gather, text_key(key), body.bytes());
}

void CoordinationClient::check(const CallRecord& call) {
  BodyWriter body;
  body.call(call);
  exchange(FrameType::check, check_key(call.number), body.bytes());
}

void CoordinationClient::set_calls(std::function<std::vector<CallRecord>()> calls) {
  const std::lock_guard lock(callbacks_mutex_);
  calls_ = std::move(calls);
}

void CoordinationClient::set_on_end(std::function<void(const std::string& reason)> on_end) {
  {
    const std::lock_guard lock(callbacks_mutex_);
    on_end_ = std::move(on_end);
  }
  // The run may have ended already.
  waker_.wake();
}

std::string CoordinationClient::reason(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [this] { return over(); });
  return reason_;
}

void CoordinationClient::send(FrameType type, const std::string& body) {
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::running && phase_ != Phase::leaving) return;
  socket_.send(type, body);
  if (socket_.has_unsent()) waker_.wake();
}

void CoordinationClient::abort(const std::string& reason) {
  const std::string text = reason.empty() ? str("rank ", options_.rank, " ended the run") : reason;
  send(FrameType::abort, BodyWriter().text(text).bytes());
}

void CoordinationClient::report_failure(const std::string& what) {
  send(FrameType::note, BodyWriter().text(what).bytes());
}

void CoordinationClient::give_up(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (over()) return;
    given_up_ = reason;
  }
  waker_.wake();
}

void CoordinationClient::leave() {
  std::unique_lock lock(mutex_);
  if (phase_ == Phase::running) phase_ = Phase::leaving;
  waker_.wake();
  const auto is_over = [this] { return over(); };
  if (!hub_) {
    changed_.wait_for(lock, goodbye_time, is_over);
    return;
  }
  changed_.wait(lock, is_over);
  lock.unlock();
  // If this process exited now, ranks that have not read the end of the run would lose it.
  hub_->wait_for_end();
}

}  // namespace tessera::detail
