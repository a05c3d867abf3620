#include <tessera/metrics/auc.hpp>

#include <algorithm>
#include <cmath>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/internal/epsilon.hpp>
#include <tessera/metrics/internal/confusion.hpp>
#include <tessera/metrics/internal/metric_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(AUCOptions& o, const Visit& visit) {
  visit("num_thresholds", o.num_thresholds);
  visit("curve", o.curve);
  visit("summation_method", o.summation_method);
  visit("name", o.name);
  visit("thresholds", o.thresholds);
  visit("multi_label", o.multi_label);
  visit("num_labels", o.num_labels);
  visit("label_weights", o.label_weights);
  visit("from_logits", o.from_logits);
}

namespace {

const Registered registered_auc(metric_factories(), {"auc"}, metric_of<AUC, AUCOptions>);

std::vector<double> all_thresholds(const AUCOptions& options) {
  std::vector<double> inner = options.thresholds;
  std::sort(inner.begin(), inner.end());
  if (inner.empty()) {
    const auto intervals = static_cast<double>(options.num_thresholds - 1);
    for (int64_t i = 1; i + 1 < options.num_thresholds; ++i) {
      inner.push_back(static_cast<double>(i) / intervals);
    }
  }
  inner.insert(inner.begin(), -keras_epsilon);
  inner.push_back(1 + keras_epsilon);
  return inner;
}

void check(const AUCOptions& options) {
  check_thresholds(options.name, options.thresholds);
  if (options.num_thresholds < 2) {
    throw ConfigError(options.name, "num_thresholds is at least 2", str(options.num_thresholds),
                      "leave it at 200");
  }
  if (options.num_labels && !options.multi_label) {
    throw ConfigError(options.name, "num_labels goes with multi_label", str(*options.num_labels),
                      "set multi_label or leave out num_labels");
  }
}

using Counts = std::vector<Confusion>;

struct Point {
  double x = 0;
  double y = 0;
};

Point gains(const Confusion& c) {
  // As in Keras, since both gains would be infinite.
  if (c.true_positives == 0) return {0, 1};
  const double scale =
      ratio(c.true_positives + c.false_negatives, c.true_negatives + c.false_positives);
  return {std::max(0.0, 1 - scale * c.false_negatives / c.true_positives),
          1 - scale * c.false_positives / c.true_positives};
}

Point point(AUCCurve curve, const Confusion& c) {
  const double recall = ratio(c.true_positives, c.true_positives + c.false_negatives);
  if (curve == AUCCurve::roc) {
    return {ratio(c.false_positives, c.false_positives + c.true_negatives), recall};
  }
  if (curve == AUCCurve::prgain) return gains(c);
  return {recall, ratio(c.true_positives, c.true_positives + c.false_positives)};
}

double height(AUCSummationMethod method, double a, double b) {
  if (method == AUCSummationMethod::interpolation) return (a + b) / 2;
  return method == AUCSummationMethod::minoring ? std::min(a, b) : std::max(a, b);
}

double area(const AUCOptions& options, const Counts& counts) {
  double sum = 0;
  for (size_t i = 0; i + 1 < counts.size(); ++i) {
    const Point a = point(options.curve, counts[i]), b = point(options.curve, counts[i + 1]);
    sum += (a.x - b.x) * height(options.summation_method, a.y, b.y);
  }
  return sum;
}

/// Returns the area under precision over recall, in closed form, if true positives grow linearly
/// with the positive predictions between two thresholds (Davis and Goadrich, 2006).
double precision_recall_area(const Counts& counts) {
  double sum = 0;
  for (size_t i = 0; i + 1 < counts.size(); ++i) {
    const Confusion &a = counts[i], &b = counts[i + 1];
    const double positives_a = a.true_positives + a.false_positives;
    const double positives_b = b.true_positives + b.false_positives;
    const double gained = a.true_positives - b.true_positives;
    const double slope = ratio(gained, std::max(0.0, positives_a - positives_b));
    const double intercept = b.true_positives - slope * positives_b;
    const bool both = positives_a > 0 && positives_b > 0;
    const double growth = both ? std::log(positives_a / positives_b) : 0;
    sum += ratio(slope * (gained + intercept * growth), b.true_positives + b.false_negatives);
  }
  return sum;
}

class AUCMetric : public ConfusionMetric {
 public:
  using ConfusionMetric::result;
  explicit AUCMetric(const AUCOptions& options)
      : ConfusionMetric("AUC", named_config("AUC", options),
                        {.thresholds = all_thresholds(options),
                         .multi_label = options.multi_label,
                         .label_weights = options.label_weights,
                         .from_logits = options.from_logits}),
        options_(options) {}

  void update(const DTensor& y_true, const DTensor& y_pred, const DTensor& sample_weight) override {
    const auto weights = static_cast<int64_t>(options_.label_weights.size());
    const int64_t labels = options_.num_labels.value_or(weights);
    if (options_.multi_label && labels != 0 && y_pred.rank() == 2 && y_pred.size(1) != labels) {
      throw ShapeError(name(), str("predictions of ", labels, " labels"), to_string(y_pred.shape()),
                       "correct num_labels or label_weights");
    }
    ConfusionMetric::update(y_true, y_pred, sample_weight);
  }

  std::vector<double> result_values(const std::vector<double>& totals) const override {
    const bool closed_form = options_.curve == AUCCurve::pr &&
                             options_.summation_method == AUCSummationMethod::interpolation;
    std::vector<double> values;
    for (const Counts& of_label : counts(totals)) {
      values.push_back(closed_form ? precision_recall_area(of_label) : area(options_, of_label));
    }
    return values;
  }

  double result(const std::vector<double>& totals) const override {
    if (!options_.multi_label || options_.label_weights.empty()) {
      return ConfusionMetric::result(totals);
    }
    const std::vector<double> values = result_values(totals);
    double sum = 0, weights = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      sum += values[i] * options_.label_weights[i];
      weights += options_.label_weights[i];
    }
    return ratio(sum, weights);
  }

 private:
  AUCOptions options_;
};

std::shared_ptr<Metric> auc(const AUCOptions& options) {
  check(options);
  return std::make_shared<AUCMetric>(options);
}

}  // namespace

AUC::AUC(AUCOptions options) : MetricHandle(auc(options)) {}

}  // namespace tessera
