#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// Base of the metrics that average one value per sample. Totals: the weighted sum, the sum of
/// weights.
class MeanMetric : public Metric {
 public:
  using Metric::result;
  void update(const DTensor& y_true, const DTensor& y_pred,
              const DTensor& sample_weight = {}) override;
  double result(const std::vector<double>& totals) const override;
  void check_totals(size_t count) const override { check_count(count == 2, "2", count); }
  Json config() const override { return {{"name", name()}}; }

  /// Adds values as Keras does: averages over the axes that `sample_weight` lacks, applies the
  /// weights, and averages over all axes but the first.
  void add_values(const DTensor& values, const DTensor& sample_weight = {});
  /// Adds one number that is the mean of `weight` samples, such as a batch's loss.
  void add_value(const DTensor& value, double weight);

 protected:
  using Metric::Metric;
  /// Returns the value of each sample, of any dtype.
  virtual DTensor values(const DTensor& y_true, const DTensor& y_pred) const = 0;
};

/// Mean of a function of labels and predictions that returns one value per sample
/// (keras.metrics.MeanMetricWrapper).
class MeanMetricWrapper : public MeanMetric {
 public:
  using Function = std::function<DTensor(const DTensor& y_true, const DTensor& y_pred)>;
  /// `config` is the metric's configuration, including its name.
  MeanMetricWrapper(const char* class_name, Json config, Function function);
  std::string class_name() const override { return class_name_; }
  Json config() const override { return config_; }

 protected:
  DTensor values(const DTensor& y_true, const DTensor& y_pred) const override;

 private:
  const char* class_name_;
  Json config_;
  Function function_;
};

/// Weighted mean of its input values (keras.metrics.Mean).
///
/// Shape: values (batch, …), sample weights with leading axes of that shape -> a number.
/// Communication: none until the result is read.
class Mean : public MetricHandle {
 public:
  explicit Mean(MetricOptions options = {});
  /// Adds values: averages over the axes that `sample_weight` lacks, applies the weights, and
  /// averages over all axes but the first.
  void update(const DTensor& values, const DTensor& sample_weight = {}) const;
  /// Adds one number that is the mean of `weight` samples, such as a batch's loss.
  void update(const DTensor& value, double weight) const;
  /// Returns the mean of all values so far, 0 if there are none. Collective.
  double result() const { return get()->result(); }
  /// Forgets all values.
  void reset() const { get()->reset(); }
};

/// Weighted sum of its input values (keras.metrics.Sum).
///
/// Shape: values (batch, …), sample weights with leading axes of that shape -> a number.
/// Communication: none until the result is read.
class Sum : public MetricHandle {
 public:
  explicit Sum(MetricOptions options = {});
  /// Adds values; sums over the axes that `sample_weight` lacks before the weights are applied.
  void update(const DTensor& values, const DTensor& sample_weight = {}) const;
  /// Returns the sum of all values so far. Collective.
  double result() const { return get()->result(); }
  /// Forgets all values.
  void reset() const { get()->reset(); }
};

}  // namespace tessera
