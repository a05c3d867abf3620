#include <tessera/framework/ops/new_op.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>

namespace tessera {

using namespace detail;

namespace {

struct NewOp {
  static constexpr std::string_view name = "new_op";
  double factor = 1;
  auto attributes() const { return std::tie(factor); }
  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    return {in[0]};
  }
  Rule rule(const Specs& in) const { return broadcast_rule(in); }
  Tensors forward(const LocalArgs& in) const { return {in[0].square().mul_(factor)}; }
  static constexpr Saves saves = inputs(0);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {dy[0] * ops::scale(saved.in(0), 2 * factor)};
  }
  static Samples<NewOp> samples() { return {{{{{3, 5}}}, {0.5}}, {{{{2, 1, 4}}}, {-2}}}; }
};

TESSERA_REGISTER_OP(NewOp);

}  // namespace

namespace ops {

DTensor new_op(const DTensor& x, double factor) { return run_op(NewOp{factor}, {x}); }

}  // namespace ops
}  // namespace tessera
