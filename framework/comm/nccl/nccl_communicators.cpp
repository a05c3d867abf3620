#include <tessera/framework/comm/nccl/nccl_communicators.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <thread>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::detail {
namespace {

/// Polls that follow each other at once, before the thread sleeps between them.
constexpr int eager_polls = 2000;
constexpr std::chrono::microseconds poll_pause(50);
/// NCCL frees what it shares with other processes of the host only when they abort, too.
constexpr std::chrono::seconds abort_patience(5);

/// Neither of the two says that something failed.
ncclResult_t graver(ncclResult_t a, ncclResult_t b) {
  if (a != ncclSuccess && a != ncclInProgress) return a;
  return b == ncclSuccess ? a : b;
}

}  // namespace

ncclUniqueId NcclCommunicators::make_id() const {
  ncclUniqueId id{};
  const ncclResult_t result = nccl_.get_unique_id(&id);
  if (result != ncclSuccess) fail(nullptr, result);
  return id;
}

ncclComm_t NcclCommunicators::add(const ncclUniqueId& id, int size, int rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  ncclResult_t result = ncclSuccess;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    check_alive();
    result = nccl_.comm_init_rank_config(&comm, size, id, rank, &config);
    // Known before it is ready: an abort must end the wait for the other ranks.
    if (comm) comms_.push_back(comm);
  }
  settle(comm, result);
  return comm;
}

void NcclCommunicators::run(ncclComm_t comm, const std::function<ncclResult_t()>& queue) {
  ncclResult_t result = ncclSuccess;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    check_alive();
    result = nccl_.group_start();
    if (result == ncclSuccess) {
      const ncclResult_t queued = queue();
      result = graver(queued, nccl_.group_end());
    }
  }
  settle(comm, result);
}

void NcclCommunicators::check() {
  const std::lock_guard<std::mutex> lock(mutex_);
  check_alive();
  for (ncclComm_t comm : comms_) {
    const ncclResult_t result = state(comm);
    if (result != ncclSuccess && result != ncclInProgress) fail(comm, result);
  }
}

void NcclCommunicators::abort(const std::string& reason) {
  std::vector<ncclComm_t> comms;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!reason_.empty()) return;
    reason_ = reason.empty() ? "no reason given" : reason;
    comms.swap(comms_);
  }
  if (comms.empty()) return;
  // A thread of its own: whoever brings the news must not be held up with NCCL.
  const auto done = std::make_shared<std::promise<void>>();
  const std::future<void> finished = done->get_future();
  std::thread([done, comms, &nccl = nccl_] {
    // As a group: one alone would wait for kernels of the others.
    nccl.group_start();
    for (ncclComm_t comm : comms) nccl.comm_abort(comm);
    nccl.group_end();
    done->set_value();
  }).detach();
  finished.wait_for(abort_patience);
}

void NcclCommunicators::check_alive() const {
  if (!reason_.empty()) throw CommError("nccl", "the communicator was aborted", reason_, "");
}

ncclResult_t NcclCommunicators::state(ncclComm_t comm) const {
  ncclResult_t found = ncclSuccess;
  const ncclResult_t result = nccl_.comm_get_async_error(comm, &found);
  return result == ncclSuccess ? found : result;
}

void NcclCommunicators::settle(ncclComm_t comm, ncclResult_t result) {
  for (int polls = 0; result == ncclInProgress; ++polls) {
    if (polls < eager_polls) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(poll_pause);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    check_alive();
    result = state(comm);
  }
  if (result == ncclSuccess) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  check_alive();
  fail(comm, result);
}

void NcclCommunicators::fail(ncclComm_t comm, ncclResult_t result) const {
  const char* last = nccl_.get_last_error(comm);
  const std::string detail = last && *last ? str(", ", one_line(last)) : "";
  throw CommError("nccl", "NCCL carries out what it is asked for",
                  nccl_.get_error_string(result) + detail, "set NCCL_DEBUG=WARN to see more");
}

}  // namespace tessera::detail
