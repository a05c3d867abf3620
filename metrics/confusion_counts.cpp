#include <tessera/metrics/confusion_counts.hpp>

#include <tessera/metrics/internal/confusion.hpp>
#include <tessera/metrics/internal/metric_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(ConfusionCountOptions& o, const Visit& visit) {
  visit("thresholds", o.thresholds);
  visit("name", o.name);
}

namespace {

const Registered registered_true_positives(metric_factories(), {"true_positives"},
                                           metric_of<TruePositives, ConfusionCountOptions>);
const Registered registered_true_negatives(metric_factories(), {"true_negatives"},
                                           metric_of<TrueNegatives, ConfusionCountOptions>);
const Registered registered_false_positives(metric_factories(), {"false_positives"},
                                            metric_of<FalsePositives, ConfusionCountOptions>);
const Registered registered_false_negatives(metric_factories(), {"false_negatives"},
                                            metric_of<FalseNegatives, ConfusionCountOptions>);

class CountMetric : public ConfusionMetric {
 public:
  CountMetric(const char* class_name, double Confusion::*count, ConfusionCountOptions options)
      : ConfusionMetric(class_name, named_config(class_name, options),
                        {.thresholds = options.thresholds.empty() ? std::vector<double>{0.5}
                                                                  : options.thresholds}),
        count_(count) {
    check_thresholds(name(), options.thresholds);
  }
  std::vector<double> result_values(const std::vector<double>& totals) const override {
    std::vector<double> values;
    const auto by_label = counts(totals);
    for (const Confusion& c : by_label[0]) values.push_back(c.*count_);
    return values;
  }

 private:
  double Confusion::*count_;
};

std::shared_ptr<Metric> count_of(const char* class_name, double Confusion::*count,
                                 const ConfusionCountOptions& options) {
  return std::make_shared<CountMetric>(class_name, count, options);
}

}  // namespace

TruePositives::TruePositives(ConfusionCountOptions options)
    : MetricHandle(count_of("TruePositives", &Confusion::true_positives, options)) {}
TrueNegatives::TrueNegatives(ConfusionCountOptions options)
    : MetricHandle(count_of("TrueNegatives", &Confusion::true_negatives, options)) {}
FalsePositives::FalsePositives(ConfusionCountOptions options)
    : MetricHandle(count_of("FalsePositives", &Confusion::false_positives, options)) {}
FalseNegatives::FalseNegatives(ConfusionCountOptions options)
    : MetricHandle(count_of("FalseNegatives", &Confusion::false_negatives, options)) {}

}  // namespace tessera
