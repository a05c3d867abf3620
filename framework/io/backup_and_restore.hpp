#pragma once

#include <string>

#include <tessera/framework/io/save_freq.hpp>
#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera {

/// The options of BackupAndRestore.
struct BackupAndRestoreOptions {
  /// When a backup is made: "epoch", at the end of each, or after every so many batches.
  SaveFreq save_freq = "epoch";
  /// Whether the backup before the last one stays too, for when the last is damaged.
  bool double_checkpoint = false;
  /// Whether the backups go when training is done.
  bool delete_checkpoint = true;
  /// Whether backups are written in the background.
  bool asynchronous = false;
  /// Whether a save that fails ends training with its FileError, or warns and lets it go on.
  detail::SaveFailure save_failure = detail::SaveFailure::raise;
};

/// Makes fit() go on where an interrupted one was, in the middle of an epoch too
/// (keras.callbacks.BackupAndRestore): on the same mesh with bitwise the same losses and weights as
/// without the interruption, on another one with the same but for rounding. Backed up are the
/// weights, the optimizer, metrics, history, position, seed and the states of the other callbacks,
/// which hear of everything before this one does. Data and options of fit() are to be the same.
class BackupAndRestore : public CallbackHandle {
 public:
  /// Throws ConfigError without a directory, which belongs to this callback of this run. fit()
  /// throws FileError for a backup that cannot be read or written, CheckpointMismatch for one of
  /// something else.
  explicit BackupAndRestore(const std::string& backup_dir,
                            const BackupAndRestoreOptions& options = {});
};

}  // namespace tessera
