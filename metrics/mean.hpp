#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

namespace detail {

/// Base of the metrics that average a value of each sample. Totals: the weighted sum, the sum of
/// weights.
class MeanMetric : public Metric {
 public:
  using Metric::result;
  void update(const DTensor& y_true, const DTensor& y_pred,
              const DTensor& sample_weight = {}) override;
  double result(const std::vector<double>& totals) const override;
  void check_totals(size_t count) const override { check_count(count == 2, "2", count); }
  Json config() const override { return {{"name", name()}}; }

  /// Adds values as Keras does: further axes than the first are averaged, `sample_weight` of lower
  /// rank weighs what axis it reaches.
  void add_values(const DTensor& values, const DTensor& sample_weight = {});
  /// Adds one number that stands for `weight` samples, such as a batch's loss.
  void add_value(const DTensor& value, double weight);

 protected:
  using Metric::Metric;
  /// The value of each sample, of any dtype.
  virtual DTensor values(const DTensor& y_true, const DTensor& y_pred) const = 0;
};

}  // namespace detail

/// Mean of the values that a function of labels and predictions gives for each sample
/// (keras.metrics.MeanMetricWrapper).
class MeanMetricWrapper : public detail::MeanMetric {
 public:
  using Function = std::function<DTensor(const DTensor& y_true, const DTensor& y_pred)>;
  /// `config` is that of the metric, with its name.
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

/// Weighted mean of what it is given (keras.metrics.Mean).
///
/// Shape: values (batch, …), sample weights of a shape that begins like theirs -> a number.
/// Communication: none until it is read.
class Mean : public MetricHandle {
 public:
  explicit Mean(MetricOptions options = {});
  /// Adds values; further axes than the first are averaged, `sample_weight` of lower rank weighs
  /// what axis it reaches.
  void update(const DTensor& values, const DTensor& sample_weight = {}) const;
  /// Adds one number that stands for `weight` samples, such as a batch's loss.
  void update(const DTensor& value, double weight) const;
  /// The mean of all values so far, 0 without any. Collective.
  double result() const { return get()->result(); }
  /// Forgets all values.
  void reset() const { get()->reset(); }
};

/// Weighted sum of what it is given (keras.metrics.Sum).
///
/// Shape: values (batch, …), sample weights of a shape that begins like theirs -> a number.
/// Communication: none until it is read.
class Sum : public MetricHandle {
 public:
  explicit Sum(MetricOptions options = {});
  /// Adds values; further axes than `sample_weight` has are summed before they are weighed.
  void update(const DTensor& values, const DTensor& sample_weight = {}) const;
  /// The sum of all values so far. Collective.
  double result() const { return get()->result(); }
  /// Forgets all values.
  void reset() const { get()->reset(); }
};

}  // namespace tessera
