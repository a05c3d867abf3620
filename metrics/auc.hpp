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
/// Keras' names, in the order of the enumerators.
inline std::array<const char*, 3> names_of(AUCCurve) { return {"ROC", "PR", "PRGAIN"}; }
inline std::array<const char*, 3> names_of(AUCSummationMethod) {
  return {"interpolation", "minoring", "majoring"};
}

struct AUCOptions {
  int64_t num_thresholds = 200;
  AUCCurve curve = AUCCurve::roc;
  AUCSummationMethod summation_method = AUCSummationMethod::interpolation;
  std::string name = "auc";
  std::vector<double> thresholds = {};  ///< instead of num_thresholds even ones, without 0 and 1
  bool multi_label = false;             ///< the mean of an area for each label (batch, labels)
  std::optional<int64_t> num_labels = std::nullopt;
  std::vector<double> label_weights = {};
  bool from_logits = false;
};
template <class Visit>
void fields(AUCOptions& o, Visit visit) {
  visit("num_thresholds", o.num_thresholds);
  visit("curve", o.curve);
  visit("summation_method", o.summation_method);
  visit("name", o.name);
  visit("thresholds", o.thresholds);
  visit("multi_label", o.multi_label);
  visit("num_labels", o.num_labels);
  visit("label_weights", o.label_weights);
  visit("from_logits", o.from_logits);
}

/// Area under a curve of confusion counts at thresholds, of predictions in [0, 1], or logits
/// (keras.metrics.AUC). With multi_label result_values() has the area of each label. Throws
/// ConfigError for fewer than 2 thresholds, for one outside [0, 1] and for num_labels without
/// multi_label.
class AUC : public MetricHandle {
 public:
  explicit AUC(AUCOptions options = {});
};

}  // namespace tessera
