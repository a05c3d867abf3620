#include <tessera/framework/nn/metric.hpp>

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Adds two vectors of totals, the shorter one padded with 0.
DTensor sum_of(const DTensor& a, const DTensor& b) {
  const int64_t missing = a.size(0) - b.size(0);
  return ops::add(ops::pad(a, 0, 0, std::max<int64_t>(-missing, 0)),
                  ops::pad(b, 0, 0, std::max<int64_t>(missing, 0)));
}

}  // namespace

void Metric::add(const DTensor& totals, const std::vector<double>& known) {
  const auto in = std::span(&totals, totals.defined() ? 1 : 0);
  const auto add_batch = [this, known](std::span<const DTensor> batch) {
    const NoRecording no_tape;
    if (!batch.empty()) state_ = state_.defined() ? sum_of(state_, batch[0]) : batch[0];
    const size_t first = batch.empty() ? 0 : static_cast<size_t>(batch[0].numel());
    if (!known.empty()) known_.resize(std::max(known_.size(), first + known.size()));
    for (size_t i = 0; i < known.size(); ++i) known_[first + i] += known[i];
  };
  if (is_abstract()) {
    if (OpListener* const listener = tracer()) listener->action(in, add_batch, Changes::sums);
    return;
  }
  traced(in, add_batch, Changes::sums);
}

void Metric::check_count(bool fits, const std::string& expected, size_t count) const {
  if (fits) return;
  throw ConfigError(name(), str("restored totals must fit the metric: ", expected), str(count),
                    "create it with the options that it was saved with");
}

void Metric::restore(std::vector<double> totals) {
  if (!totals.empty()) check_totals(totals.size());
  stop_tracing("a metric was reset");
  state_ = DTensor();
  known_ = std::move(totals);
}

Metric::Unresolved Metric::unresolved() const {
  // Another handle, which stays as it is when the state is resolved.
  if (!state_.defined()) return {.known = known_};
  return {DTensor(state_.sharding(), state_.blocks()), known_};
}

void Metric::restore_unresolved(const Unresolved& totals) {
  const size_t sums = totals.sums.defined() ? static_cast<size_t>(totals.sums.numel()) : 0;
  const size_t count = std::max(sums, totals.known.size());
  if (count > 0) check_totals(count);
  stop_tracing("a metric was reset");
  state_ = totals.sums;
  known_ = totals.known;
}

double Metric::result() const { return result(totals({this})[0]); }

std::vector<double> Metric::result_values() const { return result_values(totals({this})[0]); }

std::vector<std::vector<double>> Metric::totals(const std::vector<const Metric*>& metrics) {
  const NoRecording no_tape;
  // The metrics of a model in stages are on the meshes of several stages.
  std::vector<std::pair<Mesh, std::vector<DTensor>>> by_mesh;
  std::vector<size_t> group_of;
  for (const Metric* metric : metrics) {
    group_of.push_back(by_mesh.size());
    // If the state itself became replicated, every later batch would have to be reduced to be added
    // to it.
    const DTensor state = metric->unresolved().sums;
    if (!state.defined()) continue;
    const auto known = std::find_if(by_mesh.begin(), by_mesh.end(),
                                    [&](const auto& group) { return group.first == state.mesh(); });
    group_of.back() = static_cast<size_t>(known - by_mesh.begin());
    if (known == by_mesh.end()) by_mesh.push_back({state.mesh(), {}});
    by_mesh[group_of.back()].second.push_back(state);
  }
  std::vector<at::Tensor> sums;
  for (const auto& [mesh, states] : by_mesh) {
    sums.push_back((states.size() == 1 ? states[0] : ops::concat(states)).full());
  }
  std::vector<std::vector<double>> all;
  std::vector<int64_t> next(by_mesh.size());
  for (size_t m = 0; m < metrics.size(); ++m) {
    const Metric& metric = *metrics[m];
    std::vector<double> totals = metric.known_;
    const int64_t size = metric.state_.defined() ? metric.state_.numel() : 0;
    totals.resize(std::max(totals.size(), static_cast<size_t>(size)));
    const size_t group = group_of[m];
    for (int64_t i = 0; i < size; ++i) {
      totals[size_t(i)] += sums[group].const_data_ptr<double>()[next[group]++];
    }
    all.push_back(std::move(totals));
  }
  return all;
}

std::vector<double> detail::results(const std::vector<std::shared_ptr<Metric>>& metrics) {
  std::vector<const Metric*> plain;
  plain.reserve(metrics.size());
  for (const auto& metric : metrics) plain.push_back(metric.get());
  const auto totals = Metric::totals(plain);
  std::vector<double> values;
  for (size_t i = 0; i < metrics.size(); ++i) values.push_back(metrics[i]->result(totals[i]));
  return values;
}

}  // namespace tessera
