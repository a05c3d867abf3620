#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tessera/framework/io/checkpoint_manager.hpp>
#include <tessera/framework/training/callbacks/callback.hpp>
#include <tessera/framework/training/callbacks/occasional_weight_reader.hpp>

#include "apps/common/app_options.hpp"

namespace tessera::app {

/// The checkpoint options of a training.
struct CheckpointFlags {
  std::string folder;                                ///< empty: no checkpoints
  std::optional<int64_t> save_every = std::nullopt;  ///< steps (default: once per epoch)
  bool resume = false;
  bool strict = false;                 ///< whether a damaged newest checkpoint is an error
  std::string save_failure = "raise";  ///< or "warn": training goes on if a save fails
};

/// Adds --checkpoint-dir, --save-every, --resume, --strict and --save-failure.
void add_checkpoint_options(AppOptions& options, CheckpointFlags& flags);

/// Completes the flags after parse(): a run restarted by its launcher resumes automatically. Throws
/// ConfigError if options need a folder that is missing.
void complete_checkpoint_options(CheckpointFlags& flags);

/// Returns the options of the manager that the flags ask for.
CheckpointManagerOptions manager_options(const CheckpointFlags& flags);

/// Returns the step of the newest checkpoint in a folder, 0 if there is none. Rank 0 determines it,
/// since a file system may show processes different contents. Collective. Throws FileError.
int64_t newest_step(const Mesh& mesh, const std::string& folder);

/// Saves checkpoints during training and when it is interrupted; with `resume`, continues where the
/// run that wrote the newest checkpoint stopped.
class TrainingCheckpoints final : public Callback, public OccasionalWeightReader {
 public:
  /// Numbers checkpoints from `first_step` on, or from "first_step" in the extra state of a
  /// restored checkpoint. The manager must outlive the callback.
  TrainingCheckpoints(const Checkpoint& checkpoint, CheckpointManager& manager, int64_t first_step,
                      const CheckpointFlags& flags)
      : checkpoint_(checkpoint), manager_(manager), first_step_(first_step), flags_(flags) {}
  void on_train_begin() override;
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_interrupt() override;
  bool wants_batch_logs(int64_t) override { return false; }
  std::optional<int64_t> batches_to_weights() override;
  bool is_called_last() const override { return true; }

 private:
  std::string save();

  Checkpoint checkpoint_;
  CheckpointManager& manager_;
  int64_t first_step_;
  CheckpointFlags flags_;
};

/// The checkpoints of a model in one call of fit, which starts from the newest one's weights, or
/// with `resume` where the run that wrote it stopped.
class RunCheckpoints {
 public:
  /// Collective. Throws what CheckpointManager throws.
  RunCheckpoints(const ModelHandle& model, const CheckpointFlags& flags);
  /// Returns the callback for fit, which this object must outlive.
  CallbackHandle callback();

 private:
  Checkpoint checkpoint_;
  CheckpointManager manager_;
  CheckpointFlags flags_;
  int64_t first_step_;
};

}  // namespace tessera::app
