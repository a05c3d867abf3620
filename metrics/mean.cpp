#include <tessera/metrics/mean.hpp>

#include <numeric>

#include <tessera/framework/nn/weighting.hpp>
#include <tessera/framework/ops/dispatch.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {
namespace {

/// Mean over the axes from `first` on.
DTensor mean_from(const DTensor& x, int64_t first) {
  if (x.rank() <= first) return x;
  ops::Axes axes(static_cast<size_t>(x.rank() - first));
  std::iota(axes.begin(), axes.end(), first);
  return ops::mean(x, axes);
}

DTensor as_vector(const DTensor& number) { return ops::reshape(number, {1}); }

class MeanOfValues : public MeanMetric {
 public:
  explicit MeanOfValues(const MeanOptions& options) : MeanMetric(options.name) {}
  std::string class_name() const override { return "Mean"; }

 protected:
  DTensor values(const DTensor&, const DTensor& y_pred) const override { return y_pred; }
};

}  // namespace

void MeanMetric::update(const DTensor& y_true, const DTensor& y_pred,
                        const DTensor& sample_weight) {
  const NoRecording untaped;
  add_values(values(y_true, y_pred), sample_weight);
}

void MeanMetric::add_values(const DTensor& given, const DTensor& sample_weight) {
  const NoRecording untaped;
  DTensor each = ops::cast(given, at::kDouble);
  if (!sample_weight.defined()) {
    each = mean_from(each, 1);
    add(as_vector(ops::sum(each)), {0, static_cast<double>(each.numel())});
    return;
  }
  DTensor weights;
  std::tie(each, weights) = match_ranks(each, ops::cast(sample_weight, at::kDouble));
  each = mean_from(each, weights.rank());
  check_weights(name().c_str(), each.shape(), weights.shape());
  weights = ops::broadcast_to(weights, each.shape());
  each = mean_from(each * weights, 1);
  weights = mean_from(weights, 1);
  add(ops::concat({as_vector(ops::sum(each)), as_vector(ops::sum(weights))}));
}

void MeanMetric::add_value(const DTensor& value, double weight) {
  const NoRecording untaped;
  add(as_vector(ops::scale(ops::cast(value, at::kDouble), weight)), {0, weight});
}

double MeanMetric::result(const std::vector<double>& totals) const {
  return totals.size() < 2 || totals[1] == 0 ? 0 : totals[0] / totals[1];
}

Mean::Mean(MeanOptions options) : MetricRef(std::make_shared<MeanOfValues>(options)) {}

void Mean::update(const DTensor& values, const DTensor& sample_weight) const {
  static_cast<MeanMetric&>(*made()).add_values(values, sample_weight);
}

void Mean::update(const DTensor& value, double weight) const {
  static_cast<MeanMetric&>(*made()).add_value(value, weight);
}

}  // namespace tessera
