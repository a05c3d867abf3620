#include <ATen/ATen.h>

#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/take_gradient.hpp>
#include <tessera/framework/ops/reduce.hpp>

namespace tessera {

using namespace detail;

namespace {

/// The elements along an axis in ascending order, and their indices.
struct SortOp {
  static constexpr std::string_view name = "sort";
  int64_t axis = 0;
  auto attributes() const { return std::tie(axis); }

  Specs infer(const Specs& in) const { return {in[0], {in[0].shape, at::kLong}}; }
  Rule rule(const Specs& in) const {
    Rule rule = unsharded_axis_rule(in, axis);
    rule.out.push_back(rule.out[0]);
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    auto [values, positions] = in[0].sort(/*stable=*/true, axis, /*descending=*/false);
    return {std::move(values), std::move(positions)};
  }
  static constexpr Saves saves = outputs(1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {take_along_axis_gradient(dy[0], saved.out(1), axis, saved.sharding(0))};
  }
  static Samples<SortOp> samples() {
    const auto of = [](const Shape& shape, int64_t axis) {
      return Sample<SortOp>{{{.shape = shape, .distinct = true}}, {axis}};
    };
    return {of({3, 5}, 1),
            of({5, 3}, 0),
            of({2, 4, 3}, 1),
            of({7}, 0),
            {{{{3, 7}, at::kLong, 0, 3}}, {1}}};
  }
};

TESSERA_REGISTER_OP(SortOp);

std::vector<DTensor> sorted(const DTensor& x, int64_t axis, const std::string& where) {
  const SortOp op{normalize_axis(axis, x.rank(), where)};
  return dispatch(op_info<SortOp>(), &op, attribute_hash(op), std::span(&x, 1));
}

}  // namespace

namespace ops {

DTensor sort(const DTensor& x, int64_t axis) { return sorted(x, axis, "sort")[0]; }
DTensor argsort(const DTensor& x, int64_t axis) { return sorted(x, axis, "argsort")[1]; }

}  // namespace ops
}  // namespace tessera
