#pragma once

#include <memory>
#include <vector>

#include <tessera/framework/mesh/mesh.hpp>
#include <tessera/framework/training/callbacks/callback.hpp>
#include <tessera/framework/training/callbacks/internal/progress_logger.hpp>
#include <tessera/framework/training/phase.hpp>

namespace tessera::detail {

/// The callbacks of a run, told in order: the user's, of these last the ones that wish so, then the
/// progress bar (keras.callbacks.CallbackList).
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
  /// `rows`: those of the global batch.
  void batch_end(Phase phase, int64_t batch, int64_t rows, const Logs& logs) const;
  void interrupt() const;

  bool wants_batch_logs(Phase phase, int64_t batch) const;
  bool accepts_non_finite_loss() const;
  /// Whether one of the user's may act at the end of a training batch; the same on every process.
  bool hears_train_batches() const;
  /// The soonest that one of the user's needs the weights: at the end of the next batch, unless all
  /// that hear of it are an OccasionalWeightReader.
  std::optional<int64_t> batches_to_weights() const;

 private:
  /// Tells every callback. On a mesh of several processes one that throws keeps this process from
  /// nothing that the others do together in later callbacks: the first error is thrown at the end.
  template <class Tell>
  void tell_all(const Tell& tell) const;

  std::vector<CallbackHandle> callbacks_;
  std::shared_ptr<ProgressLogger> progress_;  ///< the last of them
  bool is_alone_;                             ///< whether the mesh has one process
};

}  // namespace tessera::detail
