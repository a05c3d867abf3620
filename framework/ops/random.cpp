#include <tessera/framework/ops/random.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/broadcast.hpp>
#include <tessera/framework/ops/dispatch.hpp>
#include <tessera/framework/tensor/placement.hpp>

namespace tessera {
namespace {

struct DropoutOp {
  static constexpr std::string_view name = "dropout";
  double rate = 0;
  auto attributes() const { return std::tie(rate); }

  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    if (in[1].shape != Shape{2} || in[1].dtype != at::kLong) {
      throw ConfigError("dropout", "the seed is a pair of int64",
                        str(c10::toString(in[1].dtype), " ", to_string(in[1].shape)),
                        "make it with seed_input");
    }
    return {in[0]};
  }
  Rule rule(const Specs& in) const {
    Rule rule = broadcast_rule({in[0]});
    rule.in.push_back({Rule::none});
    return rule;
  }
  Tensors forward(const LocalArgs& in) const {
    const at::Tensor draw = at::empty(in[0].sizes(), at::kFloat);
    const at::Tensor pair = in[1].cpu();
    const int64_t* seed = pair.const_data_ptr<int64_t>();
    stateless_uniform({seed[0], seed[1]}, in.spec(0).shape, in.ranges(0), 0, 1,
                      draw.data_ptr<float>());
    // Not a product with the mask: a dropped infinity is 0.
    const at::Tensor kept = moved_to(draw, in[0].device()).ge(static_cast<float>(rate));
    return {at::where(kept, in[0].mul(1 / (1 - rate)), at::zeros({}, in[0].options()))};
  }
  static constexpr Saves saves = inputs(1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs) const {
    return {ops::dropout(dy[0], rate, saved.in(1)), DTensor()};
  }
  static Samples<DropoutOp> samples() {
    const SampleInput seed{{2}, at::kLong, 0, 1000};
    return {{{{{5, 3}}, seed}, {0.4}},
            {{{{}}, seed}, {0.3}},
            {{{{7}}, seed}, {0.5}},
            {{{{2, 3, 5}}, seed}, {0.25}}};
  }
};

TESSERA_REGISTER_OP(DropoutOp);

}  // namespace

namespace ops {

at::Tensor seed_tensor(Seed seed) { return at::tensor({seed.a, seed.b}, at::kLong); }

DTensor seed_input(Seed seed, const Mesh& mesh) { return host_input(seed_tensor(seed), mesh); }

DTensor dropout(const DTensor& x, double rate, const DTensor& seed) {
  if (!(rate >= 0 && rate < 1)) {
    throw ConfigError("dropout", "the rate lies in [0, 1)", str(rate),
                      "give the fraction of elements to drop");
  }
  return rate == 0 ? x : run_op(DropoutOp{rate}, {x, seed});
}

}  // namespace ops
}  // namespace tessera
