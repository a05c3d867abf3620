#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tessera/framework/io/checkpoint_manager.hpp>
#include <tessera/framework/training/callbacks/callback.hpp>
#include <tessera/framework/training/callbacks/occasional_weight_reader.hpp>

#include "apps/common/app_options.hpp"

namespace tessera::app {

/// What a training can be told of its checkpoints.
struct CheckpointFlags {
  std::string folder;                                ///< empty: none
  std::optional<int64_t> save_every = std::nullopt;  ///< steps; absent: every epoch
  bool resume = false;
};

/// Adds --checkpoint-dir, --save-every and --resume.
void add_checkpoint_options(AppOptions& options, CheckpointFlags& flags);

/// For after parse(): a run that its launcher starts again resumes without being told to. Throws
/// ConfigError if options need a folder that is not given.
void settle_checkpoint_options(CheckpointFlags& flags);

/// The step of the newest checkpoint in a folder, as the first process finds it: file systems may
/// show others something else. 0 if there is none. Collective. Throws FileError.
int64_t newest_step(const Mesh& mesh, const std::string& folder);

/// Saves while a model is trained, when its run is interrupted too; if asked to, begins where the
/// run that wrote the newest checkpoint stopped.
class TrainingCheckpoints final : public Callback, public OccasionalWeightReader {
 public:
  /// Checkpoints are numbered from `first_step` on, or from the "first_step" that a restored one
  /// has among what is extra. The manager outlives the callback.
  TrainingCheckpoints(const Checkpoint& checkpoint, CheckpointManager& manager, int64_t first_step,
                      const CheckpointFlags& flags)
      : checkpoint_(checkpoint), manager_(manager), first_step_(first_step), flags_(flags) {}
  void on_train_begin() override;
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_interrupt() override;
  bool wants_batch_logs(int64_t) override { return false; }
  std::optional<int64_t> batches_to_weights() override;
  bool is_told_last() const override { return true; }

 private:
  std::string save();

  Checkpoint checkpoint_;
  CheckpointManager& manager_;
  int64_t first_step_;
  CheckpointFlags flags_;
};

/// A model's checkpoints in one run of fit, which begins with the newest one's weights, or where
/// the run that wrote it stopped.
class RunCheckpoints {
 public:
  /// Collective. Throws as CheckpointManager does.
  RunCheckpoints(const ModelHandle& model, const CheckpointFlags& flags);
  /// For fit; this object outlives it.
  CallbackHandle callback();

 private:
  Checkpoint checkpoint_;
  CheckpointManager manager_;
  CheckpointFlags flags_;
  int64_t first_step_;
};

}  // namespace tessera::app
