#include <tessera/layers/experts/internal/expert_metrics.hpp>

#include <cmath>
#include <numeric>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera::detail {

void LoadEntropy::add_routing(const Routing& routing) { add(routing.requested); }

double LoadEntropy::result(const std::vector<double>& totals) const {
  const double all = std::accumulate(totals.begin(), totals.end(), 0.0);
  if (all == 0 || experts_ == 1) return 0;
  double entropy = 0;
  for (const double count : totals) {
    if (count > 0) entropy -= count / all * std::log(count / all);
  }
  return entropy / std::log(static_cast<double>(experts_));
}

void LoadEntropy::check_totals(size_t count) const {
  check_count(count == static_cast<size_t>(experts_), str("one for each of ", experts_, " experts"),
              count);
}

void DroppedShare::add_routing(const Routing& routing) {
  const NoRecording no_tape;
  add(ops::concat({ops::reshape(ops::sum(routing.requested), {1}), routing.assigned}));
}

double DroppedShare::result(const std::vector<double>& totals) const {
  return totals.size() < 2 || totals[0] == 0 ? 0 : 1 - totals[1] / totals[0];
}

}  // namespace tessera::detail
