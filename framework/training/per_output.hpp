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

/// Position of an output's name. Throws ConfigError naming the argument and the nearest output.
size_t output_position(const std::string& argument, const std::string& name,
                       const std::vector<std::string>& outputs);
/// Throws ConfigError naming the argument unless a list has one entry for each output.
void check_one_each(const std::string& argument, size_t entries,
                    const std::vector<std::string>& outputs);

/// What compile() takes for each output of a model: one value for all, a list in their order, or
/// values by the outputs' names: `0.5`, `{1, 0.2}`, `{{"age", 1}, {"sex", 0.2}}`; a std::vector or
/// a std::map where their number is known no sooner.
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

  /// One value for each output; `otherwise` where none is given. Throws ConfigError naming the
  /// argument for another number of values or an unknown output.
  std::vector<T> values(const std::string& argument, const std::vector<std::string>& outputs,
                        const T& otherwise) const {
    if (list_) {
      check_one_each(argument, list_->size(), outputs);
      return *list_;
    }
    std::vector<T> values(outputs.size(), all_.value_or(otherwise));
    for (const auto& [name, value] : named_) {
      values[output_position(argument, name, outputs)] = value;
    }
    return values;
  }
  /// What was given, as JSON: `one` of a value, a list or an object of them, null for nothing.
  template <class One>
  Json json(const One& one) const {
    if (all_) return one(*all_);
    if (!list_ && named_.empty()) return nullptr;
    Json json = list_ ? Json::array() : Json::object();
    for (const T& value : list_.value_or(std::vector<T>())) json.push_back(one(value));
    for (const auto& [name, value] : named_) json[name] = one(value);
    return json;
  }
  /// All that was given, with `one` for the text of a value.
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

/// A loss as compile() takes it: made, by Keras' name, "crossentropy" (and "ce") for the one that
/// fits the shapes of labels and predictions, or none.
class LossChoice {
 public:
  LossChoice() = default;
  LossChoice(const LossHandle& made) : made_(made) {}  // NOLINT: reads as data
  /// Throws ConfigError naming the nearest loss.
  LossChoice(const char* name);  // NOLINT
  explicit operator bool() const { return made_ || by_shape_; }
  /// Keras' name that it was given by; empty for a loss that was made.
  const std::string& name() const { return name_; }
  /// The loss for labels and predictions of these shapes; null for none.
  LossHandle loss(const Shape& y_true, const Shape& y_pred) const;
  /// The loss's class and configuration.
  std::string text() const;

 private:
  LossHandle made_;
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

/// Metrics as compile() takes them: for a single output a list; for several one for each, or lists
/// by the outputs' names: `{"accuracy", "mse"}`, `{{"age", {"mae", "mse"}}, {"sex", "accuracy"}}`;
/// a std::vector, of metrics or of lists, or a std::map of lists where their number is known no
/// sooner.
class MetricsChoice {
 public:
  MetricsChoice() = default;
  MetricsChoice(std::vector<MetricHandle> list) : list_(std::move(list)) {}     // NOLINT
  MetricsChoice(std::initializer_list<MetricHandle> list) : list_(list) {}      // NOLINT
  MetricsChoice(std::initializer_list<OutputMetrics> named) : named_(named) {}  // NOLINT
  template <std::same_as<std::vector<MetricHandle>> List>
  MetricsChoice(const std::vector<List>& lists) : lists_(lists) {}               // NOLINT
  MetricsChoice(const std::map<std::string, std::vector<MetricHandle>>& named);  // NOLINT

  /// The metrics of each output. Throws ConfigError as PerOutput::values().
  std::vector<std::vector<MetricHandle>> values(const std::string& argument,
                                                const std::vector<std::string>& outputs) const;
  /// What was given, as JSON: a list, of lists for outputs, or an object of lists, of what `one`
  /// gives of a metric; null for nothing.
  Json json(const std::function<Json(const MetricHandle&)>& one) const;
  /// Classes and configurations of all metrics.
  std::string text() const;

 private:
  std::vector<MetricHandle> list_;
  std::vector<std::vector<MetricHandle>> lists_;
  std::vector<OutputMetrics> named_;
};

/// The metric of an output. "accuracy" (and "acc") is the binary, sparse categorical or categorical
/// one by the shapes of labels and predictions, as in Keras 3.
std::shared_ptr<Metric> metric_for(const MetricHandle& metric, const Shape& y_true,
                                   const Shape& y_pred);

}  // namespace detail

}  // namespace tessera
