#include <tessera/framework/tensor/internal/scatter_bucket.hpp>

#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/reduce_dtype.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/deferred_value.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

namespace tessera::detail {
namespace {

/// Returns the reduce-scatter that alone leads to the target's layout, if there is one.
std::optional<RelayoutStep> only_step(const DTensor& value, const ShardingPtr& target) {
  const std::vector<RelayoutStep> steps = plan_relayout(value.layout(), target->layout);
  if (steps.size() != 1 || steps[0].kind != RelayoutStep::Kind::reduce_scatter) return {};
  return steps[0];
}

}  // namespace

/// The exchange, and then the shards.
class ScatterBucket::Exchange {
 public:
  JointStep step;
  std::vector<ShardingPtr> targets;

  const DTensor& shard(size_t value) {
    if (shards_.empty()) {
      shards_ = step.finish();
      for (size_t v = 0; v < shards_.size(); ++v) shards_[v] = relayout_to(shards_[v], targets[v]);
    }
    return shards_[value];
  }

 private:
  std::vector<DTensor> shards_;
};

/// A shard that arrives.
class ScatterBucket::Arriving final : public DeferredValue {
 public:
  Arriving(std::shared_ptr<Exchange> exchange, size_t value)
      : exchange_(std::move(exchange)), value_(value) {}
  DTensor compute() const override { return exchange_->shard(value_); }
  bool keeps_id() const override { return true; }

 private:
  std::shared_ptr<Exchange> exchange_;
  size_t value_;
};

ScatterBucket::ScatterBucket() : exchange_(std::make_shared<Exchange>()) {}

bool ScatterBucket::fits(const DTensor& value, const ShardingPtr& target) const {
  const std::optional<RelayoutStep> step = only_step(value, target);
  return step && exchange_->step.fits(value, *step);
}

CommEntry ScatterBucket::add(const DTensor& value, const ShardingPtr& target, const MemoryOrder&) {
  const RelayoutStep step = only_step(value, target).value();
  exchange_->step.add(value, step);
  exchange_->targets.push_back(
      intern(value.shape(), value.dtype(), target->layout, target->groups));
  const Layout& layout = value.layout();
  values_.push_back(value);
  bytes_ +=
      shard_bytes(value.shape(), reduction_dtype(value.dtype(), layout.partial_kind()), layout);
  return step_entry(value.shape(), value.dtype(), layout, step);
}

PlannedReductions ScatterBucket::planned_memory() const {
  using Change = PlannedReduction::Change;
  PlannedReductions planned;
  std::vector<PlannedReduction> replaced;
  for (size_t v = 0; v < values_.size(); ++v) {
    const DTensor& value = values_[v];
    const ShardingPtr& target = exchange_->targets[v];
    const RelayoutStep step = only_step(value, target).value();
    const std::string dims = step_entry(value.shape(), value.dtype(), value.layout(), step).dims;
    const at::ScalarType wide = reduction_dtype(value.dtype(), value.layout().partial_kind());
    const ShardingPtr sent = intern(value.shape(), wide, value.layout()),
                      shard = intern(value.shape(), wide, target->layout);
    const bool cast = wide != value.dtype(), packed = values_.size() > 1 || step.axis != 0;
    if (cast) planned.at_start.push_back({Change::held, sent});
    if (packed) planned.at_start.push_back({Change::held, sent, value.id(), dims});
    planned.at_start.push_back({Change::held, shard});
    replaced.push_back({Change::released, cast ? sent : shard});
    replaced.push_back({Change::replaced, target, value.id()});
    if (!packed) replaced.push_back({Change::held, sent, value.id(), dims});
    planned.at_end.push_back({Change::released, sent, value.id(), dims});
    if (cast) planned.at_end.push_back({Change::released, shard});
  }
  planned.at_start.insert(planned.at_start.end(), replaced.begin(), replaced.end());
  return planned;
}

void ScatterBucket::start() {
  CommLog unused;
  const CommLogScope hidden(unused);
  // Only gradients are put into buckets.
  const DeviceMemory::As gradients(MemoryUse::gradients);
  exchange_->step.start();
  for (size_t v = 0; v < values_.size(); ++v) {
    values_[v].replace(
        DeferredValue::make(exchange_->targets[v], std::make_shared<Arriving>(exchange_, v)));
  }
}

bool ScatterBucket::done() const { return exchange_->step.done(); }

void ScatterBucket::wait() { exchange_->step.wait(); }

void ScatterBucket::finish() {
  for (const DTensor& value : values_) {
    DeferredValue::compute_now(value);
    DeviceMemory::label(value, MemoryUse::gradients);
  }
  values_.clear();
  bytes_ = 0;
  exchange_ = std::make_shared<Exchange>();
}

}  // namespace tessera::detail
