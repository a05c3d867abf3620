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
/// process, so that abort() on another thread ends whatever this one waits for.
class NcclCommunicators {
 public:
  /// `on_error` is told, on a thread of its own and once, of an error met in the background; it may
  /// be absent.
  explicit NcclCommunicators(std::function<void(const std::string& error)> on_error = {});
  /// Aborts them.
  ~NcclCommunicators() { abort("the engine was destroyed"); }
  NcclCommunicators(const NcclCommunicators&) = delete;
  NcclCommunicators& operator=(const NcclCommunicators&) = delete;

  /// What tells a new communicator apart, to be given to add() on all of its ranks.
  NcclId make_id() const;
  /// Makes this thread's current GPU rank `rank` of `size`; returns when all of them are there.
  /// Throws CommError when NCCL fails or once aborted.
  NcclComm* add(const NcclId& id, int size, int rank);
  /// Calls `queue`, which calls NCCL for this communicator, as one group; returns when all of it is
  /// on its stream. Throws CommError when NCCL fails or once aborted.
  void run(NcclComm* comm, const std::function<NcclResult()>& queue);
  /// Throws CommError once aborted, or when NCCL has met an error since.
  void check();
  /// Ends what runs on the GPU, and every wait; only the first reason counts. On any thread.
  void abort(const std::string& reason);

  const NcclLibrary& nccl() const { return nccl_; }

 private:
  void watch(const std::stop_token& stop, const std::function<void(const std::string&)>& on_error);
  void check_all();
  void check_alive() const;
  NcclResult state(NcclComm* comm) const;
  /// Waits while NCCL works in the background.
  void settle(NcclComm* comm, NcclResult result);
  [[noreturn]] void fail(NcclComm* comm, NcclResult result) const;

  const NcclLibrary& nccl_;
  mutable std::mutex mutex_;
  std::vector<NcclComm*> comms_;
  std::string reason_;
  std::condition_variable_any aborted_;
  /// Last, so that it is joined before what it uses goes.
  std::jthread watcher_;
};

}  // namespace tessera::detail
