#include <tessera/framework/ops/grouped_matmul.hpp>

#include <string>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/engine/index_check.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Calls visit(group, rows) for each group of the interval that has rows: its number from the
/// interval's first on, and the indices of its rows.
template <class Visit>
void for_each_group(const at::Tensor& groups, Interval own, int64_t count, const Visit& visit) {
  const at::Tensor flat = groups.flatten();
  const at::Tensor order = std::get<1>(at::sort(flat, /*stable=*/true, 0, /*descending=*/false));
  const at::Tensor sizes = at::bincount(flat, {}, count).cpu();
  int64_t first = 0;
  for (int64_t group = 0; group < own.hi; ++group) {
    const int64_t rows = sizes[group].item<int64_t>();
    if (rows > 0 && group >= own.lo) visit(group - own.lo, order.narrow(0, first, rows));
    first += rows;
  }
}

/// Returns the rule's factors of the axes of rows, each followed by a blank.
std::string row_factors(const Spec& x) {
  std::string text;
  for (int64_t a = 0; a + 1 < x.rank(); ++a) text += str("r", a, " ");
  return text;
}

/// The gradient of grouped_matmul's kernels, from x, dy, the groups and the axis_marker() of the
/// kernels' groups.
struct GroupedKernelGradOp {
  static constexpr std::string_view name = "grouped_kernel_grad";
  auto attributes() const { return std::tie(); }

  Specs infer(const Specs& in) const {
    return {{{in[3].shape[0], in[0].shape.back(), in[1].shape.back()}, in[0].dtype}};
  }
  Rule rule(const Specs& in) const {
    const std::string rows = row_factors(in[0]);
    return Rule::parse(rows + "d , " + rows + "o , " + rows + ", e -> e d o");
  }
  Tensors forward(const LocalArgs& in) const {
    const at::Tensor x = in[0].flatten(0, -2), dy = in[1].flatten(0, -2);
    const Interval own = in.range(3, 0);
    const at::Tensor y = at::zeros({own.size(), x.size(1), dy.size(1)}, x.options());
    const int64_t count = in.spec(3).shape[0];
    for_each_group(checked_indices(name, "groups", in[2], count, in.ranges(2)), own, count,
                   [&](int64_t group, const at::Tensor& rows) {
                     y[group].copy_(at::mm(x.index_select(0, rows).t(), dy.index_select(0, rows)));
                   });
    return {y};
  }
  static constexpr Saves saves = inputs(0, 1, 2);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs needs) const;
  static Samples<GroupedKernelGradOp> samples() {
    return {{{{{5, 3}}, {{5, 2}}, {{5}, at::kLong, 0, 4}, {{4}, at::kByte, 0, 1}}},
            {{{{2, 3, 2}}, {{2, 3, 4}}, {{2, 3}, at::kLong, 0, 2}, {{2}, at::kByte, 0, 1}}}};
  }
};

struct GroupedMatmulOp {
  static constexpr std::string_view name = "grouped_matmul";
  auto attributes() const { return std::tie(); }

  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    check_same_dtype(name, {in[0], in[1]});
    check_index_dtype(name, "groups", in[2]);
    const Shape& x = in[0].shape;
    if (x.size() < 2 || in[1].rank() != 3 || in[1].shape[1] != x.back() ||
        in[2].shape != Shape(x.begin(), x.end() - 1)) {
      throw ShapeError(
          std::string(name), "rows (…, d) need kernels (E, d, o) and groups (…)",
          to_string(x) + ", " + to_string(in[1].shape) + " and " + to_string(in[2].shape),
          "reshape an operand");
    }
    Spec out = in[0];
    out.shape.back() = in[1].shape[2];
    return {out};
  }
  Rule rule(const Specs& in) const {
    const std::string rows = row_factors(in[0]);
    return Rule::parse(rows + "d , e d o , " + rows + "-> " + rows + "o");
  }
  Tensors forward(const LocalArgs& in) const {
    const at::Tensor x = in[0].flatten(0, -2);
    const at::Tensor y = at::zeros({x.size(0), in[1].size(2)}, x.options());
    const int64_t count = in.spec(1).shape[0];
    for_each_group(checked_indices(name, "groups", in[2], count, in.ranges(2)), in.range(1, 0),
                   count, [&](int64_t group, const at::Tensor& rows) {
                     y.index_copy_(0, rows, at::mm(x.index_select(0, rows), in[1][group]));
                   });
    std::vector<int64_t> shape = in[0].sizes().vec();
    shape.back() = y.size(1);
    return {y.view(shape)};
  }
  static constexpr Saves saves = inputs(0, 1, 2);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs needs) const {
    Grads grads(3);
    if (needs[0]) {
      const DTensor back = ops::transpose(saved.in(1), {0, 2, 1});
      grads[0] = run_op(GroupedMatmulOp{}, {dy[0], back, saved.in(2)});
    }
    if (needs[1]) {
      const DTensor& x = saved.in(0);
      const DTensor marker =
          axis_marker(saved.shape(1)[0], saved.sharding(1).layout.axis(0), {x, dy[0], saved.in(2)});
      grads[1] = run_op(GroupedKernelGradOp{}, {x, dy[0], saved.in(2), marker});
    }
    return grads;
  }
  static Samples<GroupedMatmulOp> samples() {
    return {{{{{5, 3}}, {{4, 3, 2}}, {{5}, at::kLong, 0, 4}}},
            {{{{2, 3, 2}}, {{2, 2, 4}}, {{2, 3}, at::kLong, 0, 2}}},
            {{{{3, 2}, at::kFloat}, {{3, 2, 1}, at::kFloat}, {{3}, at::kLong, 0, 3}}}};
  }
};

Grads GroupedKernelGradOp::gradient(const Saved& saved, const Cotangents& dy, Needs needs) const {
  Grads grads(4);
  if (needs[0]) {
    const DTensor back = ops::transpose(dy[0], {0, 2, 1});
    grads[0] = run_op(GroupedMatmulOp{}, {saved.in(1), back, saved.in(2)});
  }
  if (needs[1]) grads[1] = run_op(GroupedMatmulOp{}, {saved.in(0), dy[0], saved.in(2)});
  return grads;
}

TESSERA_REGISTER_OP(GroupedKernelGradOp);
TESSERA_REGISTER_OP(GroupedMatmulOp);

}  // namespace

namespace ops {

DTensor grouped_matmul(const DTensor& x, const DTensor& kernels, const DTensor& groups) {
  return run_op(GroupedMatmulOp{}, {x, kernels, to_int64_indices(groups)});
}

}  // namespace ops
}  // namespace tessera
