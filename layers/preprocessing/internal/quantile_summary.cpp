#include <tessera/layers/preprocessing/internal/quantile_summary.hpp>

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

namespace tessera::detail {
namespace {

/// Interpolates linearly like numpy.interp: ys at x for ascending xs, constant beyond their ends.
double interpolated(double x, const std::vector<double>& xs, const std::vector<double>& ys) {
  if (x > xs.back()) return ys.back();
  if (x < xs.front()) return ys.front();
  const auto above = std::upper_bound(xs.begin(), xs.end(), x);
  const auto i = static_cast<size_t>(above - xs.begin()) - 1;
  if (i + 1 == xs.size() || xs[i] == x) return ys[i];
  const double slope = (ys[i + 1] - ys[i]) / (xs[i + 1] - xs[i]);
  return slope * (x - xs[i]) + ys[i];
}

}  // namespace

QuantileSummary::Points QuantileSummary::compressed(const Points& points, double epsilon) {
  if (static_cast<double>(points.size()) * epsilon < 1) return points;
  std::vector<double> shares, values, sums;
  float sum = 0;
  for (const Point& point : points) {
    sum += point.weight;
    sums.push_back(sum);
    values.push_back(point.value);
  }
  for (const double cumulative : sums) shares.push_back(static_cast<float>(cumulative) / sum);
  Points result;
  double before = 0;
  const auto steps = static_cast<int64_t>(std::ceil(1 / epsilon));
  for (int64_t i = 0; i < steps; ++i) {
    const double share = epsilon + static_cast<double>(i) * epsilon;
    const double cumulative_weight = interpolated(share, shares, sums);
    result.push_back({static_cast<float>(interpolated(share, shares, values)),
                      static_cast<float>(cumulative_weight - before)});
    before = cumulative_weight;
  }
  return result;
}

void QuantileSummary::add(const at::Tensor& values) {
  const at::Tensor sorted = std::get<0>(values.to(at::kFloat).flatten().sort());
  const float* const data = sorted.const_data_ptr<float>();
  const double step = std::max(static_cast<double>(sorted.numel()) / (1 / epsilon_), 1.0);
  Points merged;
  const auto stride = static_cast<int64_t>(step);
  for (auto i = static_cast<int64_t>(step - 1); i < sorted.numel(); i += stride) {
    merged.push_back({data[i], static_cast<float>(step)});
  }
  merged.insert(merged.end(), points_.begin(), points_.end());
  std::stable_sort(merged.begin(), merged.end(),
                   [](const Point& a, const Point& b) { return a.value < b.value; });
  points_ = compressed(merged, epsilon_);
}

std::vector<double> QuantileSummary::boundaries(int64_t bins) const {
  const Points points = compressed(points_, 1 / static_cast<double>(bins));
  std::vector<double> result;
  for (size_t i = 0; i + 1 < points.size(); ++i) result.push_back(points[i].value);
  return result;
}

}  // namespace tessera::detail
