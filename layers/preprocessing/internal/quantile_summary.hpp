#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace tessera::detail {

/// Quantiles of numbers that come in batches, to within a tolerance, in the memory of its inverse:
/// the summary of Keras' Discretization, number by number.
class QuantileSummary {
 public:
  explicit QuantileSummary(double epsilon) : epsilon_(epsilon) {}
  /// Adds all numbers of a tensor, taken as float32.
  void add(const at::Tensor& values);
  bool empty() const { return points_.empty(); }
  /// What parts the numbers into `bins` of about equal weight; at most bins - 1 numbers.
  std::vector<double> boundaries(int64_t bins) const;

 private:
  /// A number, and how many it stands for.
  struct Point {
    float value = 0, weight = 0;
  };
  using Points = std::vector<Point>;
  static Points compressed(const Points& points, double epsilon);

  double epsilon_;
  Points points_;
};

}  // namespace tessera::detail
