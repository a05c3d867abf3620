#include <algorithm>
#include <limits>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/reduce_dtype.hpp>
#include <tessera/framework/tensor/internal/relayout_step.hpp>

namespace tessera::detail {
namespace {

using Dims = std::vector<int>;
using Kind = RelayoutStep::Kind;

bool starts_with(const Dims& dims, const Dims& prefix) {
  return prefix.size() <= dims.size() && std::equal(prefix.begin(), prefix.end(), dims.begin());
}

Dims tail(const Dims& dims, size_t from) {
  return {dims.begin() + static_cast<int64_t>(from), dims.end()};
}

class Planner {
 public:
  Planner(const Layout& from, const Layout& to) : now_(from), goal_(to) {}

  std::vector<RelayoutStep> plan() {
    // Slicing first leaves fewer bytes to reduce.
    while (slice() || reduce_scatter()) {
    }
    all_reduce();
    while (slice() || move() || gather()) {
    }
    return std::move(steps_);
  }

 private:
  void push(Kind kind, Dims dims, int64_t axis, int64_t to_axis, Layout after) {
    now_ = after;
    if (kind == Kind::all_gather && !steps_.empty() && steps_.back().kind == kind &&
        steps_.back().axis == axis) {
      // The dimension gathered before is less significant than this one.
      Dims& inner = steps_.back().dims;
      inner.insert(inner.begin(), dims.begin(), dims.end());
      steps_.back().after = std::move(after);
      return;
    }
    steps_.push_back({kind, std::move(dims), axis, to_axis, std::move(after)});
  }

  Layout with_axis(int64_t axis, Dims dims, DimMask pending) const {
    std::vector<Dims> axes = now_.axes();
    axes[static_cast<size_t>(axis)] = std::move(dims);
    return Layout::from_axes(now_.mesh(), std::move(axes), pending, now_.partial_kind());
  }

  DimMask open() const { return now_.partial_dims() & ~goal_.partial_dims(); }

  /// Returns the next dimensions over which the goal shards `axis`, up to the first that `fits`
  /// rejects.
  template <class Fits>
  Dims next_dims(int64_t axis, const Fits& fits) const {
    const Dims& have = now_.axis(axis);
    const Dims& want = goal_.axis(axis);
    Dims next;
    if (!starts_with(want, have)) return next;
    for (int dim : tail(want, have.size())) {
      if (!fits(DimMask{1} << dim)) break;
      next.push_back(dim);
    }
    return next;
  }

  /// Shards one axis over further dimensions that `fits` allows; these are pending no longer.
  template <class Fits>
  bool shard(Kind kind, const Fits& fits) {
    for (int64_t a = 0; a < now_.rank(); ++a) {
      const Dims next = next_dims(a, fits);
      if (next.empty()) continue;
      Dims joined = now_.axis(a);
      joined.insert(joined.end(), next.begin(), next.end());
      push(kind, next, a, a, with_axis(a, joined, now_.partial_dims() & ~mask_of(next)));
      return true;
    }
    return false;
  }

  bool slice() {
    return shard(Kind::slice, [this](DimMask dim) { return !(now_.used_dims() & dim); });
  }

  /// Reduce-scatters over pending dimensions that shard an axis in the goal.
  bool reduce_scatter() {
    return shard(Kind::reduce_scatter, [this](DimMask dim) { return (open() & dim) != 0; });
  }

  /// All-reduces over the remaining pending dimensions, which become replicated.
  void all_reduce() {
    if (const DimMask rest = open()) {
      push(Kind::all_reduce, dims_of(rest), 0, 0,
           now_.with_partial(now_.partial_dims() & ~rest, now_.partial_kind()));
    }
  }

  /// Moves dimensions from the end of one axis to the end of another by all-to-all.
  bool move() {
    for (int64_t a = 0; a < now_.rank(); ++a) {
      const Dims leaving = surplus(a);
      for (size_t first = 0; first < leaving.size(); ++first) {
        for (int64_t b = 0; b < now_.rank(); ++b) {
          if (b != a && move(a, b, tail(leaving, first))) return true;
        }
      }
    }
    return false;
  }

  bool move(int64_t from, int64_t to, const Dims& dims) {
    const DimMask moved = mask_of(dims);
    Dims next = next_dims(to, [moved](DimMask dim) { return (moved & dim) != 0; });
    if (next != dims) return false;
    std::vector<Dims> axes = now_.axes();
    axes[static_cast<size_t>(from)].resize(now_.axis(from).size() - dims.size());
    Dims& target = axes[static_cast<size_t>(to)];
    target.insert(target.end(), dims.begin(), dims.end());
    push(Kind::all_to_all, dims, from, to,
         Layout::from_axes(now_.mesh(), std::move(axes), now_.partial_dims(), now_.partial_kind()));
    return true;
  }

  /// All-gathers over one dimension only: the others may then move by all-to-all, which costs less.
  bool gather() {
    for (int64_t a = 0; a < now_.rank(); ++a) {
      if (surplus(a).empty()) continue;
      Dims remaining = now_.axis(a);
      const int last = remaining.back();
      remaining.pop_back();
      push(Kind::all_gather, {last}, a, a, with_axis(a, remaining, now_.partial_dims()));
      return true;
    }
    return false;
  }

  Dims surplus(int64_t axis) const {
    const Dims& have = now_.axis(axis);
    const Dims& want = goal_.axis(axis);
    size_t common = 0;
    while (common < have.size() && common < want.size() && have[common] == want[common]) ++common;
    return tail(have, common);
  }

  Layout now_;
  Layout goal_;
  std::vector<RelayoutStep> steps_;
};

std::vector<RelayoutStep> steps_between(const Layout& from, const Layout& to) {
  if (from == to) return {};
  const DimMask partial = to.partial_dims();
  if ((partial & ~from.partial_dims()) || (partial && to.partial_kind() != from.partial_kind())) {
    throw LayoutError("relayout", "only operations make partial sums, not a relayout",
                      from.describe() + " to " + to.describe(),
                      "relayout to a layout that is not a partial sum");
  }
  return Planner(from, to).plan();
}

/// Returns the dimensions that the mesh, a view, fixes, and along which the steps communicate.
DimMask fixed_dims_exchanged(const std::vector<RelayoutStep>& steps, const Mesh& mesh) {
  DimMask exchanged = 0;
  for (const RelayoutStep& step : steps) {
    if (step.kind != Kind::slice) exchanged |= mask_of(step.dims) & mesh.fixed_dims();
  }
  return exchanged;
}

}  // namespace

std::vector<RelayoutStep> plan_relayout(const Layout& from, const Layout& to) {
  const std::vector<RelayoutStep> steps = steps_between(from, to);
  const DimMask elsewhere = fixed_dims_exchanged(steps, from.mesh());
  if (elsewhere == 0) return steps;
  throw MeshError("relayout",
                  str("a view exchanges nothing along ", from.mesh().names(elsewhere),
                      ", of which it has one coordinate"),
                  str(from.describe(), " to ", to.describe(), " on mesh ", from.mesh().describe()),
                  "keep the value sharded or partial over that dimension, or compute it on the "
                  "whole mesh");
}

double relayout_bytes(const Shape& shape, at::ScalarType dtype, const Layout& from,
                      const Layout& to) {
  const std::vector<RelayoutStep> steps = steps_between(from, to);
  if (fixed_dims_exchanged(steps, from.mesh())) return std::numeric_limits<double>::infinity();
  double bytes = 0;
  Layout now = from;
  for (const RelayoutStep& step : steps) {
    bytes += step_entry(shape, dtype, now, step).received;
    now = step.after;
  }
  return bytes;
}

CommOp comm_op(RelayoutStep::Kind kind) {
  switch (kind) {
    case Kind::all_reduce:
      return CommOp::all_reduce;
    case Kind::reduce_scatter:
      return CommOp::reduce_scatter;
    case Kind::all_to_all:
      return CommOp::all_to_all;
    default:
      return CommOp::all_gather;
  }
}

CommEntry step_entry(const Shape& shape, at::ScalarType dtype, const Layout& before,
                     const RelayoutStep& step) {
  const DimMask mask = mask_of(step.dims);
  const int64_t members = before.mesh().size_of(mask);
  const at::ScalarType wide = reduction_dtype(dtype, before.partial_kind());
  double bytes = 0;
  switch (step.kind) {
    case Kind::slice:
      return {};
    case Kind::all_gather:
      bytes = shard_bytes(shape, dtype, step.after);
      break;
    case Kind::all_reduce:
    case Kind::reduce_scatter:
      bytes = shard_bytes(shape, wide, before);
      break;
    case Kind::all_to_all:
      bytes = shard_bytes(shape, dtype, before);
      break;
  }
  const CommOp op = comm_op(step.kind);
  return {op, before.mesh().names(mask), members, static_cast<int64_t>(bytes),
          received_bytes(op, bytes, members)};
}

}  // namespace tessera::detail
