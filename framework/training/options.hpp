#pragma once

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>
#include <tessera/framework/training/callbacks/callback.hpp>
#include <tessera/framework/training/per_output.hpp>

namespace tessera {

/// Arguments of keras.Model.compile, and layouts.
struct CompileOptions {
  OptimizerHandle optimizer = {};  ///< updates the weights; null: the model only predicts
  /// Loss to minimize: one for all outputs or one for each. An output without a loss adds nothing.
  PerOutput<LossChoice> loss = {};
  /// Factors of the outputs' losses in the total loss (default: 1).
  PerOutput<double> loss_weights = {};
  /// Metrics that are computed without sample weights, as in Keras.
  MetricsChoice metrics = {};
  /// Metrics that are computed with sample weights.
  MetricsChoice weighted_metrics = {};
  /// Whether every step runs eagerly, for debugging: no step is captured or replayed.
  bool run_eagerly = false;
  /// Whether a model in "mixed_float16" trains with a LossScaleOptimizer around the optimizer;
  /// without one, small gradients are lost.
  bool auto_scale_loss = true;
  /// Whether training steps are captured and replayed while shapes and layouts stay the same (as in
  /// a tf.function). Default: only the stock train_step() over layers, losses, metrics and
  /// regularizers that can_be_replayed(), as Tessera's own can. True: user-defined code too; only
  /// its operations and the effects of add_loss(), assign() and metrics are replayed, and numbers
  /// that it computes itself become constants. Reading a value on the host or making a Variable in
  /// a step ends the capture, and steps stay eager.
  std::optional<bool> record_steps = std::nullopt;
  /// Layouts of weights and batches. Default: weights are replicated over `mesh`; batches are
  /// sharded over its dimension "batch", if there is one.
  LayoutMap layouts = {};
  /// Devices to train on, used only without `layouts` (default: default_mesh()).
  Mesh mesh = {};
  /// Layers of which the backward pass computes inner values again instead of saving them, besides
  /// those that `layouts` names: less memory for about a third more time, equal results.
  std::vector<RematRule> remat = {};
  /// Bucket size in megabytes of the gradient reductions between processes that overlap the
  /// backward pass (DistributedDataParallel's bucket_cap_mb); 0: one reduction for each variable.
  /// Must be the same on every process.
  double bucket_cap_mb = detail::default_bucket_cap_mb;
  /// Whether results have the same bits on any number of processes that share the mesh, and of
  /// threads: every device has blocks of its own, each computed by one thread, and devices' values
  /// are summed by a balanced binary tree, whoever holds them. Costs time where devices are virtual
  /// and would share blocks. `layouts` may ask for it, too.
  bool world_size_invariant = false;
};

/// Epochs after which fit validates: every n-th, or a list of numbers counted from 1.
class ValidationFreq {
 public:
  ValidationFreq(int64_t every = 1) : every_(every) {}                         // NOLINT
  ValidationFreq(std::initializer_list<int64_t> epochs) : epochs_(epochs) {}   // NOLINT
  ValidationFreq(std::vector<int64_t> epochs) : epochs_(std::move(epochs)) {}  // NOLINT
  /// Whether to validate after `epoch`, counted from 0.
  bool due(int64_t epoch) const {
    if (epochs_.empty()) return (epoch + 1) % every_ == 0;
    return std::find(epochs_.begin(), epochs_.end(), epoch + 1) != epochs_.end();
  }
  /// Returns n of "every n-th"; 1 for a list.
  int64_t every() const { return every_; }

 private:
  int64_t every_ = 1;
  std::vector<int64_t> epochs_;
};

/// Weight of each class in the loss; 1 for a class that is not listed.
using ClassWeight = std::map<int64_t, double>;

/// How fit keeps its state for processes that come and go, in a run of `launch --elastic`.
struct ElasticOptions {
  /// Number of processes below which training saves and ends with an error. The launcher's minimum
  /// comes first: with fewer than that, training waits for others.
  int64_t min_processes = 1;
  /// Steps between two snapshots in memory. After the loss of a process, at most as many are done
  /// again.
  int64_t snapshot_every = 10;
};

/// Arguments of keras.Model.fit.
struct FitOptions {
  int64_t batch_size = 32;  ///< rows of a global batch; a stream has batches of its own
  int64_t epochs = 1;       ///< total number, including those before `initial_epoch`
  int verbose = 1;          ///< 0 silent, 1 bar, 2 a line an epoch
  std::vector<CallbackHandle> callbacks = {};  ///< called in this order
  /// Fraction of the rows, in [0, 1), held out for validation: the last ones, before shuffling.
  double validation_split = 0;
  /// Validation data (default: the rows held out by `validation_split`, if any).
  DatasetHandle validation_data = {};
  /// Whether rows are shuffled. The order follows from the seed and the number of the pass over the
  /// data, counted over the fits since compile() and from `initial_epoch`.
  bool shuffle = true;
  /// Weight of the labels of each class, for a single output whose labels are class ids or one-hot:
  /// (rows), or (rows, steps) where each step has a label. Class ids (rows, steps) are recognized
  /// by SparseCategoricalCrossentropy. Labels of several classes, or of none, are refused.
  ClassWeight class_weight = {};
  /// Weight of every row, for data without sample weights.
  at::Tensor sample_weight = {};
  int64_t initial_epoch = 0;  ///< epoch to begin with, counted from 0
  /// Maximum number of batches in an epoch (default: all). The next epoch goes on where this one
  /// ends; it is shorter, with a warning, if the data end before. Then the data start over.
  std::optional<int64_t> steps_per_epoch = std::nullopt;
  /// Maximum number of batches in a validation, which starts its data over (default: all). Fewer
  /// batches than that give a warning.
  std::optional<int64_t> validation_steps = std::nullopt;
  /// Rows of a global batch in validation (default: `batch_size`).
  std::optional<int64_t> validation_batch_size = std::nullopt;
  ValidationFreq validation_freq = 1;  ///< every n-th epoch, or a list of epochs
  /// Bytes of a device that a step may need at most, as plan() finds them before the first step; 0:
  /// any number.
  double memory_limit = 0;
  /// If set, an epoch's logs have rows_per_second and flops_per_second: floating-point operations
  /// as plan() counts them, of all devices together. Unless it is 0, they also have mfu, the model
  /// FLOPs utilization: flops_per_second divided by `peak_flops`, the most that one device can do,
  /// and by the number of devices.
  std::optional<double> peak_flops = std::nullopt;
  /// Has an effect in processes of an elastic run only.
  ElasticOptions elastic = {};
};

/// Arguments of keras.Model.evaluate.
struct EvaluateOptions {
  int64_t batch_size = 32;        ///< rows of a global batch; a stream has batches of its own
  int verbose = 1;                ///< 0 silent, 1 bar, 2 one line
  at::Tensor sample_weight = {};  ///< weight of every row, for data without sample weights
  /// Maximum number of batches (default: all); fewer give a warning.
  std::optional<int64_t> steps = std::nullopt;
  std::vector<CallbackHandle> callbacks = {};  ///< called in this order
};

/// Arguments of keras.Model.predict.
struct PredictOptions {
  int64_t batch_size = 32;  ///< rows of a global batch; a stream has batches of its own
  int verbose = 0;          ///< 0 silent, 1 bar, 2 one line
  /// Maximum number of batches (default: all); fewer give a warning.
  std::optional<int64_t> steps = std::nullopt;
  std::vector<CallbackHandle> callbacks = {};  ///< called in this order
};

}  // namespace tessera
