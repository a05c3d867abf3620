#pragma once

#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

struct PearsonCorrelationOptions {
  std::string name = "pearson_correlation";
  int64_t axis = -1;
};
template <class Visit>
void fields(PearsonCorrelationOptions& o, Visit visit) {
  visit("name", o.name);
  visit("axis", o.axis);
}

/// Mean over samples of the correlation of labels and predictions along an axis, their covariance
/// divided by both standard deviations; no number where one of these is 0
/// (keras.metrics.PearsonCorrelation). A cut axis is reduced in every update.
class PearsonCorrelation : public MetricHandle {
 public:
  explicit PearsonCorrelation(PearsonCorrelationOptions options = {});
};

struct ConcordanceCorrelationOptions {
  std::string name = "concordance_correlation";
  int64_t axis = -1;
};
template <class Visit>
void fields(ConcordanceCorrelationOptions& o, Visit visit) {
  visit("name", o.name);
  visit("axis", o.axis);
}

/// Mean over samples of 2 · covariance / (variances + (t - p)²) along an axis, with t and p the
/// means of labels and predictions (keras.metrics.ConcordanceCorrelation). A cut axis is reduced in
/// every update.
class ConcordanceCorrelation : public MetricHandle {
 public:
  explicit ConcordanceCorrelation(ConcordanceCorrelationOptions options = {});
};

}  // namespace tessera
