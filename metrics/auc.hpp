#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// The curve of an AUC: true over false positive rate, precision over recall, or precision gain
/// over recall gain (gains over always predicting positive).
enum class AUCCurve : uint8_t { roc, pr, prgain };
/// Height of the area between two thresholds: interpolated, or the smaller or the larger of the
/// curve's two values.
enum class AUCSummationMethod : uint8_t { interpolation, minoring, majoring };
/// Returns Keras' names of the curves, in the order of the enumerators.
inline std::array<const char*, 3> names_of(AUCCurve) { return {"ROC", "PR", "PRGAIN"}; }
/// Returns Keras' names of the summation methods, in the order of the enumerators.
inline std::array<const char*, 3> names_of(AUCSummationMethod) {
  return {"interpolation", "minoring", "majoring"};
}

/// The options of AUC.
struct AUCOptions {
  int64_t num_thresholds = 200;    ///< number of evenly spaced thresholds in [0, 1], at least 2
  AUCCurve curve = AUCCurve::roc;  ///< curve whose area is computed
  AUCSummationMethod summation_method = AUCSummationMethod::interpolation;  ///< height of each step
  std::string name = "auc";                                                 ///< name in logs
  /// Thresholds besides 0 and 1; override num_thresholds.
  std::vector<double> thresholds = {};
  bool multi_label = false;  ///< whether to average one area per label, of (batch, labels)
  /// Number of labels with multi_label (default: that of the first batch).
  std::optional<int64_t> num_labels = std::nullopt;
  std::vector<double> label_weights = {};  ///< weight of each label (default: all 1)
  bool from_logits = false;                ///< whether predictions are logits, not in [0, 1]
};

/// Area under a curve of confusion counts at thresholds (keras.metrics.AUC). result_values() has
/// the area of each label.
///
/// Shape: labels and predictions (batch, …), with multi_label (batch, labels) -> a number.
/// Communication: none until the result is read. Throws ConfigError for fewer than 2 thresholds,
/// for one outside [0, 1] and for num_labels without multi_label, ShapeError for other shapes.
///
///     AUC({.curve = AUCCurve::pr, .from_logits = true})
class AUC : public MetricHandle {
 public:
  explicit AUC(AUCOptions options = {});
};

}  // namespace tessera
