#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/config/registry.hpp>
#include <tessera/framework/nn/handle.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// Base of all metrics (keras.metrics.Metric). State is a list of float64 running totals: a part
/// that lies on the devices and may be pending, and a part known from shapes. Updating adds to them
/// without reducing; reading reduces, once for all metrics.
class Metric {
 public:
  virtual ~Metric() = default;
  /// Keras' class name, "SparseCategoricalAccuracy".
  virtual std::string class_name() const = 0;
  /// The metric's options by Keras' keys.
  virtual Json config() const = 0;
  /// Whether a training step may be recorded and replayed operation by operation, without calling
  /// update() again. A program's own metric overrides it where update() does nothing but operations
  /// and add().
  virtual bool can_be_replayed() const { return false; }
  /// What logs call the metric.
  const std::string& name() const { return name_; }

  /// Adds one batch. `sample_weight` may be undefined.
  virtual void update(const DTensor& y_true, const DTensor& y_pred,
                      const DTensor& sample_weight = {}) = 0;
  /// The metric of these totals; an empty list means that nothing was added yet.
  virtual double result(const std::vector<double>& totals) const = 0;

  /// What Keras gives as an array, such as a precision for each threshold, of which result() is the
  /// mean; the one result of other metrics.
  virtual std::vector<double> result_values(const std::vector<double>& totals) const {
    return {result(totals)};
  }

  /// The metric of all batches so far; 0 without any. Collective.
  double result() const;
  /// What Keras gives as an array, of all batches so far. Collective.
  std::vector<double> result_values() const;
  /// Starts anew.
  void reset() { restore({}); }
  /// Starts from totals that totals() gave. Throws ConfigError if they are another metric's.
  void restore(std::vector<double> totals);
  /// Throws ConfigError, by check_count(), unless the metric can have so many totals, which are not
  /// 0. Any number is right for one that does not override it.
  virtual void check_totals(size_t /*count*/) const {}
  /// The running totals of several metrics, with one reduction for all of them. Collective.
  static std::vector<std::vector<double>> totals(const std::vector<const Metric*>& metrics);

 protected:
  explicit Metric(std::string name) : name_(std::move(name)) {}
  /// Adds a float64 vector, often pending, to the first totals, and numbers that every process
  /// knows to the totals behind them.
  void add(const DTensor& totals, const std::vector<double>& known = {});
  /// Throws ConfigError that names the metric and `expected`, "9 totals", unless `fits`.
  void check_count(bool fits, const std::string& expected, size_t count) const;
  /// How many totals restore() brought, or add() was given as numbers; 0 for none.
  size_t known_totals() const { return known_.size(); }

 private:
  std::string name_;
  DTensor state_;
  std::vector<double> known_;
};

/// A handle to a metric, also by Keras' name. "accuracy" (and "acc") becomes the accuracy that fits
/// the loss when the model is compiled; until then the handle has a text and no metric.
class MetricHandle : public detail::Handle<Metric> {
 public:
  using Handle::Handle;
  MetricHandle(const char* name) : text_(name) {}  // NOLINT: reads as data
  /// The name that is not resolved yet; empty for a metric.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Options of the metrics that have none of their own.
struct MetricOptions {
  std::string name = "";  ///< what logs call the metric; empty: the class's in snake_case
};

namespace detail {

/// The metric of a Keras name or class name, with its defaults, called `name`. Throws ConfigError
/// naming the nearest one.
std::shared_ptr<Metric> make_metric(const std::string& kind, const std::string& name);
/// The metric of a name with these options by Keras' keys, as config() gives them; "dtype" is
/// passed over, since totals are float64. Throws ConfigError, for an unknown key naming the nearest
/// one.
std::shared_ptr<Metric> make_metric(const std::string& kind, const JsonObject& options);

}  // namespace detail

/// {"class_name": "AUC", "config": {"curve": "PR"}}, as serialized() gives it, or a name alone, as
/// a metric (keras.metrics.deserialize). Throws ConfigError naming the place, which begins with
/// `where`.
std::shared_ptr<Metric> metric_from_config(const Json& json, const std::string& where = "metric");
namespace detail {

/// Every name that make_metric knows, sorted.
std::vector<std::string> metric_names();

/// The table of metrics by name, to which each class adds itself by a Registered.
ConfigFactories<MetricHandle>& metric_factories();

/// Results of several metrics with one reduction for all of them. Collective.
std::vector<double> results(const std::vector<std::shared_ptr<Metric>>& metrics);

}  // namespace detail

}  // namespace tessera
