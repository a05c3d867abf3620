#pragma once

#include <cstdint>
#include <functional>
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

/// A checkpoint is whole, but of something else: other names, shapes, dtypes or optimizers.
class CheckpointMismatch : public FileError {
  using FileError::FileError;
};

/// The options of CheckpointSave.
struct CheckpointSaveOptions {
  /// Whether to write in the background what is the state at the call. Weights that change
  /// meanwhile take fresh memory.
  bool asynchronous = false;
  /// A note of who keeps the checkpoint, read back with CheckpointReader::state()["about"].
  Json about = nullptr;
  /// Called on the first process, in the background where files are written there, when everything
  /// is on disk.
  std::function<void()> then = {};
};

/// The options of CheckpointRestore.
struct CheckpointRestoreOptions {
  /// Whether to take the weights alone: no optimizer, position, seed or callbacks.
  bool weights_only = false;
  /// Whether to leave alone what only one of checkpoint and program has (TensorFlow's
  /// expect_partial), instead of throwing.
  bool expect_partial = false;
};

/// Saves and restores training (tf.train.Checkpoint): a model's weights, its compiled optimizer,
/// metrics, history, position in fit and the global seed; or the variables and optimizers of a
/// training loop of one's own. Every distinct shard is written once, by a process that holds it,
/// and each process reads the parts that its mesh and layouts need, whatever mesh the checkpoint is
/// from. Several processes share the file system of the folder. A handle: copies are the same.
///
///     Checkpoint checkpoint({kernel, bias}, {optimizer});
///     checkpoint.extra()["epoch"] = 3;
///     checkpoint.save("training/step-000120");
class Checkpoint {
 public:
  /// What restore() read.
  struct Restored {
    int64_t tensors = 0;
    uint64_t bytes_read = 0;  ///< by this process
  };

  explicit Checkpoint(const ModelHandle& model);
  /// A checkpoint of a model that outlives it.
  explicit Checkpoint(Model& model);
  explicit Checkpoint(const std::vector<Variable>& variables,
                      const std::vector<OptimizerHandle>& optimizers = {});

  /// Writes the folder in one step, in place of a checkpoint that lies there. Waits for a save in
  /// the background first, and throws its error. Collective. Throws FileError if the folder cannot
  /// be written, on the processes that did their part RankFailures that name the others;
  /// then the former one is as it was. StateError for a model that is not built.
  void save(const std::string& folder, const CheckpointSaveOptions& options = {});
  /// Waits until a save in the background is on disk. Collective. Throws its FileError.
  void wait();

  /// Takes over what a checkpoint holds. Nothing is changed unless all of it fits; weights that
  /// were not drawn yet are not drawn. Collective. fit() goes on from the position restored only if
  /// it is set in on_train_begin(), as BackupAndRestore does. Throws FileError naming file and
  /// tensor for a folder that is missing or damaged, CheckpointMismatch naming the nearest tensor
  /// there is.
  Restored restore(const std::string& folder, const CheckpointRestoreOptions& options = {});

  /// Values of the user's own that are saved and restored.
  Json& extra() const;
  /// Callbacks of a run, whose states are saved and restored too, as long as it lasts.
  void set_callbacks(const std::vector<Callback*>& callbacks) const;
  /// Metric totals that are saved instead of the model's, which may be of a validation.
  void set_metric_totals(const Json& totals) const;
  /// The mesh whose processes save and restore together.
  Mesh mesh() const;

 private:
  struct State;
  explicit Checkpoint(detail::CheckpointParts parts);

  std::shared_ptr<State> state_;
};

}  // namespace tessera
