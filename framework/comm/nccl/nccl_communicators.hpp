#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <tessera/framework/comm/nccl/nccl_library.hpp>

namespace tessera::detail {

/// The NCCL communicators of a process. They are non-blocking: no call into NCCL waits for another
/// process, so that abort() on another thread can end any wait of this one.
class NcclCommunicators {
 public:
  /// Calls `on_error`, if given, once and on a separate thread, for an asynchronous NCCL error.
  explicit NcclCommunicators(std::function<void(const std::string& error)> on_error = {});
  /// Aborts them.
  ~NcclCommunicators() { abort("the engine was destroyed"); }
  NcclCommunicators(const NcclCommunicators&) = delete;
  NcclCommunicators& operator=(const NcclCommunicators&) = delete;

  /// Creates the id of a new communicator, which all of its ranks pass to add().
  NcclId make_id() const;
  /// Creates a communicator in which this thread's current GPU is rank `rank` of `size`; returns
  /// when all ranks have joined. Throws CommError if NCCL fails or once aborted.
  NcclComm* add(const NcclId& id, int size, int rank);
  /// Calls `queue`, which calls NCCL for this communicator, as one NCCL group; returns when all its
  /// calls are queued on the stream. Throws CommError if NCCL fails or once aborted.
  void run(NcclComm* comm, const std::function<NcclResult()>& queue);
  /// Throws CommError once aborted, or after an asynchronous NCCL error.
  void check();
  /// Ends running collectives and every wait; only the first reason counts. Callable from any
  /// thread.
  void abort(const std::string& reason);

  const NcclLibrary& nccl() const { return nccl_; }

 private:
  void watch(const std::stop_token& stop, const std::function<void(const std::string&)>& on_error);
  void check_all();
  void check_alive() const;
  NcclResult state(NcclComm* comm) const;
  /// Waits until an NCCL call that is in progress has finished.
  void wait_until_done(NcclComm* comm, NcclResult result);
  [[noreturn]] void fail(NcclComm* comm, NcclResult result) const;

  const NcclLibrary& nccl_;
  mutable std::mutex mutex_;
  std::vector<NcclComm*> comms_;
  std::string reason_;
  std::condition_variable_any aborted_;
  /// Last, so that it is joined before the members that it uses are destroyed.
  std::jthread watcher_;
};

}  // namespace tessera::detail
