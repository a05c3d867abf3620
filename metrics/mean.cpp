#include <tessera/metrics/mean.hpp>

#include <numeric>

#include <tessera/framework/nn/internal/sample_weights.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>
#include <tessera/metrics/internal/function_metric.hpp>
#include <tessera/metrics/internal/metric_config.hpp>

namespace tessera {

using namespace detail;

namespace {

const Registered registered_mean(metric_factories(), {"mean"}, metric_of<Mean, MetricOptions>);
const Registered registered_sum(metric_factories(), {"sum"}, metric_of<Sum, MetricOptions>);

/// Returns the axes from `first` on; there must be at least one.
ops::Axes axes_from(const DTensor& x, int64_t first) {
  ops::Axes axes(static_cast<size_t>(x.rank() - first));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

DTensor mean_from(const DTensor& x, int64_t first) {
  return x.rank() <= first ? x : ops::mean(x, axes_from(x, first));
}

DTensor as_vector(const DTensor& number) { return ops::reshape(number, {1}); }

DTensor identity_values(const DTensor&, const DTensor& y_pred) { return y_pred; }

class SumMetric : public Metric {
 public:
  explicit SumMetric(const std::string& name) : Metric(name) {}
  using Metric::result;
  std::string class_name() const override { return "Sum"; }
  Json config() const override { return {{"name", name()}}; }
  bool can_be_replayed() const override { return true; }
  void update(const DTensor&, const DTensor& y_pred, const DTensor& sample_weight) override {
    const NoRecording no_tape;
    DTensor each = ops::cast(y_pred, at::kDouble);
    if (sample_weight.defined()) {
      check_weights(name(), each.shape(), sample_weight.shape());
      DTensor weights;
      std::tie(each, weights) = match_ranks(each, ops::cast(sample_weight, at::kDouble));
      if (each.rank() > weights.rank()) each = ops::sum(each, axes_from(each, weights.rank()));
      each = each * weights;
    }
    add(as_vector(ops::sum(each)));
  }
  double result(const std::vector<double>& totals) const override {
    return totals.empty() ? 0 : totals[0];
  }
  void check_totals(size_t count) const override { check_count(count == 1, "1", count); }
};

}  // namespace

void MeanMetric::update(const DTensor& y_true, const DTensor& y_pred,
                        const DTensor& sample_weight) {
  const NoRecording no_tape;
  add_values(values(y_true, y_pred),
             masked_weights(name(), sample_weight, y_pred.mask(), at::kDouble));
}

void MeanMetric::add_values(const DTensor& numbers, const DTensor& sample_weight) {
  const NoRecording no_tape;
  DTensor each = ops::cast(numbers, at::kDouble);
  if (!sample_weight.defined()) {
    each = mean_from(each, 1);
    add(as_vector(ops::sum(each)), {static_cast<double>(each.numel())});
    return;
  }
  check_weights(name(), each.shape(), sample_weight.shape());
  DTensor weights;
  std::tie(each, weights) = match_ranks(each, ops::cast(sample_weight, at::kDouble));
  each = mean_from(each, weights.rank());
  weights = ops::broadcast_to(weights, each.shape());
  each = mean_from(each * weights, 1);
  weights = mean_from(weights, 1);
  add(ops::concat({as_vector(ops::sum(each)), as_vector(ops::sum(weights))}));
}

void MeanMetric::add_value(const DTensor& value, double weight) {
  const NoRecording no_tape;
  add(as_vector(ops::scale(ops::cast(value, at::kDouble), weight)), {weight});
}

double MeanMetric::result(const std::vector<double>& totals) const {
  return totals.size() < 2 || totals[1] == 0 ? 0 : totals[0] / totals[1];
}

MeanMetricWrapper::MeanMetricWrapper(const char* class_name, Json config, Function function)
    : MeanMetric(config.at("name").get<std::string>()),
      class_name_(class_name),
      config_(std::move(config)),
      function_(std::move(function)) {}

DTensor MeanMetricWrapper::values(const DTensor& y_true, const DTensor& y_pred) const {
  return function_(y_true, y_pred);
}

Mean::Mean(MetricOptions options)
    : MetricHandle(std::make_shared<FunctionMetric>("Mean", named_config("Mean", options),
                                                    identity_values)) {}

void Mean::update(const DTensor& values, const DTensor& sample_weight) const {
  static_cast<MeanMetric&>(*get()).add_values(values, sample_weight);
}

void Mean::update(const DTensor& value, double weight) const {
  static_cast<MeanMetric&>(*get()).add_value(value, weight);
}

Sum::Sum(MetricOptions options)
    : MetricHandle(std::make_shared<SumMetric>(options.name.empty() ? "sum" : options.name)) {}

void Sum::update(const DTensor& values, const DTensor& sample_weight) const {
  get()->update({}, values, sample_weight);
}

}  // namespace tessera
