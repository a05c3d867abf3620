#include <tessera/framework/ops/segment.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/engine/index_check.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/sums.hpp>

namespace tessera {

using namespace detail;

namespace {

struct SegmentSumOp {
  static constexpr std::string_view name = "segment_sum";
  int64_t count = 0;
  auto attributes() const { return std::tie(count); }

  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    check_index_dtype(name, "ids", in[1]);
    if (in[0].shape != in[1].shape) {
      throw ShapeError(std::string(name), "data and ids must have one shape",
                       to_string(in[0].shape) + " and " + to_string(in[1].shape),
                       "pass an id for each element");
    }
    return {{{count}, in[0].dtype}};
  }
  Rule rule(const Specs& in) const {
    std::vector<int> axes;
    for (int a = 0; a < in[0].rank(); ++a) axes.push_back(a);
    Rule rule;
    rule.in = {axes, axes};
    rule.out = {{Rule::none}};
    rule.factors.assign(axes.size(), FactorKind::reduce);
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    const at::Tensor ids = checked_indices(name, "ids", in[1], count, in.ranges(1));
    const at::Tensor sums = at::zeros({count}, in[0].options());
    return {sums.index_add(0, ids.flatten(), in[0].flatten())};
  }
  static constexpr Saves saves = inputs(1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {ops::gather(dy[0], saved.in(1)), DTensor()};
  }
  static Samples<SegmentSumOp> samples() {
    return {{{{{6}}, {{6}, at::kLong, 0, 4}}, {4}}, {{{{3, 4}}, {{3, 4}, at::kLong, 0, 5}}, {5}}};
  }
};

TESSERA_REGISTER_OP(SegmentSumOp);

}  // namespace

namespace ops {

DTensor segment_sum(const DTensor& data, const DTensor& ids, int64_t count) {
  // In float16 and bfloat16, each addition would be rounded.
  const DTensor wide = widened(data);
  return cast(run_op(SegmentSumOp{count}, {wide, to_int64_indices(ids)}), data.dtype());
}

}  // namespace ops
}  // namespace tessera
