#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/model/model.hpp>

namespace tessera {

class Callback;
namespace detail {
struct CheckpointParts;
}  // namespace detail

/// A complete checkpoint of a different model: other names, shapes, dtypes or optimizers.
class CheckpointMismatch : public FileError {
  using FileError::FileError;
};

/// The options of Checkpoint::save().
struct CheckpointSaveOptions {
  /// Whether to write the state at the time of the call in the background. Weights that change
  /// meanwhile get fresh memory.
  bool asynchronous = false;
  /// JSON note by the owner of the checkpoint, read back with CheckpointReader::state()["about"].
  Json about = nullptr;
  /// Called on the first process once everything is on disk; on the background thread for an
  /// asynchronous save.
  std::function<void()> then = {};
};

/// The options of Checkpoint::restore().
struct CheckpointRestoreOptions {
  /// Whether to restore the weights only, without states of layers, optimizer, position, seed and
  /// callbacks.
  bool weights_only = false;
  /// Whether to ignore what only the checkpoint or only the program has (TensorFlow's
  /// expect_partial) instead of throwing.
  bool expect_partial = false;
};

/// Saves and restores training (tf.train.Checkpoint): a model's weights, the states of its stateful
/// layers, its compiled optimizer, metrics, history, position in fit and the global seed; or the
/// variables and optimizers of a custom training loop. Every distinct shard is written once, by a
/// process that holds it. Each process reads only the blocks that its mesh and layouts need,
/// whatever mesh the checkpoint was written on. The processes must share the folder's file system.
/// A handle: copies share their state.
///
///     Checkpoint checkpoint({kernel, bias}, {optimizer});
///     checkpoint.extra()["epoch"] = 3;
///     checkpoint.save("training/step-000120");
class Checkpoint {
 public:
  /// The result of restore().
  struct Restored {
    int64_t tensors = 0;
    uint64_t bytes_read = 0;  ///< by this process
  };

  explicit Checkpoint(const ModelHandle& model);
  /// Saves and restores a model, which must outlive the checkpoint.
  explicit Checkpoint(Model& model);
  explicit Checkpoint(const std::vector<Variable>& variables,
                      const std::vector<OptimizerHandle>& optimizers = {});

  /// Writes the folder atomically, replacing a checkpoint that is already there. Waits for a
  /// background save first and throws its error. Collective. Throws FileError if the folder cannot
  /// be written; processes that succeeded throw RankFailures naming the others; a previous
  /// checkpoint is kept. Throws StateError for a model that is not built.
  void save(const std::string& folder, const CheckpointSaveOptions& options = {});
  /// Waits until a background save is on disk. Collective. Throws its FileError.
  void wait();

  /// Restores a checkpoint. Nothing is changed unless all of it fits; initializers of weights that
  /// are not drawn yet are skipped. Collective. fit() continues at the restored position only if it
  /// is set in on_train_begin(), as BackupAndRestore does; otherwise it begins the pass over the
  /// data after those of the checkpoint. Throws FileError naming file and tensor for a missing or
  /// damaged folder, CheckpointMismatch naming the most similar tensor in the checkpoint.
  Restored restore(const std::string& folder, const CheckpointRestoreOptions& options = {});

  /// Custom JSON values that are saved and restored.
  Json& extra() const;
  /// Sets the callbacks whose state is saved and restored too, for the duration of a run.
  void set_callbacks(const std::vector<Callback*>& callbacks) const;
  /// Sets metric totals, and their metric_sums(), to save instead of the model's, which may be
  /// those of a validation.
  void set_metric_totals(const Json& totals, std::map<std::string, DTensor> sums = {}) const;
  /// Returns the mesh whose processes save and restore together.
  Mesh mesh() const;

 private:
  struct State;
  explicit Checkpoint(detail::CheckpointParts parts);

  std::shared_ptr<State> state_;
};

}  // namespace tessera
