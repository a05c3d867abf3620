#include <tessera/framework/comm/internal/process_communicator.hpp>

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <system_error>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/comm/internal/collective_bytes.hpp>

namespace tessera::detail {
namespace {

constexpr int64_t checked_steps = 20;

/// How long to wait, after a connection broke, until the coordination reports the lost rank.
constexpr std::chrono::milliseconds reason_timeout = std::chrono::seconds(2);

constexpr const char* advice =
    "read the error of that process; restart from the last checkpoint (--resume)";

/// Replaces the "[coordination]" prefix of the coordination's error by `where`; any other text
/// becomes the "Received" of a new error.
CommError error_at(const std::string& where, const std::string& reason) {
  const std::string own = "[coordination]";
  if (reason.rfind(own, 0) == 0) return CommError("[" + where + "]" + reason.substr(own.size()));
  return {where, "every process takes part", reason, advice};
}

}  // namespace

/// A collective whose errors name its call.
class ProcessCommunicator::NamedWork final : public Work {
 public:
  NamedWork(ProcessCommunicator& owner, WorkPtr work, uint64_t call, std::string_view name)
      : owner_(owner),
        connection_(owner.coordination_),
        work_(std::move(work)),
        call_(call),
        name_(name) {}
  void wait() override {
    const ProfileSpan span(SpanKind::wait, name_);
    try {
      work_->wait();
    } catch (const std::exception& error) {
      // A failure of earlier connections does not concern the present ones.
      if (connection_ != owner_.coordination_) throw MembershipChanged(error.what());
      owner_.fail(call_, error.what());
    }
  }
  bool done() const override { return work_->done(); }

 private:
  ProcessCommunicator& owner_;
  std::shared_ptr<Coordination> connection_;
  WorkPtr work_;
  uint64_t call_;
  std::string_view name_;
};

ProcessCommunicator::ProcessCommunicator(std::shared_ptr<Coordination> coordination,
                                         std::shared_ptr<Engine> engine,
                                         const ProcessCommunicatorOptions& options)
    : coordination_(std::move(coordination)), engine_(std::move(engine)), options_(options) {
  attach();
}

void ProcessCommunicator::attach() {
  coordination_->set_calls([calls = calls_] { return calls->records(); });
  coordination_->set_on_end([this](const std::string& reason) { on_end(reason); });
}

void ProcessCommunicator::part() {
  // Until all have read the last messages of the others.
  gather("elastic: part", "");
  coordination_->set_on_end({});
  coordination_->leave();
}

void ProcessCommunicator::disconnect() {
  const std::string reason = "the members of the next generation meet";
  coordination_->give_up(reason);
  engine_->abort(reason);
  coordination_->leave();
  coordination_->set_on_end({});
}

void ProcessCommunicator::reconnect(std::shared_ptr<Coordination> coordination,
                                    std::shared_ptr<Engine> engine) {
  disconnect();
  coordination_->set_calls({});
  {
    const std::lock_guard<std::mutex> lock(connections_mutex_);
    coordination_.swap(coordination);
  }
  engine_ = std::move(engine);
  calls_ = std::make_shared<FlightRecorder>();
  step_ = -1;
  signature_ = 0;
  checks_ = true;
  ++reconnections_;
  over_ = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    reason_.clear();
    noticed_ = false;
  }
  attach();
}

ProcessCommunicator::~ProcessCommunicator() { leave(); }

void ProcessCommunicator::leave() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (left_) return;
    left_ = true;
  }
  changed_.notify_all();
  coordination_->leave();
  // From here on on_end() is not called, so no watcher can start.
  coordination_->set_on_end({});
  if (watcher_.joinable()) watcher_.join();
  // The engine is not closed: its last messages may still be in transit.
  engine_->flush();
}

void ProcessCommunicator::begin(const CollectiveCall& call) {
  caller_ = std::this_thread::get_id();
  check_alive();
  const std::vector<int> ranks = ranks_of(call.mesh);
  if (!ranks.empty() && !std::binary_search(ranks.begin(), ranks.end(), rank())) return;
  const auto [count, number, hash] = calls_->add(call, ranks, step_);
  engine_->set_call(hash ^ number);
  // Calls of some ranks are compared by heartbeats only: ranks that differ exchange nothing.
  if (!checks_ || !ranks.empty()) return;
  try {
    coordination_->check(calls_->record(count));
  } catch (const std::exception& error) {
    fail(count, error.what());
  }
}

void ProcessCommunicator::begin_step(int64_t step, uint64_t signature) {
  caller_ = std::this_thread::get_id();
  check_alive();
  checks_ = options_.always_check || step < checked_steps || signature != signature_;
  step_ = step;
  signature_ = signature;
}

std::vector<std::string> ProcessCommunicator::gather(const std::string& key,
                                                     const std::string& text) {
  const ProfileSpan span(SpanKind::collective, "gather", static_cast<int64_t>(text.size()));
  check_alive();
  return gather_by(*coordination(), key, text);
}

std::function<std::vector<std::string>(const std::string&, const std::string&)>
ProcessCommunicator::gather_by_present_connections() {
  return [this, now = coordination()](const std::string& key, const std::string& text) {
    return gather_by(*now, key, text);
  };
}

std::vector<std::string> ProcessCommunicator::gather_by(Coordination& coordination,
                                                        const std::string& key,
                                                        const std::string& text) {
  try {
    return coordination.gather(key, text);
  } catch (const CommError& error) {
    const std::string reason = coordination.reason();
    notice();
    raise(key, reason.empty() ? error.what() : reason);
  }
}

void ProcessCommunicator::raise(const std::string& where, const std::string& reason) const {
  const CommError error = error_at(where, reason);
  if (options_.elastic) throw MembershipChanged(error.what());
  throw error;
}

std::string ProcessCommunicator::where(uint64_t call) const {
  const CallRecord record = calls_->record(call);
  const size_t space = record.text.find(' ');
  std::string text = record.number == 0
                         ? "start"
                         : str(record.text.substr(0, space), " #", record.number,
                               space == std::string::npos ? "" : record.text.substr(space));
  if (record.step >= 0) text += str(", step ", record.step + 1);
  return text;
}

void ProcessCommunicator::fail(uint64_t call, const std::string& error) {
  std::string reason = coordination_->reason(reason_timeout);
  if (reason.empty()) {
    reason = one_line(error);
    coordination_->abort(str("rank ", rank(), ": ", reason));
  }
  notice();
  raise(where(call), reason);
}

void ProcessCommunicator::notice() {
  // A thread that writes a checkpoint may notice long before the training thread.
  if (std::this_thread::get_id() != caller_.load()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    noticed_ = true;
  }
  changed_.notify_all();
}

void ProcessCommunicator::check_alive() {
  if (joining_) {
    throw StateError("elastic",
                     "a process that joins others which train communicates only in fit()",
                     "a collective before it",
                     "call what evaluates, adapts, loads or saves after fit(), or in callbacks");
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (left_) {
      throw CommError(where(calls_->count()), "collectives come before the end of the process",
                      "one after it has left", "");
    }
  }
  if (over_.load(std::memory_order_relaxed)) fail(calls_->count(), "the run is over");
}

void ProcessCommunicator::on_end(const std::string& reason) {
  over_ = true;
  engine_->abort(reason);
  const std::lock_guard<std::mutex> lock(mutex_);
  reason_ = reason;
  if (left_ || options_.elastic || options_.leave_after.count() == 0) return;
  try {
    watcher_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {
    // Without a watcher this process ends in its next collective.
  }
}

void ProcessCommunicator::watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  const bool ends_by_itself =
      changed_.wait_for(lock, options_.leave_after, [&] { return noticed_ || left_; });
  if (ends_by_itself) return;
  try {
    const CommError error = error_at(where(calls_->count()), reason_);
    std::fprintf(stderr, "%s: error: %s\n", program_invocation_short_name, error.what());
  } catch (const std::exception& error) {
    // Without memory for the text.
    std::fprintf(stderr, "%s: error: the run is over: %s\n", program_invocation_short_name,
                 error.what());
  }
  std::fflush(stderr);
  ::_exit(EXIT_FAILURE);
}

template <class Run>
WorkPtr ProcessCommunicator::run(std::string_view name, int64_t bytes, const Run& run) {
  const ProfileSpan span(SpanKind::collective, name, bytes);
  check_alive();
  return run_call(calls_->count(), name, run);
}

template <class Run>
WorkPtr ProcessCommunicator::run_call(uint64_t call, std::string_view name, const Run& run) {
  calls_->set_inside(call, true);
  WorkPtr work;
  try {
    work = run();
  } catch (const std::exception& error) {
    fail(call, error.what());
  }
  if (work) calls_->add_work(call, work);
  calls_->set_inside(call, false);
  if (!work) return nullptr;
  return std::make_shared<NamedWork>(*this, std::move(work), call, name);
}

WorkPtr ProcessCommunicator::all_reduce(const Group& group, Reduce kind,
                                        const std::vector<at::Tensor>& inputs, at::Tensor& out) {
  return run("all_reduce", reduced_bytes(inputs),
             [&] { return engine_->all_reduce(group, kind, inputs, out); });
}

WorkPtr ProcessCommunicator::all_gather(const Group& group, std::span<GatheredValue> values) {
  return run("all_gather", gathered_bytes(values),
             [&] { return engine_->all_gather(group, values); });
}

WorkPtr ProcessCommunicator::reduce_scatter(const Group& group, Reduce kind,
                                            std::span<ScatteredValue> values) {
  return run("reduce_scatter", scattered_bytes(values),
             [&] { return engine_->reduce_scatter(group, kind, values); });
}

WorkPtr ProcessCommunicator::all_to_all(const Group& group,
                                        const std::vector<std::vector<at::Tensor>>& send,
                                        std::vector<std::vector<at::Tensor>>& recv) {
  return run("all_to_all", sent_bytes(send),
             [&] { return engine_->all_to_all(group, send, recv); });
}

WorkPtr ProcessCommunicator::exchange(const CollectiveCall& call, const std::vector<Message>& sends,
                                      const std::vector<Message>& recvs) {
  const ProfileSpan span(SpanKind::collective, "transfer", message_bytes(recvs));
  caller_ = std::this_thread::get_id();
  check_alive();
  std::set<int> ranks = {rank()};
  for (const std::vector<Message>* messages : {&sends, &recvs}) {
    for (const Message& message : *messages) ranks.insert(message.rank);
  }
  const uint64_t count = calls_->add_transfer(call, {ranks.begin(), ranks.end()}, step_).count;
  return run_call(count, "transfer", [&] { return engine_->exchange(call, sends, recvs); });
}

}  // namespace tessera::detail
