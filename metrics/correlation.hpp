#pragma once

#include <string>

#include <tessera/framework/nn/metric.hpp>

namespace tessera {

/// The options of PearsonCorrelation.
struct PearsonCorrelationOptions {
  std::string name = "pearson_correlation";  ///< name in logs
  int64_t axis = -1;                         ///< axis along which labels and predictions correlate
};

/// Mean over samples of the correlation of labels and predictions along an axis: their covariance
/// divided by both standard deviations; NaN if one of these is 0
/// (keras.metrics.PearsonCorrelation).
///
/// Shape: labels and predictions (batch, …, n) -> a number.
/// Communication: none until the result is read; a sharded axis is reduced in every update.
/// Throws ShapeError for different shapes.
class PearsonCorrelation : public MetricHandle {
 public:
  explicit PearsonCorrelation(PearsonCorrelationOptions options = {});
};

/// The options of ConcordanceCorrelation.
struct ConcordanceCorrelationOptions {
  std::string name = "concordance_correlation";  ///< name in logs
  int64_t axis = -1;  ///< axis along which labels and predictions correlate
};

/// Mean over samples of 2 · covariance / (sum of variances + (t - p)²) along an axis, with t and p
/// the means of labels and predictions (keras.metrics.ConcordanceCorrelation; Lin, 1989).
///
/// Shape: labels and predictions (batch, …, n) -> a number.
/// Communication: none until the result is read; a sharded axis is reduced in every update.
/// Throws ShapeError for different shapes.
class ConcordanceCorrelation : public MetricHandle {
 public:
  explicit ConcordanceCorrelation(ConcordanceCorrelationOptions options = {});
};

}  // namespace tessera
