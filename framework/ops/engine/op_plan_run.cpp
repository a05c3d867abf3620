#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/comm/communicator.hpp>
#include <tessera/framework/ops/engine/op_plan.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/execution.hpp>
#include <tessera/framework/tensor/placement.hpp>
#include <tessera/framework/tensor/relayout.hpp>

namespace tessera {
namespace {

/// Blocks of which none is absent: a window reads parts of several.
Blocks complete(const Sharding& sharding, Blocks blocks) {
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (blocks[b].defined()) continue;
    blocks[b] = reduce_identity(sharding.layout.pending_kind(),
                                extents(sharding.blocks[b].intervals),
                                block_options(sharding, sharding.blocks[b]));
  }
  return blocks;
}

}  // namespace

std::vector<DTensor> OpPlan::run(std::span<const DTensor> in) {
  std::vector<DTensor> values(in.begin(), in.end());
  for (size_t i = 0; i < values.size(); ++i) {
    if (!(values[i].layout() == propagation_.inputs[i])) {
      values[i] = relayout_value(values[i], propagation_.inputs[i]);
    }
  }
  if (!prepared_) {
    std::vector<ShardingPtr> ready;
    for (const DTensor& value : values) ready.push_back(value.sharding());
    prepare(std::move(ready));
  }
  std::vector<Blocks> blocks;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].sharding() != ready_[i]) values[i] = relayout_to(values[i], ready_[i]);
    blocks.push_back(values[i].blocks());
  }
  for (const Window& window : windows_) {
    const Sharding& sharding = *ready_[window.input];
    Blocks& input = blocks[window.input];
    input = gather_intervals(sharding, complete(sharding, std::move(input)), window.shards,
                             window.wanted, info_.fill(op_.get()));
  }
  std::vector<Blocks> out;
  for (const ShardingPtr& sharding : out_) out.emplace_back(sharding->blocks.size());
  run_blocks(devices_, parallel_, [&](int64_t p) {
    const DeviceMemory::For device(p);
    run_point(points_[size_t(p)], blocks, out);
  });
  std::vector<DTensor> results;
  for (size_t o = 0; o < out_.size(); ++o) results.emplace_back(out_[o], std::move(out[o]));
  return results;
}

at::Tensor OpPlan::identity(const Point& point, size_t output) const {
  const at::TensorOptions options =
      at::TensorOptions().dtype(out_specs_[output].dtype).device(point.device);
  return reduce_identity(rule_.reduce, extents(point.out_ranges[output]), options);
}

/// Collects forward's inputs; false if every addend is absent, so that the result is, too.
bool OpPlan::gather_tensors(const Point& point, const std::vector<Blocks>& in,
                          Tensors& tensors) const {
  bool any_absent = false, any_present = rule_.through.empty();
  for (size_t i = 0; i < point.operands.size(); ++i) {
    const Operand& operand = point.operands[i];
    at::Tensor tensor = operand.absent ? at::Tensor() : in[i][size_t(operand.block)];
    for (const auto& [axis, cut] : operand.cuts) {
      if (tensor.defined()) tensor = tensor.narrow(axis, cut.lo, cut.size());
    }
    const bool joins = std::find(rule_.through.begin(), rule_.through.end(), int(i)) !=
                       rule_.through.end();
    any_absent = any_absent || !tensor.defined();
    any_present = any_present || (joins && tensor.defined());
    tensors.push_back(std::move(tensor));
  }
  if (!any_present) return false;
  for (size_t i = 0; any_absent && i < tensors.size(); ++i) {
    if (tensors[i].defined()) continue;
    tensors[i] = reduce_identity(ready_[i]->layout.pending_kind(), extents(point.ranges[i]),
                                 at::TensorOptions().dtype(specs_[i].dtype).device(point.device));
  }
  return true;
}

void OpPlan::run_point(const Point& point, const std::vector<Blocks>& in,
                     std::vector<Blocks>& out) const {
  if (point.empty || point.absent) {
    for (size_t o = 0; o < out.size(); ++o) {
      const bool addend = point.absent && out_[o]->layout.is_pending();
      if (!addend) out[o][size_t(point.out_blocks[o])] = identity(point, o);
    }
    return;
  }
  Tensors tensors;
  if (!gather_tensors(point, in, tensors)) return;
  const LocalArgs args({tensors.data(), tensors.size()}, point.ranges, point.out_ranges, specs_);
  const ProfileSpan span(SpanKind::aten, info_.name);
  Tensors results = info_.forward(op_.get(), args);
  for (size_t o = 0; o < out.size(); ++o) {
    out[o][size_t(point.out_blocks[o])] = std::move(results[o]);
  }
}

}  // namespace tessera
