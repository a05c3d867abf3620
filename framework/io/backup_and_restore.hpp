#pragma once

#include <string>

#include <tessera/framework/io/save_freq.hpp>
#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera {

/// The options of BackupAndRestore.
struct BackupAndRestoreOptions {
  /// When to make a backup: "epoch", at the end of each, or every N batches.
  SaveFreq save_freq = "epoch";
  /// Whether to keep the previous backup too, in case the last one is damaged.
  bool double_checkpoint = false;
  /// Whether to delete the backups when training is done.
  bool delete_checkpoint = true;
  /// Whether to write backups in the background.
  bool asynchronous = false;
  /// Whether a failed save ends training with its FileError or warns only.
  SaveFailure save_failure = SaveFailure::raise;
};

/// Makes fit() resume where it was interrupted, in the middle of an epoch too
/// (keras.callbacks.BackupAndRestore). On the same mesh losses and weights are bitwise equal to
/// those of an uninterrupted run; on another mesh they are equal up to rounding. A backup holds the
/// weights, the states of stateful layers, the optimizer, metrics, history, position, seed and the
/// states of the other callbacks, which run before this one. Data and options of fit() must be the
/// same.
class BackupAndRestore : public CallbackHandle {
 public:
  /// Throws ConfigError for an empty `backup_dir`. The directory belongs to this callback of this
  /// run alone. fit() throws FileError for a backup that cannot be read or written,
  /// CheckpointMismatch for one of a different model.
  explicit BackupAndRestore(const std::string& backup_dir,
                            const BackupAndRestoreOptions& options = {});
};

}  // namespace tessera
