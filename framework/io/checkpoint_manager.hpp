#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tessera/framework/io/checkpoint.hpp>
#include <tessera/framework/io/save_freq.hpp>

namespace tessera {

namespace detail {
struct CheckpointEntry;
class DirectoryClaim;
}  // namespace detail

/// The options of CheckpointManager.
struct CheckpointManagerOptions {
  /// Number of newest checkpoints to keep (absent: all).
  std::optional<int64_t> max_to_keep = 3;
  /// Metric by which the best checkpoint is kept too (default: none).
  std::string monitor = "";
  std::string mode = "auto";  ///< "min", "max", or "auto" for a loss, which is minimized
  /// save() skips steps that are not a multiple of this number.
  int64_t every_n_steps = 1;
  /// Whether checkpoints are written in the background.
  bool asynchronous = false;
  /// Whether restore_latest() throws for a damaged checkpoint instead of falling back to the
  /// previous one.
  bool strict = false;
  /// Whether a failed save throws its FileError or warns.
  SaveFailure save_failure = SaveFailure::raise;
};

/// Keeps the newest checkpoints of a run in a directory, "step-000120" and so on
/// (tf.train.CheckpointManager). Older ones are removed once a new one is on disk. Files and
/// folders that no manager created are never removed.
///
/// Checkpoints are ordered by the sequence number that each one stores, not by step: a run that
/// starts over in the directory of a longer one resumes from its own checkpoints. Checkpoints
/// without a sequence number are older than all that have one, and ordered by step among
/// themselves.
class CheckpointManager {
 public:
  /// Changes nothing in the directory. Collective. Throws ConfigError for invalid options,
  /// FileError if the directory cannot be read.
  CheckpointManager(const Checkpoint& checkpoint, const std::string& directory,
                    const CheckpointManagerOptions& options = {});

  /// Claims the directory: while this manager, or another one of this process, exists, no other run
  /// can save here, on any machine that shares the directory. Removes what killed runs left
  /// unfinished. The first save() claims too. Collective. Throws FileError if another run holds the
  /// claim.
  void claim();
  /// Saves a checkpoint. Returns its folder, or "" if the step is skipped or the save failed with a
  /// warning. `metrics` are the values that `monitor` is looked up in; warns once if it is missing.
  /// Collective. Throws the FileError of this save or of a previous background save.
  std::string save(int64_t step, const Logs& metrics = {});
  /// Waits for a background save. Collective. Throws its FileError.
  void wait();

  /// Returns the folders of all checkpoints, oldest first, without those found damaged. Throws
  /// FileError if the directory cannot be read.
  std::vector<std::string> checkpoints() const;
  /// Returns the folder of the newest or best checkpoint.
  std::optional<std::string> latest() const;
  std::optional<std::string> best() const;

  /// Restores the newest checkpoint, falling back with a report to the newest undamaged one.
  /// Returns its folder, or nothing if there is none. Collective. Throws CheckpointMismatch at the
  /// first one that does not fit, FileError if all are damaged.
  std::optional<std::string> restore_latest(const CheckpointRestoreOptions& options = {});

  /// Removes the checkpoints that this manager or an earlier one wrote, and the directory if it is
  /// empty then. Collective. Throws FileError.
  void remove_all();

 private:
  /// A checkpoint written by a manager.
  struct SavedCheckpoint {
    int64_t number = -1;               ///< position in the order of saving; -1: unknown
    std::optional<double> value = {};  ///< value of `monitor`; absent: unknown
  };
  struct Retention;

  void read_saved();
  int64_t next_number() const;
  void warn_without_monitor(const Logs& metrics);
  /// Returns all checkpoints in the order of saving.
  std::vector<detail::CheckpointEntry> by_age() const;
  /// Returns the first process' by_age() on every process, since file systems may show others a
  /// different listing. Collective.
  std::vector<detail::CheckpointEntry> common_by_age() const;
  void report(const std::string& line) const;

  Checkpoint checkpoint_;
  std::string directory_;
  CheckpointManagerOptions options_;
  std::map<int64_t, SavedCheckpoint> saved_;  ///< by step; some may have been removed
  std::set<int64_t> damaged_;
  std::shared_ptr<detail::DirectoryClaim> claim_;  ///< null but on the first process
  bool warned_ = false;
};

}  // namespace tessera
