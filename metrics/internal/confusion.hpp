#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/nn/metric.hpp>

namespace tessera::detail {

/// Weighted counts of right and wrong positives and negatives.
struct Confusion {
  double true_positives = 0;
  double false_positives = 0;
  double true_negatives = 0;
  double false_negatives = 0;
};

/// What a ConfusionMetric counts.
struct ConfusionOptions {
  std::vector<double> thresholds = {};             ///< a prediction above one is positive there
  std::optional<int64_t> top_k = std::nullopt;     ///< only the k largest of a sample's predictions
  std::optional<int64_t> class_id = std::nullopt;  ///< only this index of the last axis
  bool multi_label = false;  ///< counts of their own for each index of the second of two axes
  std::vector<double> label_weights = {};  ///< weights of the last axis
  bool from_logits = false;
};

/// Base of the metrics made of confusion counts at thresholds (Keras'
/// update_confusion_matrix_variables). Totals: for each label and number of thresholds that a
/// prediction exceeds, the weights of negative and of positive samples. Predictions are compared in
/// float32.
class ConfusionMetric : public Metric {
 public:
  using Metric::result;
  using Metric::result_values;
  std::string class_name() const override { return class_name_; }
  Json config() const override { return config_; }
  bool can_be_replayed() const override { return true; }
  void update(const DTensor& y_true, const DTensor& y_pred,
              const DTensor& sample_weight = {}) override;
  void check_totals(size_t count) const override;
  /// The mean of result_values().
  double result(const std::vector<double>& totals) const override;

 protected:
  /// `config` is that of the metric, with its name. Throws ConfigError.
  ConfusionMetric(const char* class_name, Json config, ConfusionOptions options);
  /// Counts at every threshold, in the order given, of one label after the other.
  std::vector<std::vector<Confusion>> counts(const std::vector<double>& totals) const;

 private:
  void check(const Shape& labels, const Shape& predictions) const;
  DTensor weights(const DTensor& labels, const DTensor& sample_weight) const;
  DTensor exceeded(const DTensor& predictions) const;

  const char* class_name_;
  Json config_;
  ConfusionOptions options_;
  std::vector<double> sorted_;
  bool even_ = false;   ///< thresholds at i / (n - 1), but for a margin at both ends
  int64_t labels_ = 0;  ///< 0: not known yet
};

/// Throws ConfigError naming the metric unless all thresholds lie in [0, 1].
void check_thresholds(const std::string& name, const std::vector<double>& thresholds);

/// a / b, 0 where b is 0 (Keras' divide_no_nan).
inline double ratio(double a, double b) { return b == 0 ? 0 : a / b; }

}  // namespace tessera::detail
