#include <tessera/framework/ops/internal/recurrent.hpp>

#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>

namespace tessera::detail {

namespace {

/// Attributes and terms of the operation and its gradient. Both read, in this order: x, kernel, h,
/// then, if there are any, c, bias and mask.
struct RecurrenceTerms {
  RecurrentKind kind = RecurrentKind::lstm;
  bool reverse = false, biased = false, masked = false;
  bool keeps_gates = true;  ///< whether the gates are results, for gradients

  bool carries() const { return kind == RecurrentKind::lstm; }
  bool saves_gates() const { return keeps_gates && saved_gates_of(kind) > 0; }
  size_t bias_at() const { return carries() ? 4 : 3; }
  size_t mask_at() const { return bias_at() + (biased ? 1 : 0); }
  size_t input_count() const { return mask_at() + (masked ? 1 : 0); }

  std::string input_terms() const {
    std::string text = "b !t !w , !k !w , b !u";
    if (carries()) text += " , b !u";
    if (biased) text += " , !w";
    if (masked) text += " , b !t";
    return text;
  }
  /// The terms of the states: h, c and gates.
  std::string state_terms() const {
    std::string text = "!t b !u";
    if (carries()) text += " , !t b !u";
    if (saves_gates()) text += " , !t b !s";
    return text;
  }
  /// Throws ShapeError unless the inputs, from number `first` on, fit together.
  void check(std::string_view op, const Specs& in, size_t first) const {
    check_floating(op, in[first]);
    const Shape &x = in[first].shape, &h = in[first + 2].shape;
    const bool ranks = x.size() == 3 && h.size() == 2;
    const int64_t rows = ranks ? x[0] : 0, units = ranks ? h[1] : 0, width = gates_of(kind) * units;
    bool fits = ranks && x[2] == width && h[0] == rows;
    const auto expect = [&](size_t i, const Shape& shape) {
      fits = fits && in[first + i].shape == shape;
    };
    expect(1, {units, width});
    if (carries()) expect(3, {rows, units});
    if (biased) expect(bias_at(), {width});
    if (masked && ranks) expect(mask_at(), {rows, x[1]});
    if (fits) return;
    throw ShapeError(
        std::string(op),
        "x has axes batch, time and gates · units, the kernel units and gates · units, "
        "states batch and units",
        str(to_string(x), ", ", to_string(in[first + 1].shape), " and ", to_string(h)),
        "reshape them");
  }
  /// Returns the shapes of h, c and gates.
  Specs states_of(const Spec& x, const Spec& h) const {
    Specs out = {{{x.shape[1], x.shape[0], h.shape[1]}, x.dtype}};
    if (carries()) out.push_back(out[0]);
    if (saves_gates()) {
      out.push_back({{x.shape[1], x.shape[0], saved_gates_of(kind) * h.shape[1]}, x.dtype});
    }
    return out;
  }
  /// Returns results with the dtype and on the device of a block.
  static Tensors like(const at::Tensor& block, Tensors results) {
    for (at::Tensor& result : results) result = result.to(block.options());
    return results;
  }
  /// Takes the blocks of the inputs from number `first` on.
  Recurrence recurrence_of(const LocalArgs& in, size_t first) const {
    const auto dense = [&](size_t i) { return recurrence_block(in[first + i]); };
    Recurrence all{kind, reverse, keeps_gates, dense(0), dense(1), {}, dense(2), {}, {}};
    if (carries()) all.c = dense(3);
    if (biased) all.bias = dense(bias_at());
    if (masked) all.mask = dense(mask_at());
    return all;
  }
};

/// Gradients of RecurrenceOp's results, of the gates only if `gate_gradients`; its inputs; its
/// results -> gradients of its inputs but the mask.
struct RecurrenceGradOp : RecurrenceTerms {
  static constexpr std::string_view name = "recurrence_grad";
  bool gate_gradients = false;
  auto attributes() const { return std::tie(kind, reverse, biased, masked, gate_gradients); }
  size_t state_count() const { return 1 + (carries() ? 1 : 0) + (saves_gates() ? 1 : 0); }
  size_t first_input() const {
    return saves_gates() && !gate_gradients ? state_count() - 1 : state_count();
  }
  size_t first_state() const { return first_input() + input_count(); }
  Specs infer(const Specs& in) const {
    check(name, in, first_input());
    const Specs states = states_of(in[first_input()], in[first_input() + 2]);
    for (size_t i = 0; i < first_input(); ++i) check_state(in[i], states[i]);
    for (size_t i = 0; i < states.size(); ++i) check_state(in[first_state() + i], states[i]);
    return {in.begin() + int64_t(first_input()),
            in.begin() + int64_t(first_input() + (biased ? bias_at() + 1 : bias_at()))};
  }
  static void check_state(const Spec& actual, const Spec& expected) {
    if (actual.shape == expected.shape) return;
    throw ShapeError(std::string(name), "a state has shape " + to_string(expected.shape),
                     to_string(actual.shape), "reshape it");
  }
  Rule rule(const Specs&) const {
    std::string gradients = "!t b !u , ";
    if (carries()) gradients += "!t b !u , ";
    if (gate_gradients) gradients += "!t b !s , ";
    std::string out = "b !t !w , !k !w , b !u";
    if (carries()) out += " , b !u";
    if (biased) out += " , !w";
    Rule rule = Rule::parse(gradients + input_terms() + " , " + state_terms() + " -> " + out);
    for (FactorKind& factor : rule.factors) {
      if (factor == FactorKind::pass) factor = FactorKind::reduce;
    }
    return rule;
  }
  /// Takes h, c and gates from input number `first` on.
  RecurrentStates states_from(const LocalArgs& in, size_t first, bool gates) const {
    RecurrentStates states{recurrence_block(in[first++]), {}, {}};
    if (carries()) states.c = recurrence_block(in[first++]);
    if (gates) states.gates = recurrence_block(in[first]);
    return states;
  }
  Tensors forward(const LocalArgs& in) const {
    const RecurrentGradients all = recurrence_gradients(
        recurrence_of(in, first_input()), states_from(in, first_state(), saves_gates()),
        states_from(in, 0, gate_gradients));
    Tensors out = {all.x, all.kernel, all.h};
    if (carries()) out.push_back(all.c);
    if (biased) out.push_back(all.bias);
    return like(in[0], std::move(out));
  }
  static Samples<RecurrenceGradOp> samples();
};

/// x, kernel, h and, if there are any, c, bias and mask -> h, c and gates of all steps.
struct RecurrenceOp : RecurrenceTerms {
  static constexpr std::string_view name = "recurrence";
  auto attributes() const { return std::tie(kind, reverse, biased, masked, keeps_gates); }
  Specs infer(const Specs& in) const;
  Rule rule(const Specs&) const { return Rule::parse(input_terms() + " -> " + state_terms()); }
  Tensors forward(const LocalArgs& in) const {
    const RecurrentStates states = run_recurrence(recurrence_of(in, 0));
    Tensors out = {states.h};
    if (carries()) out.push_back(states.c);
    if (saves_gates()) out.push_back(states.gates);
    return like(in[0], std::move(out));
  }
  static constexpr Saves saves{0b111111, 0b111};
  Grads gradient(const Saved& saved, const Cotangents& cotangents, Needs) const;
  static Samples<RecurrenceOp> samples();
};

Specs RecurrenceOp::infer(const Specs& in) const {
  check(name, in, 0);
  return states_of(in[0], in[2]);
}

Grads RecurrenceOp::gradient(const Saved& saved, const Cotangents& cotangents, Needs) const {
  const auto or_zeros = [&](const DTensor& gradient, const DTensor& like) {
    if (gradient.defined()) return gradient;
    return filled(like.shape(), 0, like.dtype(), like.layout());
  };
  RecurrenceGradOp op{*this};
  op.gate_gradients = saves_gates() && cotangents.back().defined();
  std::vector<DTensor> in;
  for (size_t o = 0; o < op.first_input(); ++o) in.push_back(or_zeros(cotangents[o], saved.out(o)));
  for (size_t i = 0; i < input_count(); ++i) in.push_back(saved.in(i));
  for (size_t o = 0; o < op.state_count(); ++o) in.push_back(saved.out(o));
  Grads grads = dispatch(op_info<RecurrenceGradOp>(), &op, attribute_hash(op), in);
  grads.resize(input_count());
  return grads;
}

struct RecurrenceCase {
  RecurrenceTerms terms;
  int64_t rows = 3, steps = 2, units = 2;
  std::vector<SampleInput> inputs() const {
    const int64_t width = gates_of(terms.kind) * units;
    std::vector<SampleInput> in = {{{rows, steps, width}}, {{units, width}}, {{rows, units}}};
    if (terms.carries()) in.push_back({{rows, units}});
    if (terms.biased) in.push_back({{width}});
    if (terms.masked) in.push_back({{rows, steps}, at::kBool, 0, 2});
    return in;
  }
};
const RecurrenceCase recurrence_cases[] = {{{RecurrentKind::lstm}},
                                           {{RecurrentKind::gru, false, true}},
                                           {{RecurrentKind::simple_rnn, true}},
                                           {{RecurrentKind::lstm, true, true, true}},
                                           {{RecurrentKind::gru, true, false, true}, 2, 3},
                                           {{RecurrentKind::simple_rnn, false, false, true}}};

Samples<RecurrenceOp> RecurrenceOp::samples() {
  Samples<RecurrenceOp> all;
  for (const RecurrenceCase& c : recurrence_cases) all.push_back({c.inputs(), {c.terms}});
  return all;
}

Samples<RecurrenceGradOp> RecurrenceGradOp::samples() {
  Samples<RecurrenceGradOp> all;
  for (const RecurrenceCase& c : recurrence_cases) {
    for (const bool gate_gradients : {false, true}) {
      if (gate_gradients && !c.terms.saves_gates()) continue;
      const SampleInput state = {{c.steps, c.rows, c.units}, at::kDouble, -0.9, 0.9};
      const int64_t saved = saved_gates_of(c.terms.kind) * c.units;
      std::vector<SampleInput> states = {state};
      if (c.terms.carries()) states.push_back(state);
      const size_t without_gates = states.size();
      if (c.terms.saves_gates())
        states.push_back({{c.steps, c.rows, saved}, at::kDouble, 0.1, 0.9});
      std::vector<SampleInput> in = states;
      if (!gate_gradients) in.resize(without_gates);
      for (const SampleInput& input : c.inputs()) in.push_back(input);
      in.insert(in.end(), states.begin(), states.end());
      all.push_back({in, {c.terms, gate_gradients}});
    }
  }
  return all;
}

TESSERA_REGISTER_OP(RecurrenceGradOp);
TESSERA_REGISTER_OP(RecurrenceOp);

}  // namespace

bool can_run_recurrence(const Mesh& mesh) { return !on_gpus(mesh) && recording_tapes() <= 1; }

RecurrenceResult recurrence(const RecurrenceInputs& in) {
  const RecurrenceOp op{
      {in.kind, in.reverse, in.bias.defined(), in.mask.defined(), /*keeps_gates=*/recording()}};
  std::vector<DTensor> inputs = {in.x, in.kernel, in.h};
  for (const DTensor& each : {in.c, in.bias, in.mask}) {
    if (each.defined()) inputs.push_back(each);
  }
  const std::vector<DTensor> out =
      dispatch(op_info<RecurrenceOp>(), &op, attribute_hash(op), inputs);
  return {out[0], op.carries() ? out[1] : DTensor()};
}

}  // namespace tessera::detail
