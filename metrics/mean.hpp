#pragma once

#include <functional>
#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// Base of the metrics that average a value of each sample (keras.metrics.MeanMetricWrapper).
/// Totals: the weighted sum, the sum of weights.
class MeanMetric : public Metric {
 public:
  using Metric::result;
  void update(const DTensor& y_true, const DTensor& y_pred,
              const DTensor& sample_weight = {}) override;
  double result(const std::vector<double>& totals) const override;
  Json config() const override { return {{"name", name()}}; }

  /// Adds values as Keras does: further axes than the first are averaged, `sample_weight` of lower
  /// rank weighs what axis it reaches.
  void add_values(const DTensor& values, const DTensor& sample_weight = {});
  /// Adds one number that stands for `weight` samples, such as a batch's loss.
  void add_value(const DTensor& value, double weight);

 protected:
  using Metric::Metric;
  /// Value of each sample, of any dtype.
  virtual DTensor values(const DTensor& y_true, const DTensor& y_pred) const = 0;
};

/// Mean of the values that a function of labels and predictions gives for each sample
/// (keras.metrics.MeanMetricWrapper).
class MeanMetricWrapper : public MeanMetric {
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

/// The same of one of Tessera's functions, which a recorded step may replay.
class FunctionMetric : public MeanMetricWrapper {
 public:
  using MeanMetricWrapper::MeanMetricWrapper;
};

/// Weighted mean of what it is given (keras.metrics.Mean).
class Mean : public MetricHandle {
 public:
  explicit Mean(MetricOptions options = {});
  /// As MeanMetric::add_values.
  void update(const DTensor& values, const DTensor& sample_weight = {}) const;
  /// As MeanMetric::add_value.
  void update(const DTensor& value, double weight) const;
  /// Collective.
  double result() const { return get()->result(); }
  void reset() const { get()->reset(); }
};

/// Weighted sum of what it is given (keras.metrics.Sum).
class Sum : public MetricHandle {
 public:
  explicit Sum(MetricOptions options = {});
  /// Further axes of the values than `sample_weight` has are summed before they are weighed.
  void update(const DTensor& values, const DTensor& sample_weight = {}) const;
  /// Collective.
  double result() const { return get()->result(); }
  void reset() const { get()->reset(); }
};

}  // namespace tessera
