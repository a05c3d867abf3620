#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/Stream.h>

#include "tests/support/fake_nccl/mailbox.hpp"
#include "tests/support/fake_nccl/operation.hpp"

namespace tessera::test::fake_nccl {

/// Results that NcclResult does not name.
inline constexpr NcclResult invalid_usage{5}, remote_error{6};

/// A rank of a communicator.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  Communicator(const std::filesystem::path& folder, int size, int rank, bool blocks)
      : mailbox_(folder, rank, size), size_(size), rank_(rank), blocks_(blocks) {}

  int size() const { return size_; }
  /// Queues operations as one on a stream; without blocking, only after enough calls of state().
  NcclResult begin(std::vector<Operation> operations, c10::Stream stream);
  /// Returns in-progress, success or the error.
  NcclResult state();
  const std::string& what_is_wrong();
  /// Ends the running operations.
  void abort();

 private:
  /// Operations queued as one on a stream, and their progress.
  struct Running {
    std::vector<Operation> operations;
    std::vector<std::vector<std::string>> received;
    bool fails = false;
    bool posted = false;
  };
  struct Waiting {
    std::shared_ptr<Running> running;
    c10::Stream stream;
  };

  void put(const Waiting& waiting);
  bool go_on(Running& running);
  bool receive(Running& running);
  void fail(NcclResult result, const std::string& why);

  std::mutex mutex_;
  Mailbox mailbox_;
  const int size_, rank_;
  const bool blocks_;
  std::atomic<bool> aborted_ = false;
  int questions_ = 0;  ///< calls of state() left until it is no longer in progress
  std::optional<Waiting> waiting_;
  NcclResult failed_ = NcclResult::success;
  std::string why_;
};

}  // namespace tessera::test::fake_nccl
