#include <tessera/framework/ops/internal/lstm_layer.hpp>

#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/bfloat16.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/recurrent_kernels.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>

namespace tessera::detail {

namespace {

bool has_onednn() { return at::hasMKLDNN() && at::globalContext().userEnabledMkldnn(); }

/// x, kernel, recurrent kernel, h, c and, if there is one, bias -> h of all steps, last c.
struct LstmLayerOp {
  static constexpr std::string_view name = "lstm_layer";
  bool reverse = false, biased = true;
  auto attributes() const { return std::tie(reverse, biased); }

  Specs infer(const Specs& in) const {
    check_floating(name, in[0]);
    check_same_dtype(name, in);
    const Shape &x = in[0].shape, &h = in[3].shape;
    const bool ranks = x.size() == 3 && h.size() == 2;
    const int64_t width = ranks ? 4 * h[1] : 0;
    const bool fits = ranks && h[0] == x[0] && in[1].shape == Shape{x[2], width} &&
                      in[2].shape == Shape{h[1], width} && in[4].shape == h &&
                      (!biased || in[5].shape == Shape{width});
    if (!fits) {
      throw ShapeError(std::string(name),
                       "x has axes batch, time and features, kernels features or units and 4 · "
                       "units, states batch and units",
                       str(to_string(x), ", ", to_string(in[1].shape), ", ", to_string(in[2].shape),
                           " and ", to_string(h)),
                       "reshape them");
    }
    return {{{x[1], x[0], h[1]}, in[0].dtype}, in[3]};
  }
  Rule rule(const Specs&) const {
    const std::string bias = biased ? " , !w" : "";
    return Rule::parse("b !t !f , !f !w , !u !w , b !u , b !u" + bias + " -> !t b !u , b !u");
  }
  Tensors forward(const LocalArgs& in) const {
    const bool fast = in[0].is_cpu() && is_fast_in_onednn(in[0].scalar_type()) && has_onednn();
    return fast ? by_onednn(in) : by_steps(in);
  }
  Tensors by_onednn(const LocalArgs& in) const {
    constexpr int64_t lstm = 2;
    at::Tensor x = in[0].transpose(0, 1);
    if (reverse) x = x.flip(0);
    const auto turned = [](const at::Tensor& kernel) { return kernel.t().contiguous(); };
    const at::Tensor no_bias = at::zeros({in[1].size(1)}, x.options());
    const at::Tensor bias = biased ? in[5].contiguous() : no_bias;
    const auto [h, last_h, c, workspace] = at::mkldnn_rnn_layer(
        x.contiguous(), turned(in[1]), turned(in[2]), bias, no_bias, in[3].unsqueeze(0),
        in[4].unsqueeze(0), /*reverse=*/false, {}, lstm, in[3].size(1), /*num_layers=*/1,
        /*has_biases=*/true, /*bidirectional=*/false, /*batch_first=*/false, /*train=*/false);
    return {h, c.view(in[4].sizes())};
  }
  /// Computes other dtypes, and blocks on GPUs, where layers run their loop.
  Tensors by_steps(const LocalArgs& in) const {
    Recurrence all{RecurrentKind::lstm, reverse, /*keeps_gates=*/false, {}, {}, {}, {}, {}, {}};
    all.x = at::matmul(recurrence_block(in[0]), recurrence_block(in[1]));
    all.kernel = recurrence_block(in[2]);
    all.h = recurrence_block(in[3]);
    all.c = recurrence_block(in[4]);
    if (biased) all.bias = recurrence_block(in[5]);
    const RecurrentStates states = run_recurrence(all);
    const int64_t steps = in[0].size(1);
    const at::Tensor c = steps > 0 ? states.c.select(0, steps - 1) : all.c;
    return {states.h.to(in[0].options()), c.to(in[0].options())};
  }
  static Samples<LstmLayerOp> samples() {
    const auto sample = [](int64_t rows, int64_t steps, bool reverse, bool biased) {
      constexpr int64_t features = 3, units = 2;
      Sample<LstmLayerOp> s{{{{rows, steps, features}},
                             {{features, 4 * units}},
                             {{units, 4 * units}},
                             {{rows, units}},
                             {{rows, units}}},
                            {reverse, biased}};
      if (biased) s.inputs.push_back({{4 * units}});
      return s;
    };
    return {sample(3, 2, false, true), sample(2, 3, true, false)};
  }
};
TESSERA_REGISTER_OP(LstmLayerOp);

}  // namespace

bool can_run_lstm_layer(const DTensor& x) {
  if (!is_fast_in_onednn(x.dtype()) || on_gpus(x.mesh()) || !has_onednn() || recording()) {
    return false;
  }
  // With fewer rows, turning the kernels takes longer than it saves.
  const int64_t many_rows = x.dtype() == at::kFloat ? 32 : 8;
  return x.size(0) >= many_rows;
}

LstmStates lstm_layer(const DTensor& x, const DTensor& kernel, const DTensor& recurrent_kernel,
                      const DTensor& bias, const DTensor& h, const DTensor& c, bool reverse) {
  std::vector<DTensor> in = {x, kernel, recurrent_kernel, h, c};
  if (bias.defined()) in.push_back(bias);
  const LstmLayerOp op{reverse, bias.defined()};
  const std::vector<DTensor> out = dispatch(op_info<LstmLayerOp>(), &op, attribute_hash(op), in);
  return {out[0], out[1]};
}

}  // namespace tessera::detail
