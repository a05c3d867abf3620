#pragma once

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <vector>

#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/optimizer/internal/gradient_reducer.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>
#include <tessera/framework/training/callbacks/callback.hpp>
#include <tessera/framework/training/per_output.hpp>

namespace tessera {

/// Arguments of keras.Model.compile, and where things lie.
struct CompileOptions {
  OptimizerHandle optimizer = {};  ///< what changes the weights; empty: the model only predicts
  /// What training makes smaller, one for all outputs or one for each; an output without one adds
  /// nothing.
  detail::PerOutput<detail::LossChoice> loss = {};
  /// Factors of the outputs' losses in the sum that training makes smaller; absent: 1.
  detail::PerOutput<double> loss_weights = {};
  /// What is reported beside the loss, without sample weights, as Keras has it.
  detail::MetricsChoice metrics = {};
  /// What is reported beside the loss, with sample weights.
  detail::MetricsChoice weighted_metrics = {};
  /// Makes every step by the code of the model, for debugging: nothing is recorded and replayed.
  bool run_eagerly = false;
  /// Whether a model in "mixed_float16" trains with a LossScaleOptimizer around the optimizer,
  /// without which its small gradients are lost.
  bool auto_scale_loss = true;
  /// Whether a training step is recorded and replayed while shapes and layouts stay the same (as a
  /// tf.function). Absent: the stock train_step() over layers, losses, metrics and regularizers
  /// that can_be_replayed(), as Tessera's own. True: also code of the program's own, of which only
  /// operations and what add_loss(), assign() and metrics do is replayed: numbers that it computes
  /// itself become constants. Reading a value on the host or making a Variable in a step ends the
  /// recording, and steps stay eager.
  std::optional<bool> record_steps = std::nullopt;
  /// Where weights and batches lie. Undefined: replicated over `mesh`.
  LayoutMap layouts = {};
  /// The devices to train on, needed only without `layouts`. Undefined: default_mesh().
  Mesh mesh = {};
  /// Megabytes of gradients that processes reduce at once while the backward pass goes on
  /// (DistributedDataParallel's bucket_cap_mb); 0: each variable's by itself. The same on every
  /// process.
  double bucket_cap_mb = detail::default_bucket_cap_mb;
};

/// After which epochs fit validates: every so many, or those numbered, counted from 1.
class ValidationFreq {
 public:
  ValidationFreq(int64_t every = 1) : every_(every) {}                        // NOLINT
  ValidationFreq(std::initializer_list<int64_t> epochs) : epochs_(epochs) {}  // NOLINT
  /// `epoch` counts from 0.
  bool due(int64_t epoch) const {
    if (epochs_.empty()) return (epoch + 1) % every_ == 0;
    return std::find(epochs_.begin(), epochs_.end(), epoch + 1) != epochs_.end();
  }
  /// 1 unless it was made of a number.
  int64_t every() const { return every_; }

 private:
  int64_t every_ = 1;
  std::vector<int64_t> epochs_;
};

namespace detail {

/// Weight of each class in the loss; 1 for a class that is not named.
using ClassWeight = std::map<int64_t, double>;

}  // namespace detail

/// Arguments of keras.Model.fit.
struct FitOptions {
  int64_t batch_size = 32;  ///< rows of a global batch; a stream has batches of its own
  int64_t epochs = 1;       ///< how many in all, those before `initial_epoch` counted too
  int verbose = 1;          ///< 0 silent, 1 bar, 2 a line an epoch
  std::vector<CallbackHandle> callbacks = {};  ///< told of the run, in this order
  /// The last part of the rows, before they are shuffled, that is validated with instead of trained
  /// on: in [0, 1).
  double validation_split = 0;
  /// What is validated with, in place of `validation_split`; empty: what that leaves, if any.
  DatasetHandle validation_data = {};
  /// Whether rows come in an order that follows from the seed and the number of the epoch: a second
  /// fit begins with the first one's order again, unless `initial_epoch` goes on counting.
  bool shuffle = true;
  /// A weight for the rows of each class, for one output with labels of class numbers or one-hot.
  detail::ClassWeight class_weight = {};
  /// A weight for every row, for data without.
  at::Tensor sample_weight = {};
  int64_t initial_epoch = 0;  ///< the epoch to begin with, counted from 0
  /// Batches of every epoch at most, which begins anew; absent: all.
  std::optional<int64_t> steps_per_epoch = std::nullopt;
  /// Batches of every validation at most; absent: all.
  std::optional<int64_t> validation_steps = std::nullopt;
  /// Rows of a global batch in validation; absent: `batch_size`.
  std::optional<int64_t> validation_batch_size = std::nullopt;
  ValidationFreq validation_freq = 1;  ///< epochs from one validation to the next, or their numbers
};

/// Arguments of keras.Model.evaluate.
struct EvaluateOptions {
  int64_t batch_size = 32;        ///< rows of a global batch; a stream has batches of its own
  int verbose = 1;                ///< 0 silent, 1 bar, 2 one line
  at::Tensor sample_weight = {};  ///< a weight for every row, for data without
  std::optional<int64_t> steps = std::nullopt;  ///< batches at most; absent: all
  std::vector<CallbackHandle> callbacks = {};   ///< told of the run, in this order
};

/// Arguments of keras.Model.predict.
struct PredictOptions {
  int64_t batch_size = 32;  ///< rows of a global batch; a stream has batches of its own
  int verbose = 0;          ///< 0 silent, 1 bar, 2 one line
  std::optional<int64_t> steps = std::nullopt;  ///< batches at most; absent: all
  std::vector<CallbackHandle> callbacks = {};   ///< told of the run, in this order
};

}  // namespace tessera
