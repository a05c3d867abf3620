#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/take_gradient.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {

using namespace detail;

namespace {

struct TopKOp {
  static constexpr std::string_view name = "top_k";
  int64_t k = 1;
  auto attributes() const { return std::tie(k); }

  Specs infer(const Specs& in) const {
    Shape shape = in[0].shape;
    if (shape.empty() || k < 1 || k > shape.back()) {
      throw ShapeError(std::string(name),
                       str("k = ", k, " must be in [1, extent of the last axis]"), to_string(shape),
                       "choose k between 1 and its extent");
    }
    shape.back() = k;
    return {{shape, in[0].dtype}, {shape, at::kLong}};
  }
  Rule rule(const Specs& in) const {
    Rule rule = unsharded_axis_rule(in, in[0].rank() - 1);
    rule.out[0].back() = Rule::none;
    rule.out.push_back(rule.out[0]);
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    // ATen's topk does not specify the order of equal elements.
    const auto [values, positions] = in[0].sort(/*stable=*/true, -1, /*descending=*/true);
    return {values.narrow(-1, 0, k).contiguous(), positions.narrow(-1, 0, k).contiguous()};
  }
  static constexpr Saves saves = outputs(1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    const Sharding& x = saved.sharding(0);
    const auto last = static_cast<int64_t>(x.shape.size()) - 1;
    return {take_along_axis_gradient(dy[0], saved.out(1), last, x)};
  }
  static Samples<TopKOp> samples() {
    const auto of = [](const Shape& shape, int64_t k) {
      return Sample<TopKOp>{{{.shape = shape, .distinct = true}}, {k}};
    };
    return {of({4, 5}, 2), of({4}, 4), of({2, 3, 3}, 1), {{{{3, 7}, at::kLong, 0, 3}}, {4}}};
  }
};

TESSERA_REGISTER_OP(TopKOp);

}  // namespace

namespace ops {

std::pair<DTensor, DTensor> top_k(const DTensor& x, int64_t k) {
  const TopKOp op{k};
  std::vector<DTensor> both =
      dispatch(op_info<TopKOp>(), &op, attribute_hash(op), std::span(&x, 1));
  return {both[0], both[1]};
}

DTensor in_top_k(const DTensor& targets, const DTensor& predictions, int64_t k) {
  const DTensor kth = slice(top_k(predictions, k).first, -1, k - 1, 1);
  const DTensor own = take_along_axis(predictions, expand_dims(targets, -1), -1);
  return squeeze(greater_equal(own, kth), {-1});
}

}  // namespace ops
}  // namespace tessera
