#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/config/registry.hpp>
#include <tessera/framework/nn/handle.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// Base of all metrics (keras.metrics.Metric). The state is a list of float64 running totals: some
/// on the devices, possibly as partial sums, and some known from shapes. Updates add to them
/// without communication; reading resolves the partial sums of all metrics in one reduction.
class Metric {
 public:
  virtual ~Metric() = default;
  /// Keras' class name, "SparseCategoricalAccuracy".
  virtual std::string class_name() const = 0;
  /// Returns the metric's options by Keras' keys.
  virtual Json config() const = 0;
  /// Whether a training step may be captured and replayed operation by operation, without calling
  /// update() again. Override it in your own metric if update() consists of operations and add()
  /// only.
  virtual bool can_be_replayed() const { return false; }
  /// The metric's name in logs.
  const std::string& name() const { return name_; }

  /// Adds one batch. `sample_weight` may be undefined.
  virtual void update(const DTensor& y_true, const DTensor& y_pred,
                      const DTensor& sample_weight = {}) = 0;
  /// Computes the metric from totals; an empty list means that no batch was added.
  virtual double result(const std::vector<double>& totals) const = 0;

  /// Computes the values of a metric for which Keras returns an array, such as a precision per
  /// threshold, and of which result() is the mean; for other metrics, {result(totals)}.
  virtual std::vector<double> result_values(const std::vector<double>& totals) const {
    return {result(totals)};
  }

  /// Returns the metric of all batches so far; 0 if there are none. Collective.
  double result() const;
  /// Returns result_values() of all batches so far. Collective.
  std::vector<double> result_values() const;
  /// Clears the totals.
  void reset() { restore({}); }
  /// update() and reset() by Keras' names.
  void update_state(const DTensor& y_true, const DTensor& y_pred,
                    const DTensor& sample_weight = {}) {
    update(y_true, y_pred, sample_weight);
  }
  void reset_state() { reset(); }
  /// Sets the totals to those of totals(). Throws ConfigError if they cannot be this metric's.
  void restore(std::vector<double> totals);
  /// Throws ConfigError, by check_count(), unless the metric can have `count` totals (above 0). By
  /// default any count is accepted.
  virtual void check_totals(size_t /*count*/) const {}
  /// Totals that are not resolved.
  struct Unresolved {
    DTensor sums = {};               ///< on the devices, often as partial sums; undefined: none
    std::vector<double> known = {};  ///< added to `sums`, the shorter list padded with 0
  };
  /// Returns the totals as they are, without communication.
  Unresolved unresolved() const;
  /// Sets the totals to those of unresolved(). Throws as restore().
  void restore_unresolved(const Unresolved& totals);
  /// Returns the running totals of several metrics, with one reduction for all. Collective.
  static std::vector<std::vector<double>> totals(const std::vector<const Metric*>& metrics);

 protected:
  explicit Metric(std::string name) : name_(std::move(name)) {}
  /// Adds `totals`, a float64 vector and often a partial sum, to the first totals, and `known`,
  /// numbers that are the same on every process, to those that follow.
  void add(const DTensor& totals, const std::vector<double>& known = {});
  /// Throws ConfigError naming the metric and `expected`, such as "9 totals", unless `fits`.
  void check_count(bool fits, const std::string& expected, size_t count) const;
  /// The number of all totals, once restore() set them or add() was given `known` ones; otherwise
  /// 0.
  size_t known_totals() const { return known_.size(); }

 private:
  std::string name_;
  DTensor state_;
  std::vector<double> known_;
};

/// A handle to a metric, also by Keras' name. compile() resolves "accuracy" (or "acc") to the
/// accuracy that fits the loss; until then the handle holds a name and no metric.
class MetricHandle : public Handle<Metric> {
 public:
  using Handle::Handle;
  MetricHandle(const char* name) : text_(name) {}  // NOLINT: reads as data
  /// The unresolved name; empty if the handle holds a metric.
  const std::string& text() const { return text_; }
  /// Adds one batch and returns the metric of all batches so far, as a Keras metric that is called.
  /// Collective.
  double operator()(const DTensor& y_true, const DTensor& y_pred,
                    const DTensor& sample_weight = {}) const {
    (*this)->update(y_true, y_pred, sample_weight);
    return (*this)->result();
  }

 private:
  std::string text_;
};

/// The options of metrics without further ones.
struct MetricOptions {
  std::string name = "";  ///< name in logs (default: the class name in snake_case)
};

namespace detail {

/// Creates the metric with this Keras name or class name, with default options, called `name`.
/// Throws ConfigError naming the nearest one.
std::shared_ptr<Metric> make_metric(const std::string& kind, const std::string& name);
/// Creates the metric with this name and the options of config(), by Keras' keys; "dtype" is
/// ignored, since totals are float64. Throws ConfigError; for an unknown key, naming the nearest.
std::shared_ptr<Metric> make_metric(const std::string& kind, const JsonObject& options);

}  // namespace detail

/// Creates a metric from {"class_name": "AUC", "config": {"curve": "PR"}}, as serialized() returns,
/// or from a name (keras.metrics.deserialize). Throws ConfigError naming the JSON path, which
/// begins with `where`.
std::shared_ptr<Metric> metric_from_config(const Json& json, const std::string& where = "metric");
namespace detail {

/// Returns all names that make_metric() knows, sorted.
std::vector<std::string> metric_names();

/// The table of metrics by name, to which each class adds itself with a Registered.
ConfigFactories<MetricHandle>& metric_factories();

/// Returns the results of several metrics, with one reduction for all. Collective.
std::vector<double> results(const std::vector<std::shared_ptr<Metric>>& metrics);

}  // namespace detail

}  // namespace tessera
