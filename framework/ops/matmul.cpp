#include <tessera/framework/ops/matmul.hpp>

#include <algorithm>
#include <map>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/equation.hpp>
#include <tessera/framework/ops/internal/matrix_gradient.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Whether integers are multiplied as float64, which is exact up to 2^53: ATen has no integer
/// matmul on GPUs.
bool multiplies_as_doubles(const at::Tensor& x) {
  return !x.is_cpu() && c10::isIntegralType(x.scalar_type(), /*includeBool=*/false);
}

struct MatmulOp {
  static constexpr std::string_view name = "matmul";
  bool transpose_a = false;
  bool transpose_b = false;
  auto attributes() const { return std::tie(transpose_a, transpose_b); }

  static int64_t row(const Spec& s, bool t) { return s.shape[s.shape.size() - (t ? 1 : 2)]; }
  static int64_t column(const Spec& s, bool t) { return s.shape[s.shape.size() - (t ? 2 : 1)]; }
  static Spec batch(const Spec& s) { return {{s.shape.begin(), s.shape.end() - 2}, s.dtype}; }

  Specs infer(const Specs& in) const {
    const std::string received = to_string(in[0].shape) + " and " + to_string(in[1].shape);
    if (in[0].rank() < 2 || in[1].rank() < 2) {
      throw ShapeError("matmul", "operands have at least two axes", received, "add an axis");
    }
    check_same_dtype(name, in);
    check_not_bool(name, in[0]);
    if (column(in[0], transpose_a) != row(in[1], transpose_b)) {
      throw ShapeError("matmul", "the inner extents are equal", received, "transpose an operand");
    }
    Shape shape = broadcast_shape(name, {batch(in[0]), batch(in[1])});
    shape.push_back(row(in[0], transpose_a));
    shape.push_back(column(in[1], transpose_b));
    return {{shape, in[0].dtype}};
  }

  Rule rule(const Specs& in) const {
    Rule rule = broadcast_rule({batch(in[0]), batch(in[1])});
    const int m = int(rule.factors.size()), k = m + 1, n = m + 2;
    rule.factors.insert(rule.factors.end(),
                        {FactorKind::pass, FactorKind::reduce, FactorKind::pass});
    rule.in[0].insert(rule.in[0].end(), {transpose_a ? k : m, transpose_a ? m : k});
    rule.in[1].insert(rule.in[1].end(), {transpose_b ? n : k, transpose_b ? k : n});
    rule.out[0].insert(rule.out[0].end(), {m, n});
    return rule;
  }

  Tensors forward(const LocalArgs& in) const {
    const at::Tensor a = transpose_a ? in[0].transpose(-1, -2) : in[0];
    const at::Tensor b = transpose_b ? in[1].transpose(-1, -2) : in[1];
    if (multiplies_as_doubles(a)) {
      return {at::matmul(a.to(at::kDouble), b.to(at::kDouble)).to(a.scalar_type())};
    }
    if (a.dim() == 2 && b.dim() == 2) return {at::mm(a, b)};
    return {at::matmul(a, b)};
  }

  static constexpr Saves saves = inputs(0, 1);
  Grads gradient(const Saved& saved, const Cotangents& dys, Needs needs) const {
    const DTensor& dy = dys[0];
    Grads grads(2);
    if (needs[0]) {
      const DTensor& b = saved.in(1);
      grads[0] = sum_to(transpose_a ? ops::matmul(b, dy, transpose_b, true)
                                    : ops::matmul(dy, b, false, !transpose_b),
                        saved.shape(0));
    }
    if (needs[1]) {
      const DTensor& a = saved.in(0);
      grads[1] = saved.shape(1).size() == 2 && a.rank() > 2
                     ? matrix_gradient(a, dy, transpose_a ? "yx" : "xy", transpose_b ? "zy" : "yz")
                     : sum_to(transpose_b ? ops::matmul(dy, a, true, transpose_a)
                                          : ops::matmul(a, dy, !transpose_a, false),
                              saved.shape(1));
    }
    return grads;
  }

  static Samples<MatmulOp> samples() {
    return {{{{{4, 3}}, {{3, 5}}}, {}},
            {{{{3, 4}}, {{3, 5}}}, {true, false}},
            {{{{4, 3}}, {{5, 3}}}, {false, true}},
            {{{{2, 4, 3}}, {{3, 2}}}, {}},
            {{{{2, 2, 3}}, {{2, 3, 2}}}, {}},
            {{{{2, 1, 2, 3}}, {{3, 4, 3}}}, {false, true}}};
  }
};
TESSERA_REGISTER_OP(MatmulOp);

struct EinsumOp {
  static constexpr std::string_view name = "einsum";
  std::string equation = "ij->ji";
  auto attributes() const { return std::tie(equation); }

  struct Terms {
    std::vector<std::string> in;
    std::string out;
  };
  [[noreturn]] void fail(const std::string& expected) const {
    throw ShapeError("einsum", expected, "\"" + equation + "\"",
                     "write for example \"bmk,kn->bmn\"");
  }
  Terms terms() const {
    const Equation terms = split_equation(equation);
    if (!terms.out) fail("an equation names its output after \"->\"");
    if (std::any_of(terms.in.begin(), terms.in.end(), repeats_letter)) {
      fail("a letter must occur at most once in an operand");
    }
    return {terms.in, *terms.out};
  }

  Specs infer(const Specs& in) const {
    const Terms t = terms();
    check_same_dtype(name, in);
    if (in.size() > 1) check_not_bool(name, in[0]);
    if (t.in.size() != in.size() || in.size() > 2)
      fail("the equation must have one term for each of 1 or 2 operands");
    std::map<char, int64_t> extents;
    for (size_t i = 0; i < in.size(); ++i) {
      if (t.in[i].size() != in[i].shape.size()) {
        throw ShapeError("einsum", str("term \"", t.in[i], "\" has a letter for every axis"),
                         to_string(in[i].shape), "correct the equation");
      }
      for (size_t a = 0; a < in[i].shape.size(); ++a) {
        const auto [at, fresh] = extents.emplace(t.in[i][a], in[i].shape[a]);
        if (!fresh && at->second != in[i].shape[a]) {
          throw ShapeError("einsum", str("letter ", t.in[i][a], " has one extent"),
                           str(at->second, " and ", in[i].shape[a]), "correct the equation");
        }
      }
    }
    Shape shape;
    for (char c : t.out) {
      if (!extents.count(c)) fail("output letters must occur in an operand");
      shape.push_back(extents[c]);
    }
    return {{shape, in[0].dtype}};
  }

  Rule rule(const Specs&) const {
    const Terms t = terms();
    std::string text;
    const auto spell = [&](const std::string& term) {
      for (char c : term) text += std::string(" ") + c;
    };
    for (size_t i = 0; i < t.in.size(); ++i) {
      if (i) text += " ,";
      spell(t.in[i]);
    }
    text += " ->";
    spell(t.out);
    Rule rule = Rule::parse(text);
    return t.in.size() == 1 ? rule.passing(Passes::sums) : rule;
  }

  Tensors forward(const LocalArgs& in) const {
    std::vector<at::Tensor> operands(in.all().begin(), in.all().end());
    if (!multiplies_as_doubles(in[0])) return {at::einsum(equation, operands)};
    for (at::Tensor& operand : operands) operand = operand.to(at::kDouble);
    return {at::einsum(equation, operands).to(in[0].scalar_type())};
  }

  static constexpr Saves saves = inputs(0, 1);
  Grads gradient(const Saved& saved, const Cotangents& dy, Needs needs) const {
    const Terms t = terms();
    Grads grads(t.in.size());
    for (size_t i = 0; i < t.in.size(); ++i) {
      if (!needs[i]) continue;
      std::vector<DTensor> operands = {dy[0]};
      std::string left = t.out;
      if (t.in.size() == 2) {
        operands.push_back(saved.in(1 - i));
        left += "," + t.in[1 - i];
      }
      grads[i] = broadcast_summed(left, operands, t.in[i], saved.shape(i));
    }
    return grads;
  }

  /// Computes an operand's gradient. Letters that only this operand has were summed over, so their
  /// gradient is broadcast.
  static DTensor broadcast_summed(const std::string& left, const std::vector<DTensor>& operands,
                                  const std::string& target, const Shape& shape) {
    std::string retained;
    Shape retained_shape;
    for (size_t a = 0; a < target.size(); ++a) {
      const bool known = left.find(target[a]) != std::string::npos;
      if (known) retained += target[a];
      retained_shape.push_back(known ? shape[a] : 1);
    }
    const DTensor sum = ops::einsum(left + "->" + retained, operands);
    return retained == target ? sum : ops::broadcast_to(ops::reshape(sum, retained_shape), shape);
  }

  static Samples<EinsumOp> samples() {
    return {{{{{2, 3, 4}}, {{4, 3}}}, {"bmk,kn->bmn"}},
            {{{{3, 4}}}, {"ij->ji"}},
            {{{{3, 4}}, {{3, 4}}}, {"ij,ij->i"}},
            {{{{2, 3}}, {{4}}}, {"ab,c->ca"}}};
  }
};
TESSERA_REGISTER_OP(EinsumOp);

}  // namespace

namespace ops {

DTensor matmul(const DTensor& a, const DTensor& b, bool transpose_a, bool transpose_b) {
  if (a.defined() && b.defined() && a.dtype() == b.dtype()) {
    return run_op(MatmulOp{transpose_a, transpose_b}, {a, b});
  }
  const auto [x, y] = in_floating_dtype(a, b);
  return run_op(MatmulOp{transpose_a, transpose_b}, {x, y});
}

DTensor einsum(const std::string& equation, const std::vector<DTensor>& operands) {
  std::string plain = equation;
  plain.erase(std::remove(plain.begin(), plain.end(), ' '), plain.end());
  if (operands.size() != 2) return run_op(EinsumOp{plain}, operands);
  const auto [x, y] = in_floating_dtype(operands[0], operands[1]);
  return run_op(EinsumOp{plain}, {x, y});
}

}  // namespace ops

DTensor detail::matrix_gradient(const DTensor& a, const DTensor& dy, const std::string& of_a,
                                const std::string& of_matrix) {
  std::string lead;
  for (int64_t i = 0; i + 2 < a.rank(); ++i) lead += char('a' + i);
  return ops::einsum(lead + of_a + "," + lead + "xz->" + of_matrix, {a, dy});
}

}  // namespace tessera
