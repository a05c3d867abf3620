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

/// Completes the flags after parse(): a run restarted by its launcher resumes automatically; not a
/// process of an elastic run, which joins the others. Throws ConfigError if options need a folder
/// that is missing.
void complete_checkpoint_options(CheckpointFlags& flags);

/// Returns the options of the manager that the flags ask for.
CheckpointManagerOptions manager_options(const CheckpointFlags& flags);

/// Returns the step of the newest checkpoint in a folder, 0 if there is none. Rank 0 determines it,
/// since a file system may show processes different contents. Collective. Throws FileError.
int64_t newest_step(const Mesh& mesh, const std::string& folder);

/// Saves checkpoints during training and when it is interrupted; with `resume`, continues where the
/// run that wrote the newest checkpoint stopped.
class TrainingCheckpoints : public Callback, public OccasionalWeightReader {
 public:
  /// Numbers checkpoints from `first_step` on, or from "first_step" in the extra state of a
  /// restored checkpoint. The manager must outlive the callback.
  TrainingCheckpoints(const Checkpoint& checkpoint, CheckpointManager& manager, int64_t first_step,
                      const CheckpointFlags& flags)
      : checkpoint_(checkpoint), manager_(&manager), first_step_(first_step), flags_(flags) {}
  void on_train_begin() override;
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_interrupt() override;
  bool wants_batch_logs(int64_t) override { return false; }
  std::optional<int64_t> batches_to_weights() override;
  bool is_called_last() const override { return true; }

 protected:
  /// Makes callbacks whose manager is set later.
  TrainingCheckpoints(const Checkpoint& checkpoint, const CheckpointFlags& flags)
      : checkpoint_(checkpoint), flags_(flags) {}
  /// Continues where the run that wrote the newest checkpoint stopped. Collective.
  void resume();

  Checkpoint checkpoint_;
  CheckpointManager* manager_ = nullptr;
  int64_t first_step_ = 0;
  CheckpointFlags flags_;
  bool has_saved_ = false;

 private:
  std::string save();
};

/// The checkpoints of a model in one call of fit, which starts from the newest one's weights, or
/// with `resume` where the run that wrote it stopped. A process that joins others which train reads
/// no checkpoint.
class RunCheckpoints final : public TrainingCheckpoints {
 public:
  /// The model must be built.
  RunCheckpoints(const ModelHandle& model, const CheckpointFlags& flags)
      : TrainingCheckpoints(Checkpoint(model), flags), model_(model) {}
  void on_train_begin() override { open(); }
  /// A save that the change interrupted is given up.
  void on_membership_change(const MembershipChange&) override { open(); }
  Json state() const override { return {{"first_step", first_step_}}; }
  void restore(const Json& state, const NamedTensors& tensors) override;

 private:
  void open();
  void read();
  /// Sets the number of the step before this fit's first one.
  void set_first_step(int64_t step);

  ModelHandle model_;
  std::optional<CheckpointManager> own_manager_;
};

}  // namespace tessera::app
