#pragma once

#include <string>

#include <tessera/framework/nn/loss.hpp>

namespace tessera {

/// The loss of a Keras name, "sparse_categorical_crossentropy", "mse", or class name, with its
/// defaults. Throws ConfigError naming the nearest one.
LossRef make_loss(const std::string& name);

struct SparseCategoricalCrossentropyOptions {
  bool from_logits = false;
  Reduction reduction = Reduction::sum_over_batch_size;
  std::string name = "sparse_categorical_crossentropy";
};

/// -log p[label] of whole-number labels (…) or (…, 1) and predictions (…, classes)
/// (keras.losses.SparseCategoricalCrossentropy). Probabilities are cut to [1e-7, 1 - 1e-7] and
/// scaled to sum to 1, as Keras on TensorFlow does. The class axis may be sharded.
class SparseCategoricalCrossentropy : public LossRef {
 public:
  explicit SparseCategoricalCrossentropy(SparseCategoricalCrossentropyOptions options = {});
};

struct CategoricalCrossentropyOptions {
  bool from_logits = false;
  double label_smoothing = 0;
  int64_t axis = -1;
  Reduction reduction = Reduction::sum_over_batch_size;
  std::string name = "categorical_crossentropy";
};

/// -sum(y log p) over the class axis, y a distribution such as one-hot labels, smoothed to
/// y (1 - s) + s / classes (keras.losses.CategoricalCrossentropy). Probabilities are scaled to sum
/// to 1, then cut to [1e-7, 1 - 1e-7]. Throws ConfigError unless 0 <= label_smoothing <= 1.
class CategoricalCrossentropy : public LossRef {
 public:
  explicit CategoricalCrossentropy(CategoricalCrossentropyOptions options = {});
};

struct BinaryCrossentropyOptions {
  bool from_logits = false;
  double label_smoothing = 0;
  Reduction reduction = Reduction::sum_over_batch_size;
  std::string name = "binary_crossentropy";
};

/// Mean over the last axis of -y log p - (1 - y) log(1 - p), y smoothed to y (1 - s) + s / 2
/// (keras.losses.BinaryCrossentropy). Probabilities are cut to [1e-7, 1 - 1e-7]. Throws ConfigError
/// unless 0 <= label_smoothing <= 1.
class BinaryCrossentropy : public LossRef {
 public:
  explicit BinaryCrossentropy(BinaryCrossentropyOptions options = {});
};

struct MeanSquaredErrorOptions {
  Reduction reduction = Reduction::sum_over_batch_size;
  std::string name = "mean_squared_error";
};

/// Mean over the last axis of (y_true - y_pred)² (keras.losses.MeanSquaredError).
class MeanSquaredError : public LossRef {
 public:
  explicit MeanSquaredError(MeanSquaredErrorOptions options = {});
};

}  // namespace tessera
