#pragma once

#include <string>
#include <vector>

#include <tessera/framework/nn/losses/loss.hpp>

namespace tessera {

/// The options of BinaryFocalCrossentropy.
struct BinaryFocalCrossentropyOptions {
  bool apply_class_balancing = false;  ///< whether to weight by y alpha + (1 - y) (1 - alpha)
  double alpha = 0.25;                 ///< weight of label 1, with apply_class_balancing
  double gamma = 2;                    ///< down-weighting of samples with a probable label; 0: none
  bool from_logits = false;            ///< whether predictions are logits (sigmoid is applied)
  double label_smoothing = 0;          ///< s in [0, 1]: labels become y (1 - s) + s / 2
  int64_t axis = -1;                   ///< axis of the mean
  Reduction reduction = Reduction::sum_over_batch_size;  ///< reduction of the per-sample losses
  std::string name = "binary_focal_crossentropy";        ///< name in error messages
};

/// Mean over `axis` of the binary cross-entropy times (1 - q)^gamma, where q = y p + (1 - y)(1 - p)
/// is the probability of the label (keras.losses.BinaryFocalCrossentropy; Lin et al., 2018).
/// Probabilities p are clipped to [1e-7, 1 - 1e-7] in the cross-entropy.
///
/// Shape: labels and predictions (batch, …, n) -> (batch, …).
/// Throws ConfigError unless 0 <= label_smoothing <= 1, ShapeError if the shapes differ.
class BinaryFocalCrossentropy : public LossHandle {
 public:
  explicit BinaryFocalCrossentropy(BinaryFocalCrossentropyOptions options = {});
};

/// The options of CategoricalFocalCrossentropy.
struct CategoricalFocalCrossentropyOptions {
  std::vector<double> alpha = {0.25};  ///< one weight, or one for each class along `axis`
  double gamma = 2;                    ///< down-weighting of samples with a probable label; 0: none
  bool from_logits = false;            ///< whether predictions are logits (softmax is applied)
  double label_smoothing = 0;          ///< s in [0, 1]: labels become y (1 - s) + s / classes
  int64_t axis = -1;                   ///< axis of the classes
  Reduction reduction = Reduction::sum_over_batch_size;  ///< reduction of the per-sample losses
  std::string name = "categorical_focal_crossentropy";   ///< name in error messages
};

/// -sum(alpha (1 - p)^gamma y log p) over the class axis
/// (keras.losses.CategoricalFocalCrossentropy; Lin et al., 2018). Probabilities are scaled to sum
/// to 1, then clipped to [1e-7, 1 - 1e-7].
///
/// Shape: labels and predictions (batch, …, classes) -> (batch, …).
/// Throws ConfigError unless 0 <= label_smoothing <= 1 and alpha is not empty, ShapeError if the
/// shapes differ or the number of alphas is neither 1 nor that of classes.
class CategoricalFocalCrossentropy : public LossHandle {
 public:
  explicit CategoricalFocalCrossentropy(CategoricalFocalCrossentropyOptions options = {});
};

/// The options of CategoricalGeneralizedCrossEntropy.
struct CategoricalGeneralizedCrossEntropyOptions {
  double q = 0.5;  ///< approaches the cross-entropy at 0, the mean absolute error at 1
  Reduction reduction = Reduction::sum_over_batch_size;  ///< reduction of the per-sample losses
  std::string name = "categorical_generalized_cross_entropy";  ///< name in error messages
};

/// (1 - p[label]^q) / q, more robust to label noise than the cross-entropy
/// (keras.losses.CategoricalGeneralizedCrossEntropy; Zhang and Sabuncu, 2018). A label that is out
/// of range has p = 0.
///
/// Shape: labels (batch, …) or (batch, …, 1), probabilities (batch, …, classes) -> (batch, …).
/// Throws ConfigError unless 0 < q < 1, ShapeError for labels of other shapes.
class CategoricalGeneralizedCrossEntropy : public LossHandle {
 public:
  explicit CategoricalGeneralizedCrossEntropy(
      CategoricalGeneralizedCrossEntropyOptions options = {});
};

}  // namespace tessera
