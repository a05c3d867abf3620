#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/internal/status.hpp>
#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/mesh/mesh.hpp>
#include <tessera/framework/training/phase.hpp>

namespace tessera::detail {

/// Agreement of the processes of a run between two steps: whether to stop, whether a process has
/// failed or received a signal, and whether all have a next batch of the same signature.
class StepExchange {
 public:
  explicit StepExchange(const Mesh& mesh) : mesh_(mesh) {}

  /// Whether the run is to end; equal on every process after an exchange.
  bool stops() const { return stop_; }
  void set_stop(bool stop) { stop_ = stop; }

  /// Goes on with other processes, which count steps anew.
  void move_to(const Mesh& mesh) {
    mesh_ = mesh;
    steps_begun_ = 0;
  }
  /// Counts a step of training, tests or predictions; returns its number.
  int64_t count_step() { return steps_begun_++; }
  /// Runs work that may fail, or ask to stop, on one process alone, such as reading and writing
  /// files; then every process stops or throws in the same step. Collective.
  void do_on_all_ranks(const std::function<void()>& local);
  /// Returns the most severe status that `local` raises on any process. Collective. Rethrows an
  /// exception of `local` here; throws CommError for one on another process.
  StepStatus exchange(const std::function<void(StepStatus&)>& local);

  /// Throws the error that the status of a step asks for, the same on every process.
  void check(const std::string& caller, Phase phase, const FitPosition& position,
             const StepStatus& status) const;

 private:
  Mesh mesh_;
  bool stop_ = false;
  int64_t steps_begun_ = 0;
};

/// Runs a user's call and reports an exception, so that the other processes can read it.
template <class Work>
auto reporting_failure(const Mesh& mesh, const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    communicator_of(mesh).report_failure(error.what());
    throw;
  }
}

/// Returns the exception that ends a run after a signal; `at` is its position, from place_of().
Interrupted interrupted(int signal, const std::string& caller, Phase phase, const std::string& at);

/// Returns a hash of rows, shapes and dtypes of a global batch, which must be equal on all
/// processes; equal in every process and build.
uint64_t batch_signature(const Examples& batch);
/// Returns the same facts in words: "4 rows of x (18) Double, y () Long".
std::string batch_text(const Examples& batch);

}  // namespace tessera::detail
