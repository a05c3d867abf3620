#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace tessera::detail {

/// Streaming quantiles within a tolerance epsilon, in memory proportional to 1 / epsilon: the
/// summary of Keras' Discretization, equal in every number.
class QuantileSummary {
 public:
  explicit QuantileSummary(double epsilon) : epsilon_(epsilon) {}
  /// Adds all numbers of a tensor, as float32.
  void add(const at::Tensor& values);
  bool empty() const { return points_.empty(); }
  /// Returns boundaries between `bins` bins of about equal weight; at most bins - 1 numbers.
  std::vector<double> boundaries(int64_t bins) const;

 private:
  /// A number, and how many numbers it represents.
  struct Point {
    float value = 0, weight = 0;
  };
  using Points = std::vector<Point>;
  static Points compressed(const Points& points, double epsilon);

  double epsilon_;
  Points points_;
};

}  // namespace tessera::detail
