#include <tessera/framework/ops/int8.hpp>

#include <algorithm>
#include <map>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/equation.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/operand.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr int64_t max_int8 = 127;
/// Keras' epsilon, which bounds the scale of zeros.
constexpr double abs_max_epsilon = 1e-7;
/// The largest integer up to which float32 has them all.
constexpr int64_t max_exact_float = int64_t{1} << 24;

/// (x, x_scale, kernel) -> the product of the integers; see ops::int8_einsum().
struct Int8EinsumOp {
  static constexpr std::string_view name = "int8_einsum";
  std::string equation = "bk,kn->bn";
  auto attributes() const { return std::tie(equation); }

  struct Terms {
    std::string x, kernel, out;
  };
  Terms terms() const {
    const Equation terms = split_equation(equation);
    const bool fits = terms.in.size() == 2 && terms.out;
    if (!fits || repeats_letter(terms.in[0]) || repeats_letter(terms.in[1]) ||
        repeats_letter(*terms.out)) {
      throw ShapeError("int8_einsum", "an equation has two terms without repeated letters",
                       in_quotes(equation), "write for example \"bmk,kn->bmn\"");
    }
    return {terms.in[0], terms.in[1], *terms.out};
  }
  static bool has(const std::string& term, char letter) {
    return term.find(letter) != std::string::npos;
  }

  Specs infer(const Specs& in) const {
    const Terms t = terms();
    check_floating(name, in[0]);
    check_same_dtype(name, {in[0], in[1]});
    if (in[2].dtype != at::kChar) {
      throw ConfigError("int8_einsum", "the kernel has dtype int8", dtype_name(in[2].dtype),
                        "quantize it with abs_max_quantize()");
    }
    std::map<char, int64_t> extents;
    Shape scale;
    bool fits = t.x.size() == in[0].shape.size() && t.kernel.size() == in[2].shape.size();
    for (size_t a = 0; fits && a < t.x.size(); ++a) {
      extents[t.x[a]] = in[0].shape[a];
      scale.push_back(has(t.out, t.x[a]) ? in[0].shape[a] : 1);
    }
    for (size_t a = 0; fits && a < t.kernel.size(); ++a) {
      const int64_t extent = in[2].shape[a];
      fits = extents.emplace(t.kernel[a], extent).first->second == extent;
    }
    fits = fits && in[1].shape == scale &&
           std::all_of(t.out.begin(), t.out.end(), [&](char c) { return extents.count(c) > 0; });
    if (!fits) {
      throw ShapeError("int8_einsum", "x, its scale and the kernel have the equation's extents",
                       str(to_string(in[0].shape), ", ", to_string(in[1].shape), " and ",
                           to_string(in[2].shape), " for ", in_quotes(equation)),
                       "correct the equation");
    }
    Shape shape;
    for (const char letter : t.out) shape.push_back(extents.at(letter));
    return {{shape, sum_dtype(in)}};
  }

  /// The dtype that holds every sum exactly, in whatever order it is added up.
  at::ScalarType sum_dtype(const Specs& in) const {
    const Terms t = terms();
    int64_t summed = 1;
    for (size_t a = 0; a < t.x.size(); ++a) {
      if (!has(t.out, t.x[a])) summed *= in[0].shape[a];
    }
    const bool small = summed <= max_exact_float / (max_int8 * max_int8);
    return small && in[0].dtype != at::kDouble ? at::kFloat : at::kDouble;
  }

  Rule rule(const Specs&) const {
    const Terms t = terms();
    std::string text;
    for (const char letter : t.x) text += {' ', letter};
    text += " ,";
    for (const char letter : t.x) text += {' ', has(t.out, letter) ? letter : '.'};
    text += " ,";
    for (const char letter : t.kernel) text += {' ', letter};
    text += " ->";
    for (const char letter : t.out) text += {' ', letter};
    return Rule::parse(text);
  }

  Tensors forward(const LocalArgs& in) const {
    const Terms t = terms();
    const at::Tensor& scale = in[1];
    for (size_t a = 0; a < t.x.size(); ++a) {
      const auto axis = static_cast<int64_t>(a);
      TORCH_CHECK(scale.size(axis) == (has(t.out, t.x[a]) ? in[0].size(axis) : 1),
                  "the scale has other blocks than x");
    }
    // The product of two half precision numbers is exact in float32, so it is rounded once.
    const at::ScalarType wide = in[0].scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor x =
        (in[0].to(wide) * scale).round_().clamp_(-max_int8, max_int8).to(at::kChar);
    const at::ScalarType dtype = sum_dtype({in.spec(0), in.spec(1), in.spec(2)});
    if (x.is_cpu() && is_matrix_product(t)) return {matrix_product(t, x, in[2]).to(dtype)};
    // Exact, too: float32 holds all sums, or float64 does.
    return {at::einsum(equation, {x.to(dtype), in[2].to(dtype)})};
  }

  /// Whether letters are those of a product of matrices: rows, summed ones, columns.
  static bool is_matrix_product(const Terms& t) {
    const auto is_one = [&](char c) { return has(t.x, c) + has(t.kernel, c) + has(t.out, c) == 2; };
    return std::all_of(t.x.begin(), t.x.end(), is_one) &&
           std::all_of(t.kernel.begin(), t.kernel.end(), is_one) && t.kernel.size() > 0;
  }

  /// Returns the product in int32, as one of matrices.
  static at::Tensor matrix_product(const Terms& t, const at::Tensor& x, const at::Tensor& kernel) {
    std::string rows, summed, columns;
    for (const char letter : t.x) (has(t.out, letter) ? rows : summed) += letter;
    for (const char letter : t.kernel) {
      if (!has(t.x, letter)) columns += letter;
    }
    const auto matrix = [](const at::Tensor& tensor, const std::string& term,
                           const std::string& left, const std::string& right) {
      std::vector<int64_t> order;
      int64_t height = 1, width = 1;
      for (const char letter : left + right) {
        order.push_back(static_cast<int64_t>(term.find(letter)));
        (order.size() <= left.size() ? height : width) *= tensor.size(order.back());
      }
      return tensor.permute(order).reshape({height, width});
    };
    const at::Tensor product =
        at::_int_mm(matrix(x, t.x, rows, summed), matrix(kernel, t.kernel, summed, columns));
    std::vector<int64_t> shape, order;
    for (const char letter : rows + columns) {
      const bool row = has(t.x, letter);
      const size_t axis = (row ? t.x : t.kernel).find(letter);
      shape.push_back((row ? x : kernel).size(static_cast<int64_t>(axis)));
    }
    for (const char letter : t.out) {
      order.push_back(static_cast<int64_t>((rows + columns).find(letter)));
    }
    return product.view(shape).permute(order);
  }

  static constexpr Saves saves = inputs(1, 2);
  Grads gradient(const Saved& saved, const Cotangents& dys, Needs needs) const {
    Grads grads(3);
    if (!needs[0]) return grads;
    const Terms t = terms();
    const DTensor& scale = saved.in(1);
    const DTensor dy = ops::cast(dys[0], scale.dtype());
    const DTensor kernel = ops::cast(saved.in(2), scale.dtype());
    grads[0] = ops::einsum(t.out + "," + t.kernel + "->" + t.x, {dy, kernel}) * scale;
    return grads;
  }

  /// No input is differentiable by finite differences, since x is rounded.
  static Samples<Int8EinsumOp> samples() {
    const auto sample = [](const Shape& x, const Shape& scale, const Shape& kernel,
                           const std::string& equation) {
      return Sample<Int8EinsumOp>{{{.shape = x, .differentiable = false},
                                   {.shape = scale, .lo = 60, .hi = 127, .differentiable = false},
                                   {.shape = kernel, .dtype = at::kChar, .lo = -127, .hi = 128}},
                                  {equation}};
    };
    return {sample({4, 3}, {4, 1}, {3, 5}, "bk,kn->bn"),
            sample({2, 4, 3}, {2, 4, 1}, {3, 2}, "btk,kn->btn"),
            sample({2, 3, 4}, {2, 3, 1}, {4, 2, 3}, "abc,cde->abde"),
            sample({2, 3, 4}, {2, 1, 1}, {3, 4, 2}, "abc,bcd->ad"),
            sample({2, 3, 4}, {2, 1, 4}, {4, 3, 2}, "abc,cbd->adc")};
  }
};
TESSERA_REGISTER_OP(Int8EinsumOp);

}  // namespace

namespace ops {

DTensor abs_max_scale(const DTensor& x, const std::vector<int64_t>& axes) {
  if (!at::isFloatingType(x.dtype())) {
    throw ConfigError("abs_max_scale", "x has a floating dtype", dtype_name(x.dtype()),
                      "quantize values that are not quantized yet");
  }
  const DTensor largest = max(abs(stop_gradient(x)), axes, /*keepdims=*/true);
  return static_cast<double>(max_int8) / (largest + abs_max_epsilon);
}

std::pair<DTensor, DTensor> abs_max_quantize(const DTensor& x, const std::vector<int64_t>& axes) {
  const DTensor scale = abs_max_scale(x, axes);
  const auto bound = static_cast<double>(max_int8);
  return {cast(clip(round(stop_gradient(x) * scale), -bound, bound), at::kChar), scale};
}

DTensor int8_einsum(const std::string& equation, const DTensor& x, const DTensor& x_scale,
                    const DTensor& kernel) {
  return run_op(Int8EinsumOp{equation}, {x, x_scale, kernel});
}

}  // namespace ops
}  // namespace tessera
