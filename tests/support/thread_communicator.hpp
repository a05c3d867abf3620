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

/// The function of one rank of a test.
using RankFunction = std::function<void(int rank, const std::shared_ptr<Communicator>&)>;

/// Runs `function` on `ranks` threads, each under InferenceMode, that stand for processes: their
/// communicators meet in shared memory. A collective returns once all ranks of its group have
/// called it; results hold garbage until their work is waited for. If ranks call different things,
/// or wait for one that has ended or is later than `patience`, all get a CommError. Rethrows the
/// error that came first. Catch2's assertions are for one thread: use expect() inside.
void run_ranks(int ranks, const RankFunction& function,
               std::chrono::milliseconds patience = std::chrono::seconds(30));

/// The calls of a rank's communicator other than collectives.
struct RankNotes {
  int64_t calls = 0;                                     ///< number of begin() calls
  uint64_t hash = 0;                                     ///< hash of these calls
  std::vector<std::pair<int64_t, uint64_t>> steps = {};  ///< number and signature of each
  std::string failure = {};
};
const RankNotes& notes_of(const Mesh& mesh);

/// Returns a rank's part of a mesh of virtual CPUs, by the default hosting.
Mesh rank_mesh(const MeshDims& dims, const std::shared_ptr<Communicator>& communicator);

/// Whether rank_mesh() has a hosting for so many ranks.
bool can_host(const MeshDims& dims, int ranks);

/// Throws std::runtime_error with the text unless `ok`.
void expect(bool ok, const std::string& text);

}  // namespace tessera::test
