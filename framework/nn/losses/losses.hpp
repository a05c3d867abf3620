#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/losses/loss.hpp>

namespace tessera {

/// The loss of a Keras name, "sparse_categorical_crossentropy", "mse", or class name, with its
/// defaults. Throws ConfigError naming the nearest one.
LossHandle make_loss(const std::string& name);
/// With these options by Keras' keys, as config() gives them. Throws ConfigError, for an unknown
/// key naming the nearest one.
LossHandle make_loss(const std::string& name, const JsonObject& options);
/// {"class_name": "Huber", "config": {"delta": 2}}, as serialized() gives it, or a name alone, as a
/// loss (keras.losses.deserialize). Throws ConfigError naming the place, which begins with `where`.
LossHandle loss_from_config(const Json& json, const std::string& where = "loss");
/// Every name that make_loss knows, sorted.
std::vector<std::string> loss_names();

/// Options of the losses that have none of their own.
struct LossOptions {
  Reduction reduction = Reduction::sum_over_batch_size;
  std::string name = "";  ///< empty: the class's in snake_case
};

struct SparseCategoricalCrossentropyOptions {
  bool from_logits = false;
  std::optional<int64_t> ignore_class = std::nullopt;
  Reduction reduction = Reduction::sum_over_batch_size;
  int64_t axis = -1;
  std::string name = "sparse_categorical_crossentropy";
};

/// -log p[label] of whole-number labels (…) or (…, 1) and predictions (…, classes), classes along
/// `axis` (keras.losses.SparseCategoricalCrossentropy). Probabilities are cut to [1e-7, 1 - 1e-7]
/// and scaled to sum to 1, as Keras on TensorFlow does. Samples of label `ignore_class` have loss 0
/// and do not count in a mean. The class axis may be sharded.
class SparseCategoricalCrossentropy : public LossHandle {
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
class CategoricalCrossentropy : public LossHandle {
 public:
  explicit CategoricalCrossentropy(CategoricalCrossentropyOptions options = {});
};

struct BinaryCrossentropyOptions {
  bool from_logits = false;
  double label_smoothing = 0;
  int64_t axis = -1;
  Reduction reduction = Reduction::sum_over_batch_size;
  std::string name = "binary_crossentropy";
};

/// Mean over `axis` of -y log p - (1 - y) log(1 - p), y smoothed to y (1 - s) + s / 2
/// (keras.losses.BinaryCrossentropy). Probabilities are cut to [1e-7, 1 - 1e-7]. Throws ConfigError
/// unless 0 <= label_smoothing <= 1.
class BinaryCrossentropy : public LossHandle {
 public:
  explicit BinaryCrossentropy(BinaryCrossentropyOptions options = {});
};

struct BinaryFocalCrossentropyOptions {
  bool apply_class_balancing = false;  ///< weights labels y by y alpha + (1 - y) (1 - alpha)
  double alpha = 0.25;
  double gamma = 2;
  bool from_logits = false;
  double label_smoothing = 0;
  int64_t axis = -1;
  Reduction reduction = Reduction::sum_over_batch_size;
  std::string name = "binary_focal_crossentropy";
};

/// Mean over `axis` of the binary cross-entropy times (1 - q)^gamma, where q = y p + (1 - y)(1 - p)
/// is the probability of the label (keras.losses.BinaryFocalCrossentropy; Lin, 2018). Labels and
/// probabilities as of BinaryCrossentropy. Throws ConfigError unless 0 <= label_smoothing <= 1.
class BinaryFocalCrossentropy : public LossHandle {
 public:
  explicit BinaryFocalCrossentropy(BinaryFocalCrossentropyOptions options = {});
};

struct CategoricalFocalCrossentropyOptions {
  std::vector<double> alpha = {0.25};  ///< one number, or one for each class of the last axis
  double gamma = 2;
  bool from_logits = false;
  double label_smoothing = 0;
  int64_t axis = -1;
  Reduction reduction = Reduction::sum_over_batch_size;
  std::string name = "categorical_focal_crossentropy";
};

/// -sum(alpha (1 - p)^gamma y log p) over the class axis
/// (keras.losses.CategoricalFocalCrossentropy; Lin, 2018). Labels and probabilities as of
/// CategoricalCrossentropy. Throws ConfigError unless 0 <= label_smoothing <= 1 and there is an
/// alpha.
class CategoricalFocalCrossentropy : public LossHandle {
 public:
  explicit CategoricalFocalCrossentropy(CategoricalFocalCrossentropyOptions options = {});
};

struct CategoricalGeneralizedCrossEntropyOptions {
  double q = 0.5;  ///< towards 0 the cross-entropy, towards 1 the mean absolute error
  Reduction reduction = Reduction::sum_over_batch_size;
  std::string name = "categorical_generalized_cross_entropy";
};

/// (1 - p[label]^q) / q of whole-number labels (…) or (…, 1) and probabilities (…, classes), which
/// wrong labels disturb less (keras.losses.CategoricalGeneralizedCrossEntropy; Zhang, 2018). Of a
/// label that is no class p is 0. Throws ConfigError unless 0 < q < 1.
class CategoricalGeneralizedCrossEntropy : public LossHandle {
 public:
  explicit CategoricalGeneralizedCrossEntropy(
      CategoricalGeneralizedCrossEntropyOptions options = {});
};

/// sum(y log(y / p)) over the last axis, both cut to [1e-7, 1] (keras.losses.KLDivergence).
class KLDivergence : public LossHandle {
 public:
  explicit KLDivergence(LossOptions options = {});
};

/// Mean over the last axis of p - y log(p + 1e-7) (keras.losses.Poisson).
class Poisson : public LossHandle {
 public:
  explicit Poisson(LossOptions options = {});
};

/// Mean over the last axis of (y_true - y_pred)² (keras.losses.MeanSquaredError).
class MeanSquaredError : public LossHandle {
 public:
  explicit MeanSquaredError(LossOptions options = {});
};

/// Mean over the last axis of |y_true - y_pred| (keras.losses.MeanAbsoluteError).
class MeanAbsoluteError : public LossHandle {
 public:
  explicit MeanAbsoluteError(LossOptions options = {});
};

/// 100 times the mean over the last axis of |y_true - y_pred| / max(|y_true|, 1e-7)
/// (keras.losses.MeanAbsolutePercentageError).
class MeanAbsolutePercentageError : public LossHandle {
 public:
  explicit MeanAbsolutePercentageError(LossOptions options = {});
};

/// Mean over the last axis of (log(y_true + 1) - log(y_pred + 1))², both first raised to at least
/// 1e-7 (keras.losses.MeanSquaredLogarithmicError).
class MeanSquaredLogarithmicError : public LossHandle {
 public:
  explicit MeanSquaredLogarithmicError(LossOptions options = {});
};

/// Mean over the last axis of log(cosh(y_pred - y_true)), without overflow (keras.losses.LogCosh).
class LogCosh : public LossHandle {
 public:
  explicit LogCosh(LossOptions options = {});
};

struct HuberOptions {
  double delta = 1;
  Reduction reduction = Reduction::sum_over_batch_size;
  std::string name = "huber_loss";
};

/// Mean over the last axis of e² / 2 for an error |e| <= delta, else delta |e| - delta² / 2
/// (keras.losses.Huber).
class Huber : public LossHandle {
 public:
  explicit Huber(HuberOptions options = {});
};

struct CosineSimilarityOptions {
  int64_t axis = -1;
  Reduction reduction = Reduction::sum_over_batch_size;
  std::string name = "cosine_similarity";
};

/// Minus the cosine of the angle between labels and predictions as vectors along `axis`, -1 for one
/// direction (keras.losses.CosineSimilarity). A vector shorter than 1e-7 is scaled by 1e7 only.
class CosineSimilarity : public LossHandle {
 public:
  explicit CosineSimilarity(CosineSimilarityOptions options = {});
};

/// Mean over the last axis of max(1 - y p, 0), labels -1 and 1 (keras.losses.Hinge). If all labels
/// of the batch are 0 or 1, 0 means -1; finding that out costs an all-reduce of one truth value.
class Hinge : public LossHandle {
 public:
  explicit Hinge(LossOptions options = {});
};

/// Mean over the last axis of max(1 - y p, 0)²; labels as for Hinge (keras.losses.SquaredHinge).
class SquaredHinge : public LossHandle {
 public:
  explicit SquaredHinge(LossOptions options = {});
};

/// max(max((1 - y) p) - sum(y p) + 1, 0) over the last axis, labels one-hot
/// (keras.losses.CategoricalHinge).
class CategoricalHinge : public LossHandle {
 public:
  explicit CategoricalHinge(LossOptions options = {});
};

struct DiceOptions {
  Reduction reduction = Reduction::sum_over_batch_size;
  std::string name = "dice";
  std::vector<int64_t> axis = {};  ///< summed over; empty: all, the batch's too
};

/// 1 - 2 sum(y p) / (sum(y) + sum(p) + 1e-7), for segments of images (keras.losses.Dice).
class Dice : public LossHandle {
 public:
  explicit Dice(DiceOptions options = {});
};

struct TverskyOptions {
  double alpha = 0.5;  ///< weighs y (1 - p)
  double beta = 0.5;   ///< weighs p (1 - y)
  Reduction reduction = Reduction::sum_over_batch_size;
  std::string name = "tversky";
  std::vector<int64_t> axis = {};  ///< summed over; empty: all, the batch's too
};

/// 1 - s / (s + alpha sum(y (1 - p)) + beta sum(p (1 - y)) + 1e-7) with s = sum(y p)
/// (keras.losses.Tversky; Salehi, 2017).
class Tversky : public LossHandle {
 public:
  explicit Tversky(TverskyOptions options = {});
};

struct CircleOptions {
  double gamma = 80;
  double margin = 0.4;
  bool remove_diagonal = true;  ///< a sample is no match of itself
  Reduction reduction = Reduction::sum_over_batch_size;
  std::string name = "circle";
};

/// For each sample, softplus(log sum exp over its matches + log sum exp over the others) of how far
/// cosine similarities are from where they should be, times gamma (keras.losses.Circle; Sun, 2020):
/// whole-number labels (n,), embeddings (n, d) of length 1. Losses of 0 do not count in a mean. A
/// batch that is cut is gathered for the similarities.
class Circle : public LossHandle {
 public:
  explicit Circle(CircleOptions options = {});
};

/// -log of the probability of a label sequence under all its alignments (keras.losses.CTC; Graves,
/// 2006): labels (n, length), classes from 1 on with 0 behind their ends, and logits
/// (n, steps, classes), where class 0 is the blank. No communication where only the batch is cut.
class CTC : public LossHandle {
 public:
  explicit CTC(LossOptions options = {});
};

}  // namespace tessera
