#pragma once

#include <optional>
#include <string>

#include <tessera/framework/nn/losses/loss.hpp>

namespace tessera {

/// The options of SparseCategoricalCrossentropy.
struct SparseCategoricalCrossentropyOptions {
  bool from_logits = false;  ///< whether predictions are logits (softmax is applied)
  /// Label whose samples have loss 0 and do not count in means; none: all samples count.
  std::optional<int64_t> ignore_class = std::nullopt;
  Reduction reduction = Reduction::sum_over_batch_size;  ///< reduction of the per-sample losses
  int64_t axis = -1;                                     ///< axis of the classes in predictions
  std::string name = "sparse_categorical_crossentropy";  ///< name in error messages
};

/// -log p[label] for integer labels (keras.losses.SparseCategoricalCrossentropy).
/// Probabilities are clipped to [1e-7, 1 - 1e-7] and scaled to sum to 1, as Keras on TensorFlow
/// does.
///
/// Shape: labels (batch, …) or (batch, …, 1), predictions (batch, …, classes) -> (batch, …).
/// Communication: none unless the class axis is sharded, then all-reduces of one element per
/// sample. Throws ShapeError for labels of other shapes, ConfigError for a label that is out of
/// range.
///
///     SparseCategoricalCrossentropy({.from_logits = true})
class SparseCategoricalCrossentropy : public LossHandle {
 public:
  explicit SparseCategoricalCrossentropy(SparseCategoricalCrossentropyOptions options = {});
};

/// The options of CategoricalCrossentropy.
struct CategoricalCrossentropyOptions {
  bool from_logits = false;    ///< whether predictions are logits (softmax is applied)
  double label_smoothing = 0;  ///< s in [0, 1]: labels become y (1 - s) + s / classes
  int64_t axis = -1;           ///< axis of the classes
  Reduction reduction = Reduction::sum_over_batch_size;  ///< reduction of the per-sample losses
  std::string name = "categorical_crossentropy";         ///< name in error messages
};

/// -sum(y log p) over the class axis, y a distribution such as one-hot labels
/// (keras.losses.CategoricalCrossentropy). Probabilities are scaled to sum to 1, then clipped to
/// [1e-7, 1 - 1e-7].
///
/// Shape: labels and predictions (batch, …, classes) -> (batch, …).
/// Throws ConfigError unless 0 <= label_smoothing <= 1, ShapeError if the shapes differ.
class CategoricalCrossentropy : public LossHandle {
 public:
  explicit CategoricalCrossentropy(CategoricalCrossentropyOptions options = {});
};

/// The options of BinaryCrossentropy.
struct BinaryCrossentropyOptions {
  bool from_logits = false;    ///< whether predictions are logits (sigmoid is applied)
  double label_smoothing = 0;  ///< s in [0, 1]: labels become y (1 - s) + s / 2
  int64_t axis = -1;           ///< axis of the mean
  Reduction reduction = Reduction::sum_over_batch_size;  ///< reduction of the per-sample losses
  std::string name = "binary_crossentropy";              ///< name in error messages
};

/// Mean over `axis` of -y log p - (1 - y) log(1 - p), labels y from 0 to 1
/// (keras.losses.BinaryCrossentropy). Probabilities are clipped to [1e-7, 1 - 1e-7].
///
/// Shape: labels and predictions (batch, …, n) -> (batch, …).
/// Throws ConfigError unless 0 <= label_smoothing <= 1, ShapeError if the shapes differ.
class BinaryCrossentropy : public LossHandle {
 public:
  explicit BinaryCrossentropy(BinaryCrossentropyOptions options = {});
};

/// sum(y log(y / p)) over the last axis, y and p clipped to [1e-7, 1] (keras.losses.KLDivergence;
/// Kullback and Leibler, 1951).
///
/// Shape: labels and predictions (batch, …, classes) -> (batch, …).
class KLDivergence : public LossHandle {
 public:
  explicit KLDivergence(LossOptions options = {});
};

/// Mean over the last axis of p - y log(p + 1e-7) (keras.losses.Poisson).
///
/// Shape: labels and predictions (batch, …, n) -> (batch, …).
class Poisson : public LossHandle {
 public:
  explicit Poisson(LossOptions options = {});
};

}  // namespace tessera
