#include <tessera/metrics/precision_recall.hpp>

#include <tessera/metrics/internal/confusion.hpp>
#include <tessera/metrics/internal/metric_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(PrecisionRecallOptions& o, const Visit& visit) {
  visit("thresholds", o.thresholds);
  visit("top_k", o.top_k);
  visit("class_id", o.class_id);
  visit("name", o.name);
}

namespace {

const Registered registered_precision(metric_factories(), {"precision"},
                                      metric_of<Precision, PrecisionRecallOptions>);
const Registered registered_recall(metric_factories(), {"recall"},
                                   metric_of<Recall, PrecisionRecallOptions>);

/// Keras' threshold for top_k, which every number exceeds.
constexpr double lowest = -1e10;

ConfusionOptions confusion_options(const PrecisionRecallOptions& options) {
  ConfusionOptions result = {
      .thresholds = options.thresholds, .top_k = options.top_k, .class_id = options.class_id};
  if (result.thresholds.empty()) result.thresholds = {options.top_k ? lowest : 0.5};
  return result;
}

/// True positives / (true positives + one kind of mistakes).
class FractionMetric : public ConfusionMetric {
 public:
  FractionMetric(const char* class_name, double Confusion::*mistakes,
                 PrecisionRecallOptions options)
      : ConfusionMetric(class_name, named_config(class_name, options), confusion_options(options)),
        mistakes_(mistakes) {
    check_thresholds(name(), options.thresholds);
  }
  std::vector<double> result_values(const std::vector<double>& totals) const override {
    std::vector<double> values;
    const auto by_label = counts(totals);
    for (const Confusion& c : by_label[0]) {
      values.push_back(ratio(c.true_positives, c.true_positives + c.*mistakes_));
    }
    return values;
  }

 private:
  double Confusion::*mistakes_;
};

}  // namespace

Precision::Precision(PrecisionRecallOptions options)
    : MetricHandle(
          std::make_shared<FractionMetric>("Precision", &Confusion::false_positives, options)) {}
Recall::Recall(PrecisionRecallOptions options)
    : MetricHandle(
          std::make_shared<FractionMetric>("Recall", &Confusion::false_negatives, options)) {}

}  // namespace tessera
