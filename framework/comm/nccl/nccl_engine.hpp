#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/comm/internal/engine.hpp>

namespace tessera::detail {

/// The options of make_nccl_engine().
struct NcclOptions {
  int rank = 0;
  int size = 1;
  /// Index of the GPU "cuda:index" through which this process communicates; no two processes share
  /// one.
  int device = 0;
  /// Returns the texts of all ranks, by rank, like Communicator::gather. Called once.
  std::function<std::vector<std::string>(const std::string& key, const std::string& text)> gather;
  /// Called, at most once and on another thread, for an asynchronous NCCL error, which a thread
  /// that waits for the GPU would not notice. May be empty.
  std::function<void(const std::string& error)> on_error = {};
};

/// Creates the engine between processes that each have their own GPU. Collectives run on the GPU's
/// communication stream, after all work queued on its compute stream so far; Work::wait() makes the
/// compute stream wait, not this thread. CPU tensors and tensors of other GPUs are copied through
/// the engine's GPU; for CPU tensors the call blocks. Collective. Throws ConfigError for what this
/// build or machine lacks, CommError if NCCL fails.
std::shared_ptr<Engine> make_nccl_engine(const NcclOptions& options);

}  // namespace tessera::detail
