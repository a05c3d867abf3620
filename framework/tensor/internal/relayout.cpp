#include <tessera/framework/tensor/internal/relayout.hpp>

#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/mesh/internal/view.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/relayout_step.hpp>
#include <tessera/framework/tensor/internal/row_sparse.hpp>

namespace tessera::detail {
namespace {

/// Assembles a block of another sharding of the same layout, on that block's device: a view if one
/// block of `value` covers it, else a copy.
at::Tensor assemble(const DTensor& value, const BlockInfo& want) {
  const DeviceMemory::For memory(want.devices.front());
  Shape shape;
  for (Interval i : want.intervals) shape.push_back(i.size());
  const at::TensorOptions options = block_options(*value.sharding(), want);
  if (want.empty) return at::empty(shape, options);
  at::Tensor out;
  for (size_t b = 0; b < value.blocks().size(); ++b) {
    const BlockInfo& have = value.sharding()->blocks[b];
    at::Tensor piece = value.blocks()[b];
    std::vector<Interval> common;
    bool covers = true, meets = true;
    for (size_t a = 0; a < want.intervals.size(); ++a) {
      common.push_back(intersect(have.intervals[a], want.intervals[a]));
      covers = covers && common[a] == want.intervals[a];
      meets = !common[a].empty();
      if (!meets) break;
      piece = piece.narrow(int64_t(a), common[a].lo - have.intervals[a].lo, common[a].size());
    }
    if (covers) return moved_to(piece, options.device());
    if (!meets) continue;
    if (!out.defined()) out = at::empty(shape, options);
    at::Tensor slot = out;
    for (size_t a = 0; a < common.size(); ++a) {
      slot = slot.narrow(int64_t(a), common[a].lo - want.intervals[a].lo, common[a].size());
    }
    slot.copy_(piece);
  }
  return out;
}

void check_target(const DTensor& value, const Layout& layout) {
  if (!layout.defined() || !(layout.mesh() == value.mesh())) {
    throw MeshError("relayout", "the layout must be on the value's mesh " + value.mesh().describe(),
                    layout.defined() ? "mesh " + layout.mesh().describe() : "no layout",
                    "use copy_to_mesh to move a value to another mesh");
  }
  if (layout.rank() != value.rank()) {
    throw LayoutError("relayout", "a layout names every axis of its tensor",
                      layout.describe() + " for shape " + tessera::to_string(value.shape()),
                      str("give it ", value.rank(), " entries"));
  }
}

/// Whether a value has no blocks here, although the step is no plan: other processes move it.
bool is_moved_by_others(const DTensor& value) {
  return is_elsewhere(value.mesh()) && !is_abstract();
}

}  // namespace

DTensor relayout_value(const DTensor& value, const Layout& layout) {
  check_target(value, layout);
  if (value.layout() == layout) return value;
  if (is_moved_by_others(value)) {
    const Layout before = value.layout();
    for (const RelayoutStep& step : plan_relayout(before, layout)) {
      // A reduction is that of all handles, as below.
      if (!before.is_partial() || !(step.after == before.resolved())) continue;
      value.replace(DTensor(intern(value.shape(), value.dtype(), step.after), {}));
    }
    return DTensor(intern(value.shape(), value.dtype(), layout), {});
  }
  const ProfileSpan span(SpanKind::op, "relayout");
  const c10::InferenceMode inference;
  DTensor now = value;
  for (const RelayoutStep& step : plan_relayout(value.layout(), layout)) {
    now = run_step(now, step);
    if (!value.layout().is_partial() || now.layout().is_partial()) continue;
    if (now.layout() == value.layout().resolved()) value.replace(now);
  }
  return now;
}

std::vector<DTensor> relayout_values(const std::vector<DTensor>& values,
                                     const std::vector<Layout>& layouts) {
  struct Gather {
    JointStep step;
    std::vector<size_t> values;
  };
  std::vector<DTensor> results(values.size());
  std::vector<Gather> gathers;
  for (size_t v = 0; v < values.size(); ++v) {
    check_target(values[v], layouts[v]);
    const std::vector<RelayoutStep> steps = plan_relayout(values[v].layout(), layouts[v]);
    if (is_moved_by_others(values[v]) || steps.size() != 1 ||
        steps[0].kind != RelayoutStep::Kind::all_gather) {
      results[v] = relayout_value(values[v], layouts[v]);
      continue;
    }
    auto fitting = std::find_if(gathers.begin(), gathers.end(), [&](const Gather& gather) {
      return gather.step.fits(values[v], steps[0]);
    });
    if (fitting == gathers.end()) fitting = gathers.insert(fitting, Gather());
    fitting->step.add(values[v], steps[0]);
    fitting->values.push_back(v);
  }
  const ProfileSpan span(SpanKind::op, "relayout");
  const c10::InferenceMode inference;
  for (Gather& gather : gathers) {
    gather.step.start();
    const std::vector<DTensor> gathered = gather.step.finish();
    for (size_t i = 0; i < gathered.size(); ++i) results[gather.values[i]] = gathered[i];
  }
  return results;
}

DTensor relayout_to(const DTensor& value, const ShardingPtr& target) {
  if (value.sharding() == target) return value;
  if (is_moved_by_others(value)) return DTensor(target, {});
  if (value.is_row_sparse() && !value.layout().is_partial()) return relayout_rows(value, target);
  const DTensor moved = relayout_value(value, target->layout);
  if (moved.sharding() == target) return moved;
  const ProfileSpan span(SpanKind::op, "recut");
  const c10::InferenceMode inference;
  if (target->layout.is_partial()) return split_blocks(moved, target);
  Blocks out;
  for (const BlockInfo& block : target->blocks) out.push_back(assemble(moved, block));
  return DTensor(target, std::move(out));
}

void resolve(const DTensor& value) {
  if (value.layout().is_partial()) relayout_value(value, value.layout().resolved());
}

}  // namespace tessera::detail
