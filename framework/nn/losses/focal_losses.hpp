#pragma once

#include <string>
#include <vector>

#include <tessera/framework/nn/losses/loss.hpp>

namespace tessera {

/// The options of BinaryFocalCrossentropy.
struct BinaryFocalCrossentropyOptions {
  bool apply_class_balancing = false;  ///< weighs labels y by y alpha + (1 - y) (1 - alpha)
  double alpha = 0.25;                 ///< weight of label 1 where classes are balanced
  double gamma = 2;            ///< how much less samples count whose label is probable; 0: not
  bool from_logits = false;    ///< predictions are logits, which sigmoid makes probabilities
  double label_smoothing = 0;  ///< s in [0, 1]: labels become y (1 - s) + s / 2
  int64_t axis = -1;           ///< axis over which the mean is taken
  Reduction reduction = Reduction::sum_over_batch_size;  ///< how losses become one number
  std::string name = "binary_focal_crossentropy";        ///< what errors call the loss
};

/// Mean over `axis` of the binary cross-entropy times (1 - q)^gamma, where q = y p + (1 - y)(1 - p)
/// is the probability of the label (keras.losses.BinaryFocalCrossentropy; Lin et al., 2018).
/// Probabilities p are cut to [1e-7, 1 - 1e-7] in the cross-entropy.
///
/// Shape: labels and predictions (batch, …, n) -> (batch, …).
/// Throws ConfigError unless 0 <= label_smoothing <= 1, ShapeError for two shapes.
class BinaryFocalCrossentropy : public LossHandle {
 public:
  explicit BinaryFocalCrossentropy(BinaryFocalCrossentropyOptions options = {});
};

/// The options of CategoricalFocalCrossentropy.
struct CategoricalFocalCrossentropyOptions {
  std::vector<double> alpha = {0.25};  ///< one number, or one for each class of the last axis
  double gamma = 2;            ///< how much less samples count whose label is probable; 0: not
  bool from_logits = false;    ///< predictions are logits, which softmax makes probabilities
  double label_smoothing = 0;  ///< s in [0, 1]: labels become y (1 - s) + s / classes
  int64_t axis = -1;           ///< axis of the classes
  Reduction reduction = Reduction::sum_over_batch_size;  ///< how losses become one number
  std::string name = "categorical_focal_crossentropy";   ///< what errors call the loss
};

/// -sum(alpha (1 - p)^gamma y log p) over the class axis
/// (keras.losses.CategoricalFocalCrossentropy; Lin et al., 2018). Probabilities are scaled to sum
/// to 1, then cut to [1e-7, 1 - 1e-7].
///
/// Shape: labels and predictions (batch, …, classes) -> (batch, …).
/// Throws ConfigError unless 0 <= label_smoothing <= 1 and there is an alpha, ShapeError for two
/// shapes and for alphas that are not as many as the classes.
class CategoricalFocalCrossentropy : public LossHandle {
 public:
  explicit CategoricalFocalCrossentropy(CategoricalFocalCrossentropyOptions options = {});
};

/// The options of CategoricalGeneralizedCrossEntropy.
struct CategoricalGeneralizedCrossEntropyOptions {
  double q = 0.5;  ///< towards 0 the cross-entropy, towards 1 the mean absolute error
  Reduction reduction = Reduction::sum_over_batch_size;        ///< how losses become one number
  std::string name = "categorical_generalized_cross_entropy";  ///< what errors call the loss
};

/// (1 - p[label]^q) / q, which wrong labels disturb less than the cross-entropy
/// (keras.losses.CategoricalGeneralizedCrossEntropy; Zhang and Sabuncu, 2018). Of a label that is
/// no class p is 0.
///
/// Shape: labels (batch, …) or (batch, …, 1), probabilities (batch, …, classes) -> (batch, …).
/// Throws ConfigError unless 0 < q < 1, ShapeError for labels of other shapes.
class CategoricalGeneralizedCrossEntropy : public LossHandle {
 public:
  explicit CategoricalGeneralizedCrossEntropy(
      CategoricalGeneralizedCrossEntropyOptions options = {});
};

}  // namespace tessera
