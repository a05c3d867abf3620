#include <tessera/framework/ops/engine/op_plan.hpp>

#include <algorithm>
#include <set>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/ops/engine/block_grid.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

namespace tessera::detail {
namespace {

double work(const Rule& rule, const Specs& specs) {
  double product = 1;
  std::set<int> seen;
  for (size_t i = 0; i < rule.in.size(); ++i) {
    for (size_t a = 0; a < rule.in[i].size(); ++a) {
      const int factor = rule.in[i][a];
      if (factor == Rule::none || !seen.insert(factor).second) continue;
      product *= static_cast<double>(specs[i].shape[a]);
    }
  }
  return product;
}

}  // namespace

OpPlan::OpPlan(const OpInfo& info, const void* op, std::vector<ShardingPtr> in, uint32_t parameters)
    : info_(info),
      op_(info.copy(op)),
      in_(std::move(in)),
      parameters_(parameters),
      policy_(block_policy()) {
  std::vector<Layout> layouts;
  for (const ShardingPtr& sharding : in_) {
    specs_.push_back({sharding->shape, sharding->dtype});
    layouts.push_back(sharding->layout);
    if (!(sharding->mesh() == in_[0]->mesh())) {
      throw MeshError(std::string(info.name), "all operands must be on one mesh",
                      in_[0]->mesh().describe() + " and " + sharding->mesh().describe(),
                      "copy one to the other mesh with copy_to_mesh");
    }
  }
  out_specs_ = info.infer(op, specs_);
  rule_ = info.rule(op, specs_);
  propagation_ = propagate(rule_, specs_, out_specs_, layouts, parameters);
  parallel_ = work(rule_, specs_) >= inline_elements;
}

bool OpPlan::matches(const OpInfo& info, const void* op, std::span<const DTensor> in,
                     uint32_t parameters) const {
  if (&info != &info_ || in.size() != in_.size() || parameters != parameters_) return false;
  if (policy_ != block_policy()) return false;
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i].sharding() != in_[i]) return false;
  }
  return info.equal(op, op_.get());
}

bool OpPlan::is_window(size_t input, size_t axis) const {
  const int factor = rule_.in[input][axis];
  return info_.windowed && factor != Rule::none &&
         rule_.factors[size_t(factor)] == FactorKind::window;
}

/// Whether a window axis is replicated in this input but sharded in another tensor: every point
/// then slices its interval locally.
bool OpPlan::is_replicated_window(size_t input, size_t axis) const {
  if (!is_window(input, axis)) return false;
  const auto is_sharded = [&](const std::vector<int>& factors, const Layout& layout) {
    for (size_t a = 0; a < factors.size(); ++a) {
      if (factors[a] == rule_.in[input][axis] && !layout.axis(int64_t(a)).empty()) return true;
    }
    return false;
  };
  if (!propagation_.inputs[input].axis(int64_t(axis)).empty()) return false;
  bool any = is_sharded(rule_.out[0], propagation_.outputs[0]);
  for (size_t i = 0; i < rule_.in.size(); ++i) {
    any = any || is_sharded(rule_.in[i], propagation_.inputs[i]);
  }
  return any;
}

void OpPlan::prepare(std::vector<ShardingPtr> ready) {
  ready_ = std::move(ready);
  choose_groups();
  out_.clear();
  for (size_t o = 0; o < out_specs_.size(); ++o) {
    const Layout& layout = propagation_.outputs[o];
    out_.push_back(
        intern(out_specs_[o].shape, out_specs_[o].dtype, layout, used_groups(layout, groups_)));
  }
  plan_windows();
  add_points();
  prepared_ = true;
}

/// Makes the operation's grid as fine as its finest operand.
void OpPlan::choose_groups() {
  groups_ = Groups(ready_[0]->groups.size(), 1);
  for (const ShardingPtr& sharding : ready_) {
    for (size_t d = 0; d < groups_.size(); ++d) {
      groups_[d] = std::max(groups_[d], sharding->groups[d]);
    }
  }
  for (Groups before; before != groups_;) {
    before = groups_;
    for (const ShardingPtr& sharding : ready_) refine(sharding->layout, groups_);
    for (const Layout& layout : propagation_.outputs) refine(layout, groups_);
  }
}

/// Returns the interval of the axis that determines a window: the output's, else the last input's.
Interval OpPlan::reference(int factor, const std::vector<Interval>& coordinates) const {
  for (size_t a = 0; a < rule_.out[0].size(); ++a) {
    if (rule_.out[0][a] == factor) {
      return axis_interval(propagation_.outputs[0], int64_t(a), out_specs_[0].shape[a],
                           coordinates);
    }
  }
  for (size_t i = rule_.in.size(); i-- > 0;) {
    for (size_t a = 0; a < rule_.in[i].size(); ++a) {
      if (rule_.in[i][a] == factor) {
        return axis_interval(ready_[i]->layout, int64_t(a), specs_[i].shape[a], coordinates);
      }
    }
  }
  return {};
}

void OpPlan::plan_windows() {
  windows_.clear();
  for (size_t i = 0; i < rule_.in.size(); ++i) {
    for (size_t a = 0; a < rule_.in[i].size(); ++a) {
      if (!is_window(i, a) || is_replicated_window(i, a)) continue;
      const Layout& layout = ready_[i]->layout;
      // A windowed input is grouped as the grid is.
      ready_[i] = intern(specs_[i].shape, specs_[i].dtype, layout, used_groups(layout, groups_));
      // By shard, not by block: logs must not depend on how shards are merged into blocks.
      Window window{i, layout_shards(*ready_[i], int64_t(a)), {}};
      std::vector<Interval> range(groups_.size(), {0, 1});
      const std::vector<int>& dims = layout.axis(int64_t(a));
      for (int64_t s = 0; s < int64_t(window.shards.have.size()); ++s) {
        int64_t rest = s;
        for (size_t k = dims.size(); k-- > 0;) {
          const int64_t coordinate = rest % layout.mesh().dim_size(dims[k]);
          rest /= layout.mesh().dim_size(dims[k]);
          range[size_t(dims[k])] = {coordinate, coordinate + 1};
        }
        const Interval out = reference(rule_.in[i][a], range);
        window.targets.push_back(out.empty() ? Interval{}
                                             : info_.window(op_.get(), i, int64_t(a), out, specs_));
      }
      if (window.targets != window.shards.have) windows_.push_back(std::move(window));
    }
  }
}

void OpPlan::add_points() {
  points_.clear();
  devices_.clear();
  const Mesh& mesh = ready_[0]->mesh();
  const size_t rank = groups_.size();
  std::vector<int64_t> first(rank), count(rank);
  int64_t total = 1;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t size = mesh.dim_size(int(d));
    first[d] = group_of(size, groups_[d], mesh.local_box()[d].lo);
    const bool none = mesh.local_box()[d].empty();
    count[d] = none ? 0 : group_of(size, groups_[d], mesh.local_box()[d].hi - 1) - first[d] + 1;
    total *= count[d];
  }
  for (int64_t p = 0; p < total; ++p) {
    std::vector<Interval> coordinates(rank);
    std::vector<int64_t> grid_index(rank);
    int64_t rest = p;
    for (size_t d = rank; d-- > 0;) {
      grid_index[d] = first[d] + rest % count[d];
      coordinates[d] = group_range(mesh.dim_size(int(d)), groups_[d], grid_index[d]);
      rest /= count[d];
    }
    points_.push_back(make_point(coordinates));
    points_.back().grid_index = std::move(grid_index);
    devices_.push_back(points_.back().device);
  }
}

std::vector<Interval> OpPlan::needed_ranges(size_t input,
                                            const std::vector<Interval>& coordinates) const {
  std::vector<Interval> needed;
  for (size_t a = 0; a < specs_[input].shape.size(); ++a) {
    if (is_window(input, a)) {
      needed.push_back(info_.window(op_.get(), input, int64_t(a),
                                    reference(rule_.in[input][a], coordinates), specs_));
    } else {
      needed.push_back(
          axis_interval(ready_[input]->layout, int64_t(a), specs_[input].shape[a], coordinates));
    }
  }
  return needed;
}

OpPlan::Operand OpPlan::make_operand(size_t input, const std::vector<Interval>& coordinates,
                                     const std::vector<int64_t>& at,
                                     const std::vector<Interval>& needed) const {
  const Sharding& sharding = *ready_[input];
  Operand operand;
  operand.block = sharding.block_of(at);
  const BlockInfo& block = sharding.blocks[size_t(operand.block)];
  for (size_t a = 0; a < needed.size(); ++a) {
    const Interval have = block.intervals[a];
    const bool fetched = is_window(input, a) && !is_replicated_window(input, a);
    if (fetched || needed[a] == have) continue;
    // An empty interval may be out of range.
    const int64_t lo = needed[a].empty() ? 0 : needed[a].lo - have.lo;
    operand.slices.push_back({int64_t(a), {lo, lo + std::max<int64_t>(needed[a].size(), 0)}});
  }
  for (size_t d = 0; d < groups_.size(); ++d) {
    // A partial sum that covers several points is used by the first of them only.
    if (!(sharding.layout.partial_dims() >> d & 1)) continue;
    const int64_t size = sharding.mesh().dim_size(int(d));
    const int64_t owner = group_range(size, sharding.groups[d], block.group[d]).lo;
    operand.absent = operand.absent || owner != coordinates[d].lo;
  }
  return operand;
}

OpPlan::Point OpPlan::make_point(const std::vector<Interval>& coordinates) const {
  const Mesh& mesh = ready_[0]->mesh();
  std::vector<int64_t> at;
  for (size_t d = 0; d < coordinates.size(); ++d) {
    at.push_back(std::max(coordinates[d].lo, mesh.local_box()[d].lo));
  }
  Point point;
  bool input_empty = false;
  for (size_t i = 0; i < ready_.size(); ++i) {
    const std::vector<Interval> needed = needed_ranges(i, coordinates);
    for (size_t a = 0; a < needed.size(); ++a) {
      const bool nothing =
          is_window(i, a) ? reference(rule_.in[i][a], coordinates).empty() : needed[a].empty();
      input_empty = input_empty || nothing;
    }
    point.operands.push_back(make_operand(i, coordinates, at, needed));
    point.ranges.push_back(needed);
  }
  for (const ShardingPtr& sharding : out_) {
    const int block = sharding->block_of(at);
    point.out_blocks.push_back(block);
    point.out_ranges.push_back(sharding->blocks[size_t(block)].intervals);
    point.device = block_device(mesh, sharding->blocks[size_t(block)]);
    point.empty = point.empty || sharding->blocks[size_t(block)].empty;
  }
  point.absent = input_empty && !point.empty;
  return point;
}

namespace {

/// Fills absent blocks with the reduction's identity, as a window may read several blocks.
Blocks complete(const Sharding& sharding, Blocks blocks) {
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (blocks[b].defined()) continue;
    const DeviceMemory::For memory(sharding.blocks[b].devices.front());
    blocks[b] =
        reduce_identity(sharding.layout.partial_kind(), extents(sharding.blocks[b].intervals),
                        block_options(sharding, sharding.blocks[b]));
  }
  return blocks;
}

}  // namespace

std::vector<DTensor> OpPlan::run(std::span<const DTensor> in) {
  const c10::InferenceMode inference;
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
    blocks.push_back(info_.takes_rows ? values[i].stored_blocks() : values[i].blocks());
  }
  for (const Window& window : windows_) {
    const Sharding& sharding = *ready_[window.input];
    Blocks& input = blocks[window.input];
    input = gather_intervals(sharding, complete(sharding, std::move(input)), window.shards,
                             window.targets, info_.fill(op_.get()));
  }
  std::vector<Blocks> out;
  for (const ShardingPtr& sharding : out_) out.emplace_back(sharding->blocks.size());
  if (info_.forward_all) {
    run_all(blocks, out);
  } else {
    run_blocks(devices_, parallel_, [&](int64_t p) {
      const DeviceMemory::For device(p);
      run_point(points_[size_t(p)], blocks, out);
    });
  }
  std::vector<DTensor> results;
  for (size_t o = 0; o < out_.size(); ++o) results.emplace_back(out_[o], std::move(out[o]));
  return results;
}

at::Tensor OpPlan::identity(const Point& point, size_t output) const {
  const at::TensorOptions options =
      at::TensorOptions().dtype(out_specs_[output].dtype).device(point.device);
  return reduce_identity(rule_.reduce, extents(point.out_ranges[output]), options);
}

/// Collects forward()'s inputs. Returns false if every partial sum is absent, and so is the result.
bool OpPlan::gather_tensors(const Point& point, const std::vector<Blocks>& in,
                            Tensors& tensors) const {
  bool any_absent = false, any_present = rule_.through.empty();
  for (size_t i = 0; i < point.operands.size(); ++i) {
    const Operand& operand = point.operands[i];
    at::Tensor tensor = operand.absent ? at::Tensor() : in[i][size_t(operand.block)];
    if (tensor.defined() && !operand.slices.empty()) {
      if (tensor.is_sparse()) tensor = tensor.to_dense();
      for (const auto& [axis, slice] : operand.slices) {
        tensor = tensor.narrow(axis, slice.lo, slice.size());
      }
    }
    const bool joins =
        std::find(rule_.through.begin(), rule_.through.end(), int(i)) != rule_.through.end();
    any_absent = any_absent || !tensor.defined();
    any_present = any_present || (joins && tensor.defined());
    tensors.push_back(std::move(tensor));
  }
  if (!any_present) return false;
  for (size_t i = 0; any_absent && i < tensors.size(); ++i) {
    if (tensors[i].defined()) continue;
    tensors[i] = reduce_identity(ready_[i]->layout.partial_kind(), extents(point.ranges[i]),
                                 at::TensorOptions().dtype(specs_[i].dtype).device(point.device));
  }
  return true;
}

/// Returns whether a point has nothing to compute; fills its outputs, but for absent partial sums.
bool OpPlan::fill_if_empty(const Point& point, std::vector<Blocks>& out) const {
  if (!point.empty && !point.absent) return false;
  for (size_t o = 0; o < out.size(); ++o) {
    const bool partial = point.absent && out_[o]->layout.is_partial();
    if (!partial) out[o][size_t(point.out_blocks[o])] = identity(point, o);
  }
  return true;
}

/// Calls forward_all() even if there is nothing to compute here: others' data may pass through.
void OpPlan::run_all(const std::vector<Blocks>& in, std::vector<Blocks>& out) const {
  std::vector<Tensors> tensors(points_.size());
  BlockGrid grid{specs_, propagation_.inputs, groups_};
  grid.devices = devices_;
  grid.parallel = parallel_;
  for (size_t p = 0; p < points_.size(); ++p) {
    const Point& point = points_[p];
    gather_tensors(point, in, tensors[p]);
    grid.blocks.emplace_back(std::span(tensors[p].data(), tensors[p].size()), point.ranges,
                             point.out_ranges, specs_);
    grid.block_groups.push_back(point.grid_index);
  }
  std::vector<Tensors> results = info_.forward_all(op_.get(), grid);
  for (size_t p = 0; p < points_.size(); ++p) {
    if (fill_if_empty(points_[p], out)) continue;
    for (size_t o = 0; o < out.size(); ++o) {
      out[o][size_t(points_[p].out_blocks[o])] = std::move(results[p][o]);
    }
  }
}

void OpPlan::run_point(const Point& point, const std::vector<Blocks>& in,
                       std::vector<Blocks>& out) const {
  if (fill_if_empty(point, out)) return;
  Tensors tensors;
  if (!gather_tensors(point, in, tensors)) return;
  const LocalArgs args({tensors.data(), tensors.size()}, point.ranges, point.out_ranges, specs_);
  const ProfileSpan span(SpanKind::aten, info_.name);
  Tensors results = info_.forward(op_.get(), args);
  for (size_t o = 0; o < out.size(); ++o) {
    out[o][size_t(point.out_blocks[o])] = std::move(results[o]);
  }
}

}  // namespace tessera::detail
