#pragma once

#include <tessera/framework/nn/metric.hpp>
#include <tessera/layers/experts/internal/expert_routing.hpp>

namespace tessera::detail {

/// What routing adds to, without labels. Totals are whole numbers, the same on every mesh.
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

/// How evenly experts are chosen: the entropy of the shares of choices, over log E. 1: all alike;
/// 0: always the same. Totals: the choices of each expert.
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

/// The share of choices that found no slot. Totals: choices, and those that have one.
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
