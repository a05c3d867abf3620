#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tessera/framework/io/checkpoint.hpp>
#include <tessera/framework/io/format/checkpoint_folder.hpp>
#include <tessera/framework/io/format/directory_claim.hpp>
#include <tessera/framework/io/save_freq.hpp>

namespace tessera {

/// The options of CheckpointManager.
struct CheckpointManagerOptions {
  /// How many of the newest stay; absent: all.
  std::optional<int64_t> max_to_keep = 3;
  /// The metric by which the best one stays too; empty: none does.
  std::string monitor = "";
  std::string mode = "auto";  ///< "min", "max"; "auto" for a loss, which is to fall
  /// save() does nothing for a step that is not a multiple of it.
  int64_t every_n_steps = 1;
  /// Whether checkpoints are written in the background.
  bool asynchronous = false;
  /// Whether restore_latest() throws for a damaged checkpoint instead of taking the one before.
  bool strict = false;
  /// Whether a save that fails throws its FileError, or warns.
  detail::SaveFailure save_failure = detail::SaveFailure::raise;
};

/// Keeps the newest checkpoints of a run in a directory, "step-000120" and so on
/// (tf.train.CheckpointManager). Older ones go after a new one is on disk. What it did not make
/// stays, whatever lies in the directory.
///
/// Newest is what was saved last, by a number that each one keeps, whatever its step: a run that
/// begins anew in the directory of a longer one goes on from its own. A checkpoint without such a
/// number is older than all that have one; of these, one of a higher step is newer.
class CheckpointManager {
 public:
  /// Changes nothing in the directory. Collective. Throws ConfigError for options, FileError if the
  /// directory cannot be read.
  CheckpointManager(const Checkpoint& checkpoint, const std::string& directory,
                    const CheckpointManagerOptions& options = {});

  /// Keeps other runs from saving here for as long as this manager, or another of this process,
  /// lasts, on this machine and on others that share the directory, and removes what killed ones
  /// left unfinished; the first save() does so too. Collective. Throws FileError if another run
  /// saves here.
  void claim();
  /// Saves; the new checkpoint's folder, or "" where there is none. `metrics` tell how good it is;
  /// the first that lack `monitor` are warned of. Collective. Throws FileError for this one, or one
  /// that was written in the background.
  std::string save(int64_t step, const Logs& metrics = {});
  /// Waits for one that is written in the background. Collective. Throws its FileError.
  void wait();

  /// Folders of the checkpoints there are, oldest first, but for those found damaged. Throws
  /// FileError if the directory cannot be read.
  std::vector<std::string> checkpoints() const;
  /// Folder of the newest one, of the best one.
  std::optional<std::string> latest() const;
  std::optional<std::string> best() const;

  /// Restores the newest one, or the newest before it that is not damaged, saying so; its folder,
  /// or nothing if there is none. Collective. Throws CheckpointMismatch at the first one that does
  /// not fit, FileError if all are damaged.
  std::optional<std::string> restore_latest(const CheckpointRestoreOptions& options = {});

  /// Removes the checkpoints that it made, and the directory if nothing else lies there.
  /// Collective. Throws FileError.
  void remove_all();

 private:
  /// A checkpoint that a manager made.
  struct Made {
    int64_t number = -1;               ///< in the order of saving; -1 without one
    std::optional<double> value = {};  ///< the value of `monitor`; absent: not known
  };
  struct Retention;

  void read_made();
  int64_t next_number() const;
  void warn_without_monitor(const Logs& metrics);
  /// All checkpoints there are, the one that was saved first first.
  std::vector<detail::CheckpointEntry> by_age() const;
  /// What by_age() gives the first process, as file systems may show others something else.
  /// Collective.
  std::vector<detail::CheckpointEntry> common_by_age() const;
  void report(const std::string& line) const;

  Checkpoint checkpoint_;
  std::string directory_;
  CheckpointManagerOptions options_;
  std::map<int64_t, Made> made_;  ///< by a manager here, by step; some may be gone
  std::set<int64_t> damaged_;
  std::shared_ptr<detail::DirectoryClaim> claim_;  ///< of the first process
  bool warned_ = false;
};

}  // namespace tessera
