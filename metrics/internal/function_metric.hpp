#pragma once

#include <tessera/metrics/mean.hpp>

namespace tessera::detail {

/// The mean of a library function, which can be replayed in captured steps.
class FunctionMetric : public MeanMetricWrapper {
 public:
  using MeanMetricWrapper::MeanMetricWrapper;
  bool can_be_replayed() const override { return true; }
};

}  // namespace tessera::detail
