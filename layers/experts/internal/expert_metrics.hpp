#pragma once

#include <tessera/framework/nn/metric.hpp>
#include <tessera/layers/experts/internal/expert_routing.hpp>

namespace tessera::detail {

/// A metric of the router, without labels. Totals are integers, the same on every mesh.
class RoutingMetric : public Metric {
 public:
  using Metric::result;
  explicit RoutingMetric(const char* name) : Metric(name) {}
  Json config() const override { return {{"name", name()}}; }
  bool can_be_replayed() const override { return true; }
  /// Does nothing: add_routing() feeds this metric.
  void update(const DTensor&, const DTensor&, const DTensor&) override {}
  virtual void add_routing(const Routing& routing) = 0;
};

/// How evenly experts are chosen: the entropy of the distribution of choices over experts, divided
/// by log E. 1: all equally often; 0: always the same one. Totals: the number of choices per
/// expert.
class LoadEntropy final : public RoutingMetric {
 public:
  using Metric::result;
  explicit LoadEntropy(int64_t experts) : RoutingMetric("load_entropy"), experts_(experts) {}
  std::string class_name() const override { return "LoadEntropy"; }
  void add_routing(const Routing& routing) override;
  double result(const std::vector<double>& totals) const override;
  void check_totals(size_t count) const override;

 private:
  int64_t experts_;
};

/// The fraction of choices that got no slot. Totals: the number of choices, then of those that got
/// one.
class DroppedShare final : public RoutingMetric {
 public:
  using Metric::result;
  DroppedShare() : RoutingMetric("dropped") {}
  std::string class_name() const override { return "DroppedShare"; }
  void add_routing(const Routing& routing) override;
  double result(const std::vector<double>& totals) const override;
  void check_totals(size_t count) const override { check_count(count == 2, "2", count); }
};

}  // namespace tessera::detail
