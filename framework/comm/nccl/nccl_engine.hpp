#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/comm/internal/engine.hpp>

namespace tessera::detail {

/// How the NCCL engine of one process joins those of the others.
struct NcclOptions {
  int rank = 0;
  int size = 1;
  /// "cuda:index": the GPU that this process communicates by, another one on each process.
  int device = 0;
  /// Gives the texts that all ranks gave, by rank, as Communicator::gather does. Called once.
  std::function<std::vector<std::string>(const std::string& key, const std::string& text)> gather;
  /// Told, on another thread, of an error that NCCL meets in the background, of which one that
  /// waits for the GPU does not learn. Called once at most; may be absent.
  std::function<void(const std::string& error)> on_error = {};
};

/// The engine between processes that each have a GPU of their own. Collectives run on the GPU's
/// communication stream: they begin when what its compute stream was given before is done, and
/// Work::wait() makes that stream wait, not this thread. Tensors of the CPU or of other GPUs go
/// through the engine's; for those of the CPU the call itself waits. Collective. Throws ConfigError
/// for what this build or machine lacks, CommError when NCCL fails.
std::shared_ptr<Engine> make_nccl_engine(const NcclOptions& options);

}  // namespace tessera::detail
