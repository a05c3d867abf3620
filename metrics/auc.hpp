#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// The curve under which AUC measures the area: true over false positive rate, precision over
/// recall, or both as gains over always saying yes.
enum class AUCCurve : uint8_t { roc, pr, prgain };
/// The height of the area between two thresholds: what lies between, or the curve's smaller or
/// larger value.
enum class AUCSummationMethod : uint8_t { interpolation, minoring, majoring };
/// Keras' names of the curves, in the order of the enumerators.
inline std::array<const char*, 3> names_of(AUCCurve) { return {"ROC", "PR", "PRGAIN"}; }
/// Keras' names of the summation methods, in the order of the enumerators.
inline std::array<const char*, 3> names_of(AUCSummationMethod) {
  return {"interpolation", "minoring", "majoring"};
}

/// The options of AUC.
struct AUCOptions {
  int64_t num_thresholds = 200;    ///< even thresholds in [0, 1], at least 2
  AUCCurve curve = AUCCurve::roc;  ///< what the area lies under
  AUCSummationMethod summation_method = AUCSummationMethod::interpolation;  ///< how it is summed
  std::string name = "auc";             ///< what logs call the metric
  std::vector<double> thresholds = {};  ///< instead of num_thresholds even ones, without 0 and 1
  bool multi_label = false;             ///< the mean of an area for each label (batch, labels)
  std::optional<int64_t> num_labels = std::nullopt;  ///< labels of multi_label; none: as they come
  std::vector<double> label_weights = {};            ///< weight of each label; empty: all 1
  bool from_logits = false;                          ///< predictions are logits, not in [0, 1]
};

/// Area under a curve of confusion counts at thresholds (keras.metrics.AUC), with
/// result_values() the area of each label.
///
/// Shape: labels and predictions (batch, …), with multi_label (batch, labels) -> a number.
/// Communication: none until it is read. Throws ConfigError for fewer than 2 thresholds, for one
/// outside [0, 1] and for num_labels without multi_label, ShapeError for other labels.
///
///     AUC({.curve = AUCCurve::pr, .from_logits = true})
class AUC : public MetricHandle {
 public:
  explicit AUC(AUCOptions options = {});
};

}  // namespace tessera
