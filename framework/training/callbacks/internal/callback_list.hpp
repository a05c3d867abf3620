#pragma once

#include <memory>
#include <vector>

#include <tessera/framework/mesh/mesh.hpp>
#include <tessera/framework/training/callbacks/callback.hpp>
#include <tessera/framework/training/callbacks/internal/progress_logger.hpp>
#include <tessera/framework/training/phase.hpp>

namespace tessera::detail {

/// The callbacks of a run, called in order: the user's, with those that are is_called_last() at the
/// end, then the progress bar (keras.callbacks.CallbackList).
class CallbackList {
 public:
  /// Adds a progress bar. Throws ConfigError if `params.verbose` is not 0, 1 or 2.
  CallbackList(std::vector<CallbackHandle> callbacks, Trainer& trainer, const Mesh& mesh,
               Callback::Params params);

  void begin(Phase phase) const;
  void end(Phase phase, const Logs& logs) const;
  void epoch_begin(int64_t epoch) const;
  void epoch_end(int64_t epoch, Logs& logs) const;
  void batch_begin(Phase phase, int64_t batch) const;
  /// `rows`: rows of the global batch.
  void batch_end(Phase phase, int64_t batch, int64_t rows, const Logs& logs) const;
  void interrupt() const;
  void membership_change(const Callback::MembershipChange& change) const;

  /// Sets what changes when other processes go on with the run.
  void set_params(bool is_first_rank, bool restored_from_memory) const;
  const std::vector<Callback*>& all() const { return params_.callbacks; }

  bool wants_batch_logs(Phase phase, int64_t batch) const;
  bool accepts_non_finite_loss() const;
  /// Whether a user's callback may act at the end of a training batch; the same on every process.
  bool overrides_train_batch_end() const;
  /// Returns the number of batches after which the first user callback needs the weights: 1, unless
  /// all that override on_train_batch_end are OccasionalWeightReaders.
  std::optional<int64_t> batches_to_weights() const;

 private:
  /// Calls every callback. On a mesh of several processes the first error is thrown at the end, so
  /// that this process takes part in the collectives of later callbacks.
  template <class Tell>
  void tell_all(const Tell& tell) const;

  std::vector<CallbackHandle> callbacks_;
  Callback::Params params_;
  std::shared_ptr<ProgressLogger> progress_;  ///< the last of callbacks_
  bool is_alone_;                             ///< whether the mesh has one process
};

}  // namespace tessera::detail
