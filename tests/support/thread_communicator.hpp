#pragma once

#include <tessera/framework/comm/internal/communicator.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tessera::test {

using namespace detail;

/// What one rank of a test does.
using RankFunction = std::function<void(int rank, const std::shared_ptr<Communicator>&)>;

/// Runs `function` on `ranks` threads, each under InferenceMode, that stand for processes: their
/// communicators meet in shared memory. A collective returns once all ranks of its group are there;
/// results hold garbage until their work is waited for. Ranks that call different things, or wait
/// for one that has ended or is late by `patience`, all get a CommError. Rethrows the error that
/// came first. Catch2's assertions are for one thread: use expect() inside.
void run_ranks(int ranks, const RankFunction& function,
               std::chrono::milliseconds patience = std::chrono::seconds(30));

/// What a rank's communicator was told beside collectives.
struct RankNotes {
  int64_t calls = 0;                                     ///< of begin()
  uint64_t hash = 0;                                     ///< of them
  std::vector<std::pair<int64_t, uint64_t>> steps = {};  ///< number and form of each
  std::string failure = {};
};
const RankNotes& notes_of(const Mesh& mesh);

/// The part of a mesh of virtual CPUs that a rank holds: the rank-th run of neighbouring devices.
Mesh rank_mesh(const MeshDims& dims, const std::shared_ptr<Communicator>& communicator);

/// Throws std::runtime_error with the text unless `ok`.
void expect(bool ok, const std::string& text);

}  // namespace tessera::test
