#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/nn/metric.hpp>

namespace tessera::detail {

/// Weighted counts of true and false positives and negatives.
struct Confusion {
  double true_positives = 0;
  double false_positives = 0;
  double true_negatives = 0;
  double false_negatives = 0;
};

/// The options of ConfusionMetric.
struct ConfusionOptions {
  std::vector<double> thresholds = {};  ///< predictions above one are positive at that threshold
  std::optional<int64_t> top_k = std::nullopt;     ///< only the k largest predictions are positive
  std::optional<int64_t> class_id = std::nullopt;  ///< counts only this index of the last axis
  bool multi_label = false;                ///< whether each label of (batch, labels) has own counts
  std::vector<double> label_weights = {};  ///< weight of each index of the last axis
  bool from_logits = false;
};

/// Base of the metrics computed from confusion counts at thresholds (Keras'
/// update_confusion_matrix_variables). Totals: for each label and each number of exceeded
/// thresholds, the total weight of negative and of positive samples. Predictions are compared in
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
  /// Returns the mean of result_values().
  double result(const std::vector<double>& totals) const override;

 protected:
  /// `config` is the metric's configuration, including its name. Throws ConfigError.
  ConfusionMetric(const char* class_name, Json config, ConfusionOptions options);
  /// Returns the counts by label and threshold, the thresholds in the order of the options.
  std::vector<std::vector<Confusion>> counts(const std::vector<double>& totals) const;

 private:
  void check(const Shape& labels, const Shape& predictions) const;
  DTensor weights(const DTensor& labels, const DTensor& sample_weight) const;
  DTensor exceeded(const DTensor& predictions) const;

  const char* class_name_;
  Json config_;
  ConfusionOptions options_;
  std::vector<double> sorted_;
  bool even_ = false;   ///< whether the thresholds are i / (n - 1), within a tolerance
  int64_t labels_ = 0;  ///< 0: not known yet
};

/// Throws ConfigError naming the metric unless all thresholds are in [0, 1].
void check_thresholds(const std::string& name, const std::vector<double>& thresholds);

/// Returns a / b, or 0 if b is 0 (Keras' divide_no_nan).
inline double ratio(double a, double b) { return b == 0 ? 0 : a / b; }

}  // namespace tessera::detail
