#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/losses/loss.hpp>
#include <tessera/framework/nn/metric.hpp>

namespace tessera {

namespace detail {

/// Returns the position of an output by its name. Throws ConfigError naming the argument and the
/// nearest output.
size_t output_position(const std::string& argument, const std::string& name,
                       const std::vector<std::string>& outputs);
/// Throws ConfigError naming the argument unless a list has one entry for each output.
void check_one_each(const std::string& argument, size_t entries,
                    const std::vector<std::string>& outputs);

}  // namespace detail

/// An argument of compile() for a model's outputs: one value for all, a list in their order, or
/// values by output name: `0.5`, `{1, 0.2}`, `{{"age", 1}, {"sex", 0.2}}`. If their number is known
/// only at run time: a std::vector or a std::map.
template <class T>
class PerOutput {
 public:
  PerOutput() = default;
  template <class U>
  requires std::convertible_to<const U&, T> PerOutput(const U& all) : all_(T(all)) {}   // NOLINT
  PerOutput(std::initializer_list<T> list) : list_(list) {}                             // NOLINT
  PerOutput(std::initializer_list<std::pair<std::string, T>> named) : named_(named) {}  // NOLINT
  template <class U>
  requires std::convertible_to<const U&, T> PerOutput(const std::vector<U>& list)  // NOLINT
      : list_(std::in_place, list.begin(), list.end()) {}
  template <class U>
  requires std::convertible_to<const U&, T> PerOutput(
      const std::map<std::string, U>& named)  // NOLINT
      : named_(named.begin(), named.end()) {}

  /// Returns one value for each output, `default_value` where none is given. Throws ConfigError
  /// naming the argument for a wrong number of values or an unknown output.
  std::vector<T> values(const std::string& argument, const std::vector<std::string>& outputs,
                        const T& default_value) const {
    if (list_) {
      detail::check_one_each(argument, list_->size(), outputs);
      return *list_;
    }
    std::vector<T> values(outputs.size(), all_.value_or(default_value));
    for (const auto& [name, value] : named_) {
      values[detail::output_position(argument, name, outputs)] = value;
    }
    return values;
  }
  /// Returns the argument as JSON: `one` of the value, or a list or object of these; null if
  /// absent.
  template <class One>
  Json json(const One& one) const {
    if (all_) return one(*all_);
    if (!list_ && named_.empty()) return nullptr;
    Json json = list_ ? Json::array() : Json::object();
    for (const T& value : list_.value_or(std::vector<T>())) json.push_back(one(value));
    for (const auto& [name, value] : named_) json[name] = one(value);
    return json;
  }
  /// Returns the argument as text; `one` returns the text of a value.
  template <class One>
  std::string text(const One& one) const {
    std::string all = all_ ? one(*all_) : std::string();
    for (const T& value : list_.value_or(std::vector<T>())) all += "[" + one(value) + "]";
    for (const auto& [name, value] : named_) all += name + ": " + one(value) + "; ";
    return all;
  }

 private:
  std::optional<T> all_;
  std::optional<std::vector<T>> list_;
  std::vector<std::pair<std::string, T>> named_;
};

/// A loss as compile() takes it: an object, a Keras name, "crossentropy" (or "ce") for the one that
/// fits the shapes of labels and predictions, or none.
class LossChoice {
 public:
  LossChoice() = default;
  LossChoice(const LossHandle& loss) : loss_(loss) {}  // NOLINT: reads as data
  /// Throws ConfigError naming the nearest loss.
  LossChoice(const char* name);  // NOLINT
  explicit operator bool() const { return loss_ || by_shape_; }
  /// Returns the Keras name that was given; empty for an object.
  const std::string& name() const { return name_; }
  /// Returns the loss for labels and predictions of these shapes; null for none.
  LossHandle loss(const Shape& y_true, const Shape& y_pred) const;
  /// Returns the loss's class and configuration.
  std::string text() const;

 private:
  LossHandle loss_;
  std::string name_;
  bool by_shape_ = false;
};

/// The metrics of one output.
struct OutputMetrics {
  OutputMetrics(std::string output, const MetricHandle& metric)  // NOLINT: reads as data
      : name(std::move(output)), metrics{metric} {}
  OutputMetrics(std::string output, std::initializer_list<MetricHandle> list)  // NOLINT
      : name(std::move(output)), metrics(list) {}

  std::string name;
  std::vector<MetricHandle> metrics;
};

/// Metrics as compile() takes them: a list for a single output; for several outputs one each, or
/// lists by output name: `{"accuracy", "mse"}`, `{{"age", {"mae", "mse"}}, {"sex", "accuracy"}}`.
/// If their number is known only at run time: a std::vector of metrics or of lists, or a std::map
/// of lists.
class MetricsChoice {
 public:
  MetricsChoice() = default;
  MetricsChoice(std::vector<MetricHandle> list) : list_(std::move(list)) {}  // NOLINT
  MetricsChoice(std::initializer_list<MetricHandle> list) : list_(list) {}   // NOLINT
  /// A template, because clang 15 finds `metrics = {}` ambiguous between two
  /// constructors of initializer lists.
  template <class = void>
  MetricsChoice(std::initializer_list<OutputMetrics> named) : named_(named) {}  // NOLINT
  template <std::same_as<std::vector<MetricHandle>> List>
  MetricsChoice(const std::vector<List>& lists) : lists_(lists) {}               // NOLINT
  MetricsChoice(const std::map<std::string, std::vector<MetricHandle>>& named);  // NOLINT

  /// Returns the metrics of each output. Throws ConfigError as PerOutput::values().
  std::vector<std::vector<MetricHandle>> values(const std::string& argument,
                                                const std::vector<std::string>& outputs) const;
  /// Returns the metrics as JSON, each by `one`: a list, a list of lists (one for each output) or
  /// an object of lists; null if there are none.
  Json json(const std::function<Json(const MetricHandle&)>& one) const;
  /// Returns classes and configurations of all metrics.
  std::string text() const;

 private:
  std::vector<MetricHandle> list_;
  std::vector<std::vector<MetricHandle>> lists_;
  std::vector<OutputMetrics> named_;
};

namespace detail {

/// Returns the metric of an output. "accuracy" (or "acc") is the binary, sparse categorical or
/// categorical one by the shapes of labels and predictions, as in Keras 3.
std::shared_ptr<Metric> metric_for(const MetricHandle& metric, const Shape& y_true,
                                   const Shape& y_pred);

}  // namespace detail

}  // namespace tessera
