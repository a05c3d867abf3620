#pragma once

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

/// What the processes of a run agree on between two of its steps: whether to stop, whether one of
/// them has failed or met a signal, and whether all have a next batch of one form.
class StepExchange {
 public:
  explicit StepExchange(const Mesh& mesh) : mesh_(mesh) {}

  /// Whether the run is to end; the same on every process after an exchange.
  bool stops() const { return stop_; }
  void set_stop(bool stop) { stop_ = stop; }

  /// Does what may fail, or wish to stop, on one process alone, such as reading and writing files;
  /// then every process stops or throws in the same step. Collective.
  void do_on_all_ranks(const std::function<void()>& local);
  /// The gravest of what `local` raises on any process. Collective. Throws what it threw here,
  /// CommError for what it threw elsewhere.
  StepStatus exchange(const std::function<void(StepStatus&)>& local);

  /// Throws what the status of a step asks for, on every process the same.
  void check(const std::string& caller, Phase phase, const FitPosition& position,
             const StepStatus& status) const;

 private:
  Mesh mesh_;
  bool stop_ = false;
};

/// Does what a user asked for. What it throws here alone, the other processes can read.
template <class Work>
auto reporting_failure(const Mesh& mesh, const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    communicator_of(mesh).report_failure(error.what());
    throw;
  }
}

/// What a signal ends a run with; `at` tells where, as place_of().
Interrupted interrupted(int signal, const std::string& caller, Phase phase, const std::string& at);

/// "4 rows of x (18) Double, y () Long", of the global batch: what has to be equal everywhere.
std::string form_of(const Examples& batch);
/// A text's hash, the same number in every process and build.
uint64_t hash_of(const std::string& text);

}  // namespace tessera::detail
