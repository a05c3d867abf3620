#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/relayout.hpp>

namespace tessera {
namespace {

using Dims = std::vector<int>;
using Kind = RelayoutStep::Kind;

bool starts_with(const Dims& whole, const Dims& head) {
  return head.size() <= whole.size() && std::equal(head.begin(), head.end(), whole.begin());
}

Dims tail(const Dims& dims, size_t from) {
  return {dims.begin() + static_cast<int64_t>(from), dims.end()};
}

DimMask mask_of(const Dims& dims) {
  DimMask mask = 0;
  for (int dim : dims) mask |= 1u << dim;
  return mask;
}

Dims dims_of(DimMask mask) {
  Dims dims;
  for (int d = 0; d < 32; ++d) {
    if (mask >> d & 1) dims.push_back(d);
  }
  return dims;
}

class Planner {
 public:
  Planner(const Layout& from, const Layout& to) : now_(from), goal_(to) {}

  std::vector<RelayoutStep> plan() {
    reduce();
    while (slice() || move() || gather()) {
    }
    return std::move(steps_);
  }

 private:
  void push(Kind kind, Dims dims, int64_t axis, int64_t to_axis, Layout after) {
    now_ = after;
    steps_.push_back({kind, std::move(dims), axis, to_axis, std::move(after)});
  }

  Layout with_axis(int64_t axis, Dims dims, DimMask pending) const {
    std::vector<Dims> axes = now_.axes();
    axes[static_cast<size_t>(axis)] = std::move(dims);
    return Layout::from_axes(now_.mesh(), std::move(axes), pending, now_.pending_kind());
  }

  /// Pending dimensions that the goal has on an axis go there at once; the others become replicas.
  void reduce() {
    DimMask open = now_.pending_dims() & ~goal_.pending_dims();
    for (int64_t a = 0; a < now_.rank() && open; ++a) {
      const Dims& have = now_.axis(a);
      const Dims& want = goal_.axis(a);
      if (!starts_with(want, have)) continue;
      Dims into;
      for (int dim : tail(want, have.size())) {
        if (!(open >> dim & 1)) break;
        into.push_back(dim);
      }
      if (into.empty()) continue;
      open &= ~mask_of(into);
      Dims joined = have;
      joined.insert(joined.end(), into.begin(), into.end());
      push(Kind::reduce_scatter, into, a, a,
           with_axis(a, joined, now_.pending_dims() & ~mask_of(into)));
    }
    if (open) {
      push(Kind::all_reduce, dims_of(open), 0, 0,
           now_.with_pending(now_.pending_dims() & ~open, now_.pending_kind()));
    }
  }

  bool slice() {
    for (int64_t a = 0; a < now_.rank(); ++a) {
      const Dims& have = now_.axis(a);
      const Dims& want = goal_.axis(a);
      if (have == want || !starts_with(want, have)) continue;
      Dims joined = have, cut;
      for (int dim : tail(want, have.size())) {
        if (now_.used_dims() >> dim & 1) break;
        joined.push_back(dim);
        cut.push_back(dim);
      }
      if (cut.empty()) continue;
      push(Kind::slice, cut, a, a, with_axis(a, joined, now_.pending_dims()));
      return true;
    }
    return false;
  }

  /// Dimensions that leave the end of one axis for the end of another.
  bool move() {
    for (int64_t a = 0; a < now_.rank(); ++a) {
      const Dims leaving = surplus(a);
      if (leaving.empty()) continue;
      for (int64_t b = 0; b < now_.rank(); ++b) {
        const Dims& have = now_.axis(b);
        const Dims& want = goal_.axis(b);
        if (b == a || !starts_with(want, have)) continue;
        if (!starts_with(tail(want, have.size()), leaving)) continue;
        std::vector<Dims> axes = now_.axes();
        axes[static_cast<size_t>(a)].resize(now_.axis(a).size() - leaving.size());
        Dims& target = axes[static_cast<size_t>(b)];
        target.insert(target.end(), leaving.begin(), leaving.end());
        push(Kind::all_to_all, leaving, a, b,
             Layout::from_axes(now_.mesh(), std::move(axes), now_.pending_dims(),
                               now_.pending_kind()));
        return true;
      }
    }
    return false;
  }

  bool gather() {
    for (int64_t a = 0; a < now_.rank(); ++a) {
      const Dims leaving = surplus(a);
      if (leaving.empty()) continue;
      Dims kept = now_.axis(a);
      kept.resize(kept.size() - leaving.size());
      push(Kind::all_gather, leaving, a, a, with_axis(a, kept, now_.pending_dims()));
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

double layout_bytes(const Shape& shape, at::ScalarType dtype, const Layout& layout) {
  double bytes = static_cast<double>(c10::elementSize(dtype));
  for (int64_t a = 0; a < layout.rank(); ++a) {
    const int64_t shards = layout.num_shards(a), extent = shape[static_cast<size_t>(a)];
    bytes *= static_cast<double>((extent + shards - 1) / shards);
  }
  return bytes;
}

}  // namespace

std::vector<RelayoutStep> plan_relayout(const Layout& from, const Layout& to) {
  if (from == to) return {};
  const DimMask kept = to.pending_dims();
  if ((kept & ~from.pending_dims()) || (kept && to.pending_kind() != from.pending_kind())) {
    throw LayoutError("relayout", "a value becomes pending only inside an operation",
                      from.describe() + " to " + to.describe(),
                      "relayout to a layout without a pending reduction");
  }
  return Planner(from, to).plan();
}

double relayout_bytes(const Shape& shape, at::ScalarType dtype, const Layout& from,
                      const Layout& to) {
  double bytes = 0;
  Layout now = from;
  for (const RelayoutStep& step : plan_relayout(from, to)) {
    const int64_t members = from.mesh().size_of(mask_of(step.dims));
    const double before = layout_bytes(shape, dtype, now);
    switch (step.kind) {
      case Kind::slice: break;
      case Kind::all_gather:
        bytes += received_bytes(CommOp::all_gather, layout_bytes(shape, dtype, step.after),
                                members);
        break;
      case Kind::all_reduce: bytes += received_bytes(CommOp::all_reduce, before, members); break;
      case Kind::reduce_scatter:
        bytes += received_bytes(CommOp::reduce_scatter, before, members);
        break;
      case Kind::all_to_all: bytes += received_bytes(CommOp::all_to_all, before, members); break;
    }
    now = step.after;
  }
  return bytes;
}

}  // namespace tessera
