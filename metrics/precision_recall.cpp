#include <tessera/metrics/precision_recall.hpp>

#include <tessera/framework/nn/config/option_fields.hpp>
#include <tessera/metrics/internal/confusion.hpp>

namespace tessera {
namespace {

/// Keras' threshold for top_k, which every number exceeds.
constexpr double lowest = -1e10;

ConfusionOptions confusion_options(const PrecisionRecallOptions& options) {
  ConfusionOptions wanted = {
      .thresholds = options.thresholds, .top_k = options.top_k, .class_id = options.class_id};
  if (wanted.thresholds.empty()) wanted.thresholds = {options.top_k ? lowest : 0.5};
  return wanted;
}

/// True positives as a part of them and of a kind of mistake.
class PartMetric : public ConfusionMetric {
 public:
  PartMetric(const char* class_name, double Confusion::*mistakes, PrecisionRecallOptions options)
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
          std::make_shared<PartMetric>("Precision", &Confusion::false_positives, options)) {}
Recall::Recall(PrecisionRecallOptions options)
    : MetricHandle(std::make_shared<PartMetric>("Recall", &Confusion::false_negatives, options)) {}

}  // namespace tessera
