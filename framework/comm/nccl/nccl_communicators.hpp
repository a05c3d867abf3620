#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <tessera/framework/comm/nccl/nccl_library.hpp>

namespace tessera::detail {

/// The NCCL communicators of a process. They are non-blocking: no call into NCCL waits for another
/// process, so that abort() on another thread ends whatever this one waits for.
class NcclCommunicators {
 public:
  NcclCommunicators() : nccl_(nccl_library()) {}
  /// Aborts them.
  ~NcclCommunicators() { abort("the engine was destroyed"); }
  NcclCommunicators(const NcclCommunicators&) = delete;
  NcclCommunicators& operator=(const NcclCommunicators&) = delete;

  /// What tells a new communicator apart, to be given to add() on all of its ranks.
  ncclUniqueId make_id() const;
  /// Makes this thread's current GPU rank `rank` of `size`; returns when all of them are there.
  /// Throws CommError when NCCL fails or once aborted.
  ncclComm_t add(const ncclUniqueId& id, int size, int rank);
  /// Calls `queue`, which calls NCCL for this communicator, as one group; returns when all of it is
  /// on its stream. Throws CommError when NCCL fails or once aborted.
  void run(ncclComm_t comm, const std::function<ncclResult_t()>& queue);
  /// Throws CommError once aborted, or when NCCL has met an error since.
  void check();
  /// Ends what runs on the GPU, and every wait; only the first reason counts. On any thread.
  void abort(const std::string& reason);

  const NcclLibrary& nccl() const { return nccl_; }

 private:
  void check_alive() const;
  ncclResult_t state(ncclComm_t comm) const;
  /// Waits while NCCL works in the background.
  void settle(ncclComm_t comm, ncclResult_t result);
  [[noreturn]] void fail(ncclComm_t comm, ncclResult_t result) const;

  const NcclLibrary& nccl_;
  mutable std::mutex mutex_;
  std::vector<ncclComm_t> comms_;
  std::string reason_;
};

}  // namespace tessera::detail
