#pragma once

#include <tessera/metrics/mean.hpp>

namespace tessera::detail {

/// The mean of one of Tessera's functions, which a recorded step may replay.
class FunctionMetric : public MeanMetricWrapper {
 public:
  using MeanMetricWrapper::MeanMetricWrapper;
  bool can_be_replayed() const override { return true; }
};

}  // namespace tessera::detail
