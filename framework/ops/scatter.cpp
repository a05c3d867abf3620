#include <tessera/framework/ops/scatter.hpp>

#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/engine/index_check.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/host_numbers.hpp>
#include <tessera/framework/ops/operand.hpp>
#include <tessera/framework/ops/segment.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Positions, in row-major order, of elements that are named by an index for each axis: (i…, k) ->
/// (i…), where axis number j has extent extents[j].
struct FlatIndicesOp {
  static constexpr std::string_view name = "flat_indices";
  Shape extents;
  auto attributes() const { return std::tie(extents); }

  Specs infer(const Specs& in) const {
    check_index_dtype(name, "indices", in[0]);
    Shape shape = in[0].shape;
    if (extents.empty() || shape.empty() || shape.back() != int64_t(extents.size())) {
      throw ShapeError(std::string(name), "the last axis of the indices has one for each axis",
                       to_string(shape), "reshape the indices");
    }
    shape.pop_back();
    return {{shape, at::kLong}};
  }
  Rule rule(const Specs& in) const {
    Rule rule;
    rule.in = {{}};
    for (int a = 0; a + 1 < in[0].rank(); ++a) rule.in[0].push_back(a);
    rule.out = rule.in;
    rule.factors.assign(rule.in[0].size(), FactorKind::pass);
    rule.in[0].push_back(Rule::none);
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    at::Tensor positions;
    for (size_t j = 0; j < extents.size(); ++j) {
      const at::Tensor column = in[0].select(-1, int64_t(j));
      const at::Tensor checked =
          checked_indices("scatter", "indices", column, extents[j], in.ranges(0));
      positions = positions.defined() ? positions.mul(extents[j]).add_(checked) : checked;
    }
    return {positions.contiguous()};
  }
  static Samples<FlatIndicesOp> samples() {
    return {{{{{5, 2}, at::kLong, 0, 3}}, {{3, 4}}},
            {{{{2, 3, 1}, at::kLong, 0, 7}}, {{7}}},
            {{{{2}, at::kLong, 0, 3}}, {{3, 3}}}};
  }
};

TESSERA_REGISTER_OP(FlatIndicesOp);

/// The indices of a scatter, as positions in the first k axes of its result.
struct Scattering {
  Scattering(const char* op, const DTensor& indices, const DTensor& values, const Shape& result) {
    const int64_t k = indices.rank() == 0 ? 0 : indices.size(-1);
    const auto rank = static_cast<int64_t>(result.size());
    if (k < 1 || k > rank) {
      throw ShapeError(op, str("indices have shape (…, k) with k in [1, ", rank, "]"),
                       to_string(indices.shape()), "pass an index for each of the first k axes");
    }
    Shape expected = indices.shape();
    expected.pop_back();
    expected.insert(expected.end(), result.begin() + k, result.end());
    if (values.shape() != expected) {
      throw ShapeError(op, str("the values must have shape ", to_string(expected)),
                       to_string(values.shape()), "pass a value for each index");
    }
    const Shape front(result.begin(), result.begin() + k);
    rows = numel(front);
    row.assign(result.begin() + k, result.end());
    positions = run_op(FlatIndicesOp{front}, {to_int64_indices(indices)});
  }
  /// Returns the shape (n, row…).
  Shape rows_of(int64_t n) const {
    Shape shape = {n};
    shape.insert(shape.end(), row.begin(), row.end());
    return shape;
  }

  DTensor positions;  ///< (i…)
  int64_t rows = 0;   ///< number of elements of the first k axes
  Shape row;          ///< extents of the others
};

/// Returns the numbers 0, 1, … in row-major order, replicated.
DTensor numbers(const Shape& shape, const Mesh& mesh) {
  return host_numbers(shape, at::kLong, Layout::replicated(mesh, int64_t(shape.size())),
                      [&] { return at::arange(numel(shape), at::kLong).view(shape); });
}

/// Returns x with the last update of each element.
DTensor replaced(const DTensor& x, const Scattering& to, const DTensor& updates) {
  const int64_t count = numel(to.positions.shape());
  // The number of the last update of each row; negative if it has none.
  const DTensor last =
      ops::segment_max(numbers(to.positions.shape(), x.mesh()), to.positions, to.rows);
  Shape column(to.row.size() + 1, 1);
  column[0] = to.rows;
  const DTensor found = ops::reshape(ops::greater_equal(last, 0), column);
  const DTensor taken =
      ops::gather(ops::reshape(updates, to.rows_of(count)), ops::maximum(last, 0));
  const DTensor rows = ops::reshape(x, to.rows_of(to.rows));
  return ops::reshape(ops::where(found, taken, rows), x.shape());
}

/// Replaces elements [start, start + extent of `updates`) of x along the axes from `axis` on.
DTensor with_slice(const DTensor& x, const std::vector<int64_t>& start, const DTensor& updates,
                   int64_t axis) {
  while (axis < x.rank() && updates.size(axis) == x.size(axis)) ++axis;
  if (axis == x.rank()) return updates;
  const int64_t begin = start[size_t(axis)], size = updates.size(axis), end = begin + size;
  std::vector<DTensor> parts;
  if (begin > 0) parts.push_back(ops::slice(x, axis, 0, begin));
  parts.push_back(with_slice(ops::slice(x, axis, begin, size), start, updates, axis + 1));
  if (end < x.size(axis)) parts.push_back(ops::slice(x, axis, end, x.size(axis) - end));
  return ops::concat(parts, axis);
}

}  // namespace

namespace ops {

DTensor scatter(const DTensor& indices, const DTensor& values, const Shape& shape) {
  const Scattering to("scatter", indices, values, shape);
  return reshape(segment_sum(values, to.positions, to.rows), shape);
}

DTensor scatter_update(const DTensor& x, const DTensor& indices, const DTensor& updates,
                       const std::string& reduction) {
  const std::vector<std::string> known = {"", "add", "max", "min"};
  if (std::find(known.begin(), known.end(), reduction) == known.end()) {
    throw ConfigError("scatter_update", "reduction is one of " + quoted_list(known),
                      in_quotes(reduction), suggestion(reduction, known));
  }
  const Scattering to("scatter_update", indices, updates, x.shape());
  check_same_dtype("scatter_update", {{x.shape(), x.dtype()}, {updates.shape(), updates.dtype()}});
  if (numel(updates.shape()) == 0) return x;
  if (reduction.empty()) return replaced(x, to, updates);
  if (reduction == "add") {
    return x + reshape(segment_sum(updates, to.positions, to.rows), x.shape());
  }
  const bool largest = reduction == "max";
  const DTensor extremes = largest ? segment_max(updates, to.positions, to.rows)
                                   : segment_min(updates, to.positions, to.rows);
  const DTensor y = reshape(extremes, x.shape());
  return largest ? maximum(x, y) : minimum(x, y);
}

DTensor slice_update(const DTensor& x, const std::vector<int64_t>& start, const DTensor& updates) {
  bool fits = updates.rank() == x.rank() && int64_t(start.size()) == x.rank();
  for (int64_t a = 0; fits && a < x.rank(); ++a) {
    fits = start[size_t(a)] >= 0 && start[size_t(a)] + updates.size(a) <= x.size(a);
  }
  if (!fits) {
    throw ShapeError(
        "slice_update", "the updates must be inside x, of shape " + to_string(x.shape()),
        to_string(updates.shape()) + " from " + to_string(start), "move or shrink them");
  }
  check_same_dtype("slice_update", {{x.shape(), x.dtype()}, {updates.shape(), updates.dtype()}});
  return numel(updates.shape()) == 0 ? x : with_slice(x, start, updates, 0);
}

}  // namespace ops
}  // namespace tessera
