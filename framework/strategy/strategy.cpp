#include <tessera/framework/strategy/strategy.hpp>

#include <algorithm>
#include <array>
#include <set>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

namespace tessera::detail {
namespace {

using strategy::default_strategy;
using strategy::Strategy;

/// Returns the thread's strategy in a scope of `strategy`; null for the default one.
const Strategy* entered(const Strategy& strategy) {
  const Strategy* const requested = &strategy == &default_strategy() ? nullptr : &strategy;
  const Strategy* const current = thread_state().strategy;
  if (!current || current == requested) return requested;
  throw StateError(strategy.name() + "::scope", "scopes of several strategies do not nest",
                   "scope() inside that of " + current->name(), "leave the other scope first");
}

}  // namespace

StrategyScope::StrategyScope(const Strategy& strategy)
    : strategy_(thread_state().strategy, entered(strategy)) {
  if (thread_state().strategy) mesh_.emplace(strategy.mesh_);
}

}  // namespace tessera::detail

namespace tessera::strategy {

using namespace tessera::detail;

namespace {

/// The strategy outside of all scopes.
class DefaultStrategy final : public Strategy {
 public:
  DefaultStrategy() : Strategy("DefaultStrategy", Mesh()) {}
};

bool is_sharded_over_batch(const DTensor& value, int64_t axis) {
  const std::vector<int>& dims = value.layout().axis(axis);
  return std::find(dims.begin(), dims.end(), value.mesh().find("batch")) != dims.end();
}

int64_t checked_axis(const char* where, const DTensor& value, int64_t axis) {
  if (axis >= -value.rank() && axis < value.rank()) return axis < 0 ? axis + value.rank() : axis;
  throw ShapeError(
      where, str("axis is one of the ", value.rank(), " of the value, ", to_string(value.shape())),
      str(axis), "name one of them");
}

void check_defined(const char* where, const DTensor& value) {
  if (value.defined()) return;
  throw StateError(where, "the value is a tensor", "an undefined one", "pass what run() returned");
}

/// Returns the sum of the shards of axis 0.
DTensor sum_of_shards(const DTensor& value) {
  const int64_t shards = value.layout().num_shards(0);
  const int64_t rows = value.shape()[0];
  if (rows % shards != 0) {
    throw ShapeError("reduce",
                     str("without an axis, all ", shards, " replicas must hold equally many rows"),
                     str(rows, " rows"), "pass an axis: 0 sums over all rows");
  }
  Shape split = {shards, rows / shards};
  split.insert(split.end(), value.shape().begin() + 1, value.shape().end());
  return ops::sum(ops::reshape(value, split), {0});
}

ReduceOp reduce_op(const std::string& op) {
  if (op == "SUM" || op == "sum") return ReduceOp::sum;
  if (op == "MEAN" || op == "mean") return ReduceOp::mean;
  const std::array<std::string, 2> known = {"SUM", "MEAN"};
  throw ConfigError("reduce, reduce_op", "must be \"SUM\" or \"MEAN\"", in_quotes(op),
                    suggestion(op, known));
}

}  // namespace

Strategy::Strategy(std::string name, const Mesh& mesh) : name_(std::move(name)), mesh_(mesh) {}

Mesh Strategy::mesh() const { return mesh_.defined() ? mesh_ : default_mesh(); }

LayoutMap Strategy::layouts() const { return LayoutMap(mesh()); }

int64_t Strategy::num_replicas_in_sync() const {
  const Mesh on = mesh();
  const int batch = on.find("batch");
  return batch < 0 ? 1 : on.dim_size(batch);
}

std::string Strategy::describe() const {
  std::vector<std::string> devices;
  for (const Device& device : mesh().local_devices()) devices.push_back(to_string(device));
  return str("Using ", name_, " with devices (", join(devices, ", "), ")");
}

std::unique_ptr<StrategyScope> Strategy::scope() const {
  return std::make_unique<StrategyScope>(*this);
}

DTensor Strategy::reduce(ReduceOp op, const DTensor& value, std::optional<int64_t> axis) const {
  check_defined("reduce", value);
  DTensor result = value;
  if (axis) {
    const int64_t along = checked_axis("reduce, axis", value, *axis);
    result = op == ReduceOp::sum ? ops::sum(value, {along}) : ops::mean(value, {along});
  } else {
    // Other values are global: what all replicas share, whether already resolved or not.
    const bool per_replica = value.rank() > 0 && is_sharded_over_batch(value, 0);
    if (per_replica) result = sum_of_shards(value);
    if (per_replica && op == ReduceOp::mean) {
      result = result / static_cast<double>(num_replicas_in_sync());
    }
  }
  return ops::relayout(result, Layout::replicated(result.mesh(), result.rank()));
}

DTensor Strategy::reduce(const std::string& op, const DTensor& value,
                         std::optional<int64_t> axis) const {
  return reduce(reduce_op(op), value, axis);
}

double Strategy::reduce(const std::string& op, double value) const {
  reduce_op(op);
  return value;
}

at::Tensor Strategy::gather(const DTensor& value, int64_t axis) const {
  check_defined("gather", value);
  const int64_t along = checked_axis("gather, axis", value, axis);
  if (num_replicas_in_sync() > 1 && !is_sharded_over_batch(value, along)) {
    throw LayoutError("gather",
                      str("the value must be sharded over the replicas along axis ", axis),
                      value.layout().describe(), "use full(): it is the same on all replicas");
  }
  // full() may share the value's memory.
  return value.full().clone();
}

std::vector<at::Tensor> Strategy::experimental_local_results(const DTensor& value) const {
  check_defined("experimental_local_results", value);
  resolve(value);
  const Mesh& mesh = value.mesh();
  const int batch = mesh.find("batch");
  std::set<int64_t> replicas;
  std::vector<at::Tensor> results;
  for (size_t device = 0; device < mesh.local_ids().size(); ++device) {
    const std::vector<int64_t> at = mesh.coordinates(mesh.local_ids()[device]);
    const int64_t replica = batch < 0 ? 0 : at[static_cast<size_t>(batch)];
    if (replicas.insert(replica).second) results.push_back(value.local(static_cast<int>(device)));
  }
  return results;
}

const Strategy& default_strategy() {
  static const DefaultStrategy strategy;
  return strategy;
}

const Strategy& get_strategy() {
  const Strategy* const current = thread_state().strategy;
  return current ? *current : default_strategy();
}

bool has_strategy() { return thread_state().strategy != nullptr; }

}  // namespace tessera::strategy
