#include <tessera/framework/comm/nccl/nccl_communicators.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <thread>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

/// Polls before the thread sleeps between them.
constexpr int max_yields = 2000;
constexpr std::chrono::microseconds poll_pause(50);
/// Maximum wait for an abort: NCCL frees resources shared with other processes of the host only
/// when they abort, too.
constexpr std::chrono::seconds abort_timeout(5);
/// Interval at which the watcher thread polls NCCL for errors.
constexpr std::chrono::milliseconds watch_pause(500);

/// Returns an error if either is one, else in_progress if either is, else success.
NcclResult more_severe(NcclResult a, NcclResult b) {
  if (a != NcclResult::success && a != NcclResult::in_progress) return a;
  return b == NcclResult::success ? a : b;
}

/// Calls `on_error`; no exception may leave the watcher's thread.
void tell(const std::function<void(const std::string&)>& on_error, const char* what) noexcept {
  try {
    on_error(what);
  } catch (const std::exception&) {
    // Out of memory, for example: the run's other checks find the error.
  }
}

}  // namespace

NcclCommunicators::NcclCommunicators(std::function<void(const std::string&)> on_error)
    : nccl_(nccl_library()) {
  if (!on_error) return;
  watcher_ = std::jthread([this, on_error = std::move(on_error)](const std::stop_token& stop) {
    watch(stop, on_error);
  });
}

NcclId NcclCommunicators::make_id() const {
  NcclId id{};
  const NcclResult result = nccl_.get_unique_id(&id);
  if (result != NcclResult::success) fail(nullptr, result);
  return id;
}

NcclComm* NcclCommunicators::add(const NcclId& id, int size, int rank) {
  NcclConfig config;
  config.blocking = 0;
  NcclComm* comm = nullptr;
  NcclResult result = NcclResult::success;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    check_alive();
    result = nccl_.comm_init_rank_config(&comm, size, id, rank, &config);
    // Registered before it is ready, so that an abort ends the wait for the other ranks.
    if (comm) comms_.push_back(comm);
  }
  wait_until_done(comm, result);
  return comm;
}

void NcclCommunicators::run(NcclComm* comm, const std::function<NcclResult()>& queue) {
  NcclResult result = NcclResult::success;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    check_alive();
    result = nccl_.group_start();
    if (result == NcclResult::success) {
      const NcclResult queued = queue();
      result = more_severe(queued, nccl_.group_end());
    }
  }
  wait_until_done(comm, result);
}

void NcclCommunicators::check() {
  const std::lock_guard<std::mutex> lock(mutex_);
  check_alive();
  check_all();
}

void NcclCommunicators::check_all() {
  for (NcclComm* comm : comms_) {
    const NcclResult result = state(comm);
    if (result != NcclResult::success && result != NcclResult::in_progress) fail(comm, result);
  }
}

void NcclCommunicators::watch(const std::stop_token& stop,
                              const std::function<void(const std::string&)>& on_error) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!aborted_.wait_for(lock, stop, watch_pause, [this] { return !reason_.empty(); })) {
    if (stop.stop_requested()) return;
    try {
      check_all();
    } catch (const std::exception& error) {
      lock.unlock();
      return tell(on_error, error.what());
    }
  }
}

void NcclCommunicators::abort(const std::string& reason) {
  std::vector<NcclComm*> comms;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!reason_.empty()) return;
    reason_ = reason.empty() ? "no reason given" : reason;
    comms.swap(comms_);
  }
  aborted_.notify_all();
  if (comms.empty()) return;
  // On a separate thread: NCCL must not block the caller, such as the coordination's thread.
  const auto done = std::make_shared<std::promise<void>>();
  const std::future<void> finished = done->get_future();
  std::thread([done, comms, &nccl = nccl_] {
    // As a group: an abort of one communicator alone would wait for kernels of the others.
    nccl.group_start();
    for (NcclComm* comm : comms) nccl.comm_abort(comm);
    nccl.group_end();
    done->set_value();
  }).detach();
  finished.wait_for(abort_timeout);
}

void NcclCommunicators::check_alive() const {
  if (!reason_.empty()) throw CommError("nccl", "the communicator was aborted", reason_, "");
}

NcclResult NcclCommunicators::state(NcclComm* comm) const {
  NcclResult async_error = NcclResult::success;
  const NcclResult result = nccl_.comm_get_async_error(comm, &async_error);
  return result == NcclResult::success ? async_error : result;
}

void NcclCommunicators::wait_until_done(NcclComm* comm, NcclResult result) {
  for (int polls = 0; result == NcclResult::in_progress; ++polls) {
    if (polls < max_yields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(poll_pause);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    check_alive();
    result = state(comm);
  }
  if (result == NcclResult::success) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  check_alive();
  fail(comm, result);
}

void NcclCommunicators::fail(NcclComm* comm, NcclResult result) const {
  const char* last = nccl_.get_last_error(comm);
  const std::string detail = last && *last ? str(", ", one_line(last)) : "";
  throw CommError("nccl", "NCCL calls succeed", nccl_.get_error_string(result) + detail,
                  "set NCCL_DEBUG=WARN to see more");
}

}  // namespace tessera::detail
