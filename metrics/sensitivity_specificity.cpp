#include <tessera/metrics/sensitivity_specificity.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/metrics/internal/confusion.hpp>
#include <tessera/metrics/internal/metric_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(AtRateOptions& o, const Visit& visit) {
  visit("class_id", o.class_id);
  visit("num_thresholds", o.num_thresholds);
  visit("name", o.name);
}

namespace {

/// Returns a factory of a metric whose bound is stored at `key`.
template <class MetricClass>
auto metric_at(const char* key) {
  return [key](JsonObject& config) {
    const auto bound = config.take<double>(key);
    config.take_optional<Json>("dtype");
    return MetricClass(bound, options_from<AtRateOptions>(config));
  };
}

const Registered registered_sensitivity_at_specificity(
    metric_factories(), {"sensitivity_at_specificity"},
    metric_at<SensitivityAtSpecificity>("specificity"));
const Registered registered_specificity_at_sensitivity(
    metric_factories(), {"specificity_at_sensitivity"},
    metric_at<SpecificityAtSensitivity>("sensitivity"));
const Registered registered_precision_at_recall(metric_factories(), {"precision_at_recall"},
                                                metric_at<PrecisionAtRecall>("recall"));
const Registered registered_recall_at_precision(metric_factories(), {"recall_at_precision"},
                                                metric_at<RecallAtPrecision>("precision"));

using Rate = double (*)(const Confusion&);

double recall(const Confusion& c) {
  return ratio(c.true_positives, c.true_positives + c.false_negatives);
}
double specificity(const Confusion& c) {
  return ratio(c.true_negatives, c.true_negatives + c.false_positives);
}
double precision(const Confusion& c) {
  return ratio(c.true_positives, c.true_positives + c.false_positives);
}

std::vector<double> even_thresholds(int64_t count) {
  if (count == 1) return {0.5};
  std::vector<double> thresholds;
  for (int64_t i = 0; i < count; ++i) {
    thresholds.push_back(static_cast<double>(i) / static_cast<double>(count - 1));
  }
  return thresholds;
}

/// A class of this family.
struct Kind {
  const char* class_name;
  const char* key;   ///< key of the bound in Keras' configuration
  Rate constrained;  ///< rate that must reach the bound
  Rate dependent;    ///< rate that is maximized
};

Json config_of(const Kind& kind, double bound, const AtRateOptions& options) {
  Json config = named_config(kind.class_name, options);
  config[kind.key] = bound;
  return config;
}

void check(const Kind& kind, double bound, const AtRateOptions& options) {
  if (!(bound >= 0 && bound <= 1)) {
    throw ConfigError(kind.class_name, str(kind.key, " lies in [0, 1]"), str(bound),
                      "pass a fraction, such as 0.9");
  }
  if (options.num_thresholds < 1) {
    throw ConfigError(kind.class_name, "num_thresholds is at least 1", str(options.num_thresholds),
                      "leave it at 200");
  }
}

class AtRateMetric : public ConfusionMetric {
 public:
  AtRateMetric(const Kind& kind, double bound, const AtRateOptions& options)
      : ConfusionMetric(
            kind.class_name, config_of(kind, bound, options),
            {.thresholds = even_thresholds(options.num_thresholds), .class_id = options.class_id}),
        kind_(kind),
        bound_(static_cast<float>(bound)) {}

  std::vector<double> result_values(const std::vector<double>& totals) const override {
    double best = 0;
    const auto by_label = counts(totals);
    for (const Confusion& c : by_label[0]) {
      // In float32, as Keras compares: sums of weights are not exact.
      if (static_cast<float>(kind_.constrained(c)) < bound_) continue;
      best = std::max(best, kind_.dependent(c));
    }
    return {best};
  }

 private:
  Kind kind_;
  float bound_;
};

MetricHandle at_rate_metric(const Kind& kind, double bound, const AtRateOptions& options) {
  check(kind, bound, options);
  return MetricHandle(std::make_shared<AtRateMetric>(kind, bound, options));
}

}  // namespace

SensitivityAtSpecificity::SensitivityAtSpecificity(double specificity_, AtRateOptions options)
    : MetricHandle(
          tessera::at_rate_metric({"SensitivityAtSpecificity", "specificity", specificity, recall},
                                  specificity_, options)) {}
SpecificityAtSensitivity::SpecificityAtSensitivity(double sensitivity, AtRateOptions options)
    : MetricHandle(tessera::at_rate_metric(
          {"SpecificityAtSensitivity", "sensitivity", recall, specificity}, sensitivity, options)) {
}
PrecisionAtRecall::PrecisionAtRecall(double recall_, AtRateOptions options)
    : MetricHandle(tessera::at_rate_metric({"PrecisionAtRecall", "recall", recall, precision},
                                           recall_, options)) {}
RecallAtPrecision::RecallAtPrecision(double precision_, AtRateOptions options)
    : MetricHandle(tessera::at_rate_metric({"RecallAtPrecision", "precision", precision, recall},
                                           precision_, options)) {}

}  // namespace tessera
