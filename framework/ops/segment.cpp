#include <tessera/framework/ops/segment.hpp>

#include <algorithm>
#include <limits>
#include <string>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/engine/index_check.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/sums.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Data (i…, d…) and ids (i…) become (count, d…).
struct Segments {
  int64_t count = 0;
  auto attributes() const { return std::tie(count); }

  Specs infer_segments(std::string_view op, const Specs& in) const {
    check_not_bool(op, in[0]);
    check_index_dtype(op, "ids", in[1]);
    const Shape &data = in[0].shape, &ids = in[1].shape;
    if (data.size() < ids.size() || !std::equal(ids.begin(), ids.end(), data.begin())) {
      throw ShapeError(std::string(op), "the shape of data must begin with that of the ids",
                       to_string(data) + " and " + to_string(ids), "pass an id for each row");
    }
    if (count < 0) {
      throw ShapeError(std::string(op), "the number of segments must be at least 0", str(count),
                       "pass the number of ids");
    }
    Shape shape = {count};
    shape.insert(shape.end(), data.begin() + in[1].rank(), data.end());
    return {{shape, in[0].dtype}};
  }
  Rule rule(const Specs& in) const {
    const int rank = int(in[0].rank()), id_rank = int(in[1].rank());
    Rule rule;
    rule.in.resize(2);
    rule.out = {{Rule::none}};
    for (int a = 0; a < rank; ++a) {
      rule.in[0].push_back(a);
      (a < id_rank ? rule.in[1] : rule.out[0]).push_back(a);
      rule.factors.push_back(a < id_rank ? FactorKind::reduce : FactorKind::pass);
    }
    return rule;
  }
  /// Returns a block's data as (n, d…).
  static at::Tensor rows_of(const LocalArgs& in) {
    std::vector<int64_t> shape = in[0].sizes().vec();
    shape.erase(shape.begin(), shape.begin() + in[1].dim());
    shape.insert(shape.begin(), in[1].numel());
    return in[0].reshape(shape);
  }
  /// Returns the shape of a block's result.
  std::vector<int64_t> result_shape(const at::Tensor& rows) const {
    std::vector<int64_t> shape = rows.sizes().vec();
    shape[0] = count;
    return shape;
  }
  at::Tensor checked_ids(std::string_view op, const LocalArgs& in) const {
    return checked_indices(op, "ids", in[1], count, in.ranges(1)).flatten();
  }
};

struct SegmentSumOp : Segments {
  static constexpr std::string_view name = "segment_sum";

  Specs infer(const Specs& in) const { return infer_segments(name, in); }
  Tensors forward(const LocalArgs& in) const {
    const at::Tensor rows = rows_of(in);
    const at::Tensor sums = at::zeros(result_shape(rows), rows.options());
    return {sums.index_add(0, checked_ids(name, in), rows)};
  }
  static constexpr Saves saves = inputs(1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {ops::gather(dy[0], saved.in(1)), DTensor()};
  }
  static Samples<SegmentSumOp> samples() {
    return {{{{{6}}, {{6}, at::kLong, 0, 4}}, {{4}}},
            {{{{3, 4}}, {{3, 4}, at::kLong, 0, 5}}, {{5}}},
            {{{{7, 3}}, {{7}, at::kLong, 0, 5}}, {{5}}},
            {{{{2, 3, 5}}, {{2, 3}, at::kLong, 0, 4}}, {{4}}},
            {{{{5, 2}, at::kLong, -5, 5}, {{5}, at::kLong, 0, 3}}, {{3}}}};
  }
};

template <bool Largest>
struct SegmentExtremeOp : Segments {
  static constexpr std::string_view name = Largest ? "segment_max" : "segment_min";
  static constexpr Reduce kind = Largest ? Reduce::max : Reduce::min;

  Specs infer(const Specs& in) const { return infer_segments(name, in); }
  Rule rule(const Specs& in) const {
    Rule rule = Segments::rule(in);
    return rule.reducing(kind);
  }
  Tensors forward(const LocalArgs& in) const {
    const at::Tensor rows = rows_of(in);
    std::vector<int64_t> column(size_t(rows.dim()), 1);
    column[0] = rows.size(0);
    const at::Tensor ids = checked_ids(name, in).view(column).expand_as(rows);
    const at::Tensor none = reduce_identity(kind, result_shape(rows), rows.options());
    return {none.scatter_reduce(0, ids, rows, Largest ? "amax" : "amin")};
  }
  static constexpr Saves saves = {inputs(0, 1).in, outputs(0).out};
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    const DTensor& ids = saved.in(1);
    const DTensor hits = ops::equal(saved.in(0), ops::gather(saved.out(), ids));
    const DTensor ones = ops::cast(hits, at::toOpMathType(dy[0].dtype()));
    // At least 1: a segment without data has no elements that share its gradient.
    const double infinity = std::numeric_limits<double>::infinity();
    const DTensor sharing = ops::clip(run_op(SegmentSumOp{{count}}, {ones, ids}), 1, infinity);
    const DTensor share = ops::cast(dy[0], sharing.dtype()) / sharing;
    return {ops::cast(hits, dy[0].dtype()) * ops::gather(ops::cast(share, dy[0].dtype()), ids),
            DTensor()};
  }
  static Samples<SegmentExtremeOp> samples() {
    // Finite differences need one segment: others may be empty, and then are infinite.
    const auto of = [](const Shape& data, const Shape& ids, int64_t count) {
      const auto hi = static_cast<double>(count);
      return Sample<SegmentExtremeOp>{
          {{.shape = data, .distinct = true, .differentiable = count == 1},
           {.shape = ids, .dtype = at::kLong, .lo = 0, .hi = hi}},
          {{count}}};
    };
    return {
        of({7}, {7}, 1),          of({2, 3, 2}, {2, 3}, 1),
        of({7}, {7}, 3),          of({5, 3}, {5}, 2),
        of({2, 3, 2}, {2, 3}, 3), {{{{5, 2}, at::kLong, -5, 5}, {{5}, at::kLong, 0, 3}}, {{3}}}};
  }
};
using SegmentMaxOp = SegmentExtremeOp<true>;
using SegmentMinOp = SegmentExtremeOp<false>;

TESSERA_REGISTER_OP(SegmentSumOp);
TESSERA_REGISTER_OP(SegmentMaxOp);
TESSERA_REGISTER_OP(SegmentMinOp);

}  // namespace

namespace ops {

DTensor segment_sum(const DTensor& data, const DTensor& ids, int64_t count) {
  // In float16 and bfloat16, each addition would be rounded.
  const DTensor wide = widened(data);
  return cast(run_op(SegmentSumOp{{count}}, {wide, to_int64_indices(ids)}), data.dtype());
}

DTensor segment_max(const DTensor& data, const DTensor& ids, int64_t count) {
  return run_op(SegmentMaxOp{{count}}, {data, to_int64_indices(ids)});
}

DTensor segment_min(const DTensor& data, const DTensor& ids, int64_t count) {
  return run_op(SegmentMinOp{{count}}, {data, to_int64_indices(ids)});
}

}  // namespace ops
}  // namespace tessera
