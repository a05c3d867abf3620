#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {

using namespace detail;

namespace {

template <bool Upper>
struct TriangleOp {
  static constexpr std::string_view name = Upper ? "triu" : "tril";
  int64_t k = 0;
  auto attributes() const { return std::tie(k); }

  Specs infer(const Specs& in) const {
    if (in[0].rank() < 2) {
      throw ShapeError(std::string(name), "x must have at least two axes", to_string(in[0].shape),
                       "pass a matrix");
    }
    return {in[0]};
  }
  Rule rule(const Specs& in) const { return broadcast_rule(in).passing(Passes::sums); }
  Tensors forward(const LocalArgs& in) const {
    const int64_t rank = in[0].dim();
    const Shape& shape = in.spec(0).shape;
    const int64_t rows = shape[size_t(rank - 2)], columns = shape[size_t(rank - 1)];
    // The diagonal relative to the block's first element.
    const int64_t diagonal =
        std::clamp(k, -rows, columns) + in.range(0, rank - 2).lo - in.range(0, rank - 1).lo;
    return {Upper ? in[0].triu(diagonal) : in[0].tril(diagonal)};
  }
  static constexpr Saves saves = nothing_saved;
  Grads gradient(const Saved&, const Cotangents& dy, Needs) const {
    return {run_op(*this, {dy[0]})};
  }
  static Samples<TriangleOp> samples() {
    return {{{{{4, 5}}}, {0}},
            {{{{2, 5, 3}}}, {-1}},
            {{{{3, 4}}}, {2}},
            {{{{3, 3}, at::kLong, -5, 5}}, {1}}};
  }
};

using TrilOp = TriangleOp<false>;
using TriuOp = TriangleOp<true>;

TESSERA_REGISTER_OP(TrilOp);
TESSERA_REGISTER_OP(TriuOp);

}  // namespace

namespace ops {

DTensor tril(const DTensor& x, int64_t k) { return run_op(TrilOp{k}, {x}); }
DTensor triu(const DTensor& x, int64_t k) { return run_op(TriuOp{k}, {x}); }

}  // namespace ops
}  // namespace tessera
