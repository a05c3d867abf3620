#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/symbolic.hpp>
#include <tessera/framework/ops/reduce.hpp>

namespace tessera {

/// An argument of a symbolic operation: a tensor, a list of tensors or a number.
struct SymbolicOperand {
  SymbolicOperand(const SymbolicTensor& tensor) : tensors{tensor} {}  // NOLINT: reads as data
  SymbolicOperand(const std::vector<SymbolicTensor>& list)
      : tensors(list), is_list(true) {}  // NOLINT
  template <class T>
  requires std::integral<T> || std::floating_point<T> SymbolicOperand(T number)
      : value(number) {}  // NOLINT

  std::vector<SymbolicTensor> tensors = {};
  bool is_list = false;
  Json value = {};
};

namespace detail {

/// Calls the operation with this Keras class name; `options` are those of its class. Throws
/// ConfigError or ShapeError for arguments that do not fit.
std::vector<SymbolicTensor> operation_outputs(const std::string& class_name,
                                              const std::vector<SymbolicOperand>& args,
                                              const Json& options = Json::object());

}  // namespace detail

/// Arithmetic on symbolic tensors, with numbers on either side, as in Keras: `x + y`, `1 - x`. Each
/// is an operation of the graph ("add" or "add_1" in its JSON and summary), not a layer. Shapes
/// broadcast; a number takes the tensor's dtype, but a fraction makes an integer tensor float32.
/// Operations do not propagate masks.
///
///     Input x({8});
///     const SymbolicTensor y = Dense(8)(ops::relu(x));
///     Functional residual({x}, {x + 0.5 * y});
SymbolicTensor operator+(const SymbolicOperand& a, const SymbolicOperand& b);
SymbolicTensor operator-(const SymbolicOperand& a, const SymbolicOperand& b);
SymbolicTensor operator*(const SymbolicOperand& a, const SymbolicOperand& b);
SymbolicTensor operator/(const SymbolicOperand& a, const SymbolicOperand& b);
SymbolicTensor operator-(const SymbolicTensor& x);

namespace ops {

/// Elementwise functions (keras.ops), with the names and arguments of the functions on DTensors;
/// each call is an operation of the graph. Integers become float32 where the result is fractional.
SymbolicTensor neg(const SymbolicTensor& x);
SymbolicTensor abs(const SymbolicTensor& x);
SymbolicTensor sign(const SymbolicTensor& x);
SymbolicTensor exp(const SymbolicTensor& x);
SymbolicTensor expm1(const SymbolicTensor& x);
SymbolicTensor log(const SymbolicTensor& x);
SymbolicTensor log1p(const SymbolicTensor& x);
SymbolicTensor sqrt(const SymbolicTensor& x);
SymbolicTensor rsqrt(const SymbolicTensor& x);
SymbolicTensor square(const SymbolicTensor& x);
SymbolicTensor reciprocal(const SymbolicTensor& x);
SymbolicTensor sin(const SymbolicTensor& x);
SymbolicTensor cos(const SymbolicTensor& x);
SymbolicTensor tanh(const SymbolicTensor& x);
SymbolicTensor erf(const SymbolicTensor& x);
SymbolicTensor sigmoid(const SymbolicTensor& x);
SymbolicTensor relu(const SymbolicTensor& x);
SymbolicTensor softplus(const SymbolicTensor& x);
SymbolicTensor floor(const SymbolicTensor& x);
SymbolicTensor ceil(const SymbolicTensor& x);
SymbolicTensor round(const SymbolicTensor& x);
SymbolicTensor is_finite(const SymbolicTensor& x);
SymbolicTensor logical_not(const SymbolicTensor& x);
SymbolicTensor relu6(const SymbolicTensor& x);
SymbolicTensor hard_sigmoid(const SymbolicTensor& x);
SymbolicTensor hard_silu(const SymbolicTensor& x);
SymbolicTensor log_sigmoid(const SymbolicTensor& x);
SymbolicTensor selu(const SymbolicTensor& x);
SymbolicTensor silu(const SymbolicTensor& x);
SymbolicTensor softsign(const SymbolicTensor& x);
SymbolicTensor sparse_plus(const SymbolicTensor& x);
SymbolicTensor sparse_sigmoid(const SymbolicTensor& x);
SymbolicTensor tanh_shrink(const SymbolicTensor& x);
SymbolicTensor stop_gradient(const SymbolicTensor& x);
SymbolicTensor elu(const SymbolicTensor& x, double alpha = 1);
SymbolicTensor leaky_relu(const SymbolicTensor& x, double negative_slope = 0.2);
SymbolicTensor hard_shrink(const SymbolicTensor& x, double threshold = 0.5);
SymbolicTensor soft_shrink(const SymbolicTensor& x, double threshold = 0.5);
SymbolicTensor squareplus(const SymbolicTensor& x, double b = 4);
SymbolicTensor gelu(const SymbolicTensor& x, bool approximate);
SymbolicTensor threshold(const SymbolicTensor& x, double threshold, double default_value);

/// Binary elementwise functions of tensors or numbers, as the arithmetic above; shapes broadcast.
/// Comparisons return bool.
SymbolicTensor add(const SymbolicOperand& a, const SymbolicOperand& b);
SymbolicTensor sub(const SymbolicOperand& a, const SymbolicOperand& b);
SymbolicTensor mul(const SymbolicOperand& a, const SymbolicOperand& b);
SymbolicTensor div(const SymbolicOperand& a, const SymbolicOperand& b);
SymbolicTensor maximum(const SymbolicOperand& a, const SymbolicOperand& b);
SymbolicTensor minimum(const SymbolicOperand& a, const SymbolicOperand& b);
SymbolicTensor pow(const SymbolicOperand& a, const SymbolicOperand& b);
SymbolicTensor floor_div(const SymbolicOperand& a, const SymbolicOperand& b);
SymbolicTensor remainder(const SymbolicOperand& a, const SymbolicOperand& b);
SymbolicTensor equal(const SymbolicOperand& a, const SymbolicOperand& b);
SymbolicTensor not_equal(const SymbolicOperand& a, const SymbolicOperand& b);
SymbolicTensor less(const SymbolicOperand& a, const SymbolicOperand& b);
SymbolicTensor less_equal(const SymbolicOperand& a, const SymbolicOperand& b);
SymbolicTensor greater(const SymbolicOperand& a, const SymbolicOperand& b);
SymbolicTensor greater_equal(const SymbolicOperand& a, const SymbolicOperand& b);
SymbolicTensor logical_and(const SymbolicOperand& a, const SymbolicOperand& b);
SymbolicTensor logical_or(const SymbolicOperand& a, const SymbolicOperand& b);

/// Clipping and selection, matrix products, indexing and casts.
SymbolicTensor clip(const SymbolicTensor& x, double lo, double hi);
SymbolicTensor where(const SymbolicTensor& condition, const SymbolicOperand& a,
                     const SymbolicOperand& b);
SymbolicTensor matmul(const SymbolicTensor& a, const SymbolicTensor& b);
SymbolicTensor einsum(const std::string& equation, const std::vector<SymbolicTensor>& operands);
SymbolicTensor gather(const SymbolicTensor& x, const SymbolicTensor& indices, int64_t axis = 0);
SymbolicTensor take_along_axis(const SymbolicTensor& x, const SymbolicTensor& indices,
                               int64_t axis);
SymbolicTensor one_hot(const SymbolicTensor& labels, int64_t classes);
SymbolicTensor cast(const SymbolicTensor& x, at::ScalarType dtype);

/// Reductions over axes (default: all) and functions along one axis.
SymbolicTensor softmax(const SymbolicTensor& x, int64_t axis = -1);
SymbolicTensor log_softmax(const SymbolicTensor& x, int64_t axis = -1);
SymbolicTensor sparsemax(const SymbolicTensor& x, int64_t axis = -1);
SymbolicTensor argmax(const SymbolicTensor& x, int64_t axis = -1);
SymbolicTensor argmin(const SymbolicTensor& x, int64_t axis = -1);
SymbolicTensor sum(const SymbolicTensor& x, const Axes& axes = {}, bool keepdims = false);
SymbolicTensor mean(const SymbolicTensor& x, const Axes& axes = {}, bool keepdims = false);
SymbolicTensor max(const SymbolicTensor& x, const Axes& axes = {}, bool keepdims = false);
SymbolicTensor min(const SymbolicTensor& x, const Axes& axes = {}, bool keepdims = false);
SymbolicTensor prod(const SymbolicTensor& x, const Axes& axes = {}, bool keepdims = false);
SymbolicTensor all(const SymbolicTensor& x, const Axes& axes = {}, bool keepdims = false);
SymbolicTensor any(const SymbolicTensor& x, const Axes& axes = {}, bool keepdims = false);
SymbolicTensor logsumexp(const SymbolicTensor& x, const Axes& axes = {}, bool keepdims = false);
SymbolicTensor variance(const SymbolicTensor& x, const Axes& axes = {}, bool keepdims = false);
SymbolicTensor cumsum(const SymbolicTensor& x, int64_t axis);
/// Returns the k largest elements of the last axis and their indices (int32).
std::pair<SymbolicTensor, SymbolicTensor> top_k(const SymbolicTensor& x, int64_t k);

/// Functions that move elements: reshaping, joining, splitting and reordering.
SymbolicTensor reshape(const SymbolicTensor& x, const Shape& shape);
SymbolicTensor transpose(const SymbolicTensor& x, const std::vector<int64_t>& axes = {});
SymbolicTensor expand_dims(const SymbolicTensor& x, int64_t axis);
SymbolicTensor squeeze(const SymbolicTensor& x, const std::vector<int64_t>& axes);
SymbolicTensor broadcast_to(const SymbolicTensor& x, const Shape& shape);
SymbolicTensor concat(const std::vector<SymbolicTensor>& tensors, int64_t axis = 0);
SymbolicTensor stack(const std::vector<SymbolicTensor>& tensors, int64_t axis = 0);
std::vector<SymbolicTensor> split(const SymbolicTensor& x, int64_t sections, int64_t axis = 0);
std::vector<SymbolicTensor> unstack(const SymbolicTensor& x, int64_t axis = 0);
SymbolicTensor tile(const SymbolicTensor& x, const std::vector<int64_t>& repeats);
SymbolicTensor flip(const SymbolicTensor& x, const std::vector<int64_t>& axes = {});
SymbolicTensor roll(const SymbolicTensor& x, const std::vector<int64_t>& shifts,
                    const std::vector<int64_t>& axes = {});
SymbolicTensor tril(const SymbolicTensor& x, int64_t k = 0);
SymbolicTensor triu(const SymbolicTensor& x, int64_t k = 0);
/// Returns elements [begin, begin + size) of one axis, like x[{":", "1:3"}].
SymbolicTensor slice(const SymbolicTensor& x, int64_t axis, int64_t begin, int64_t size);
/// Adds `before` and `after` elements of `value` at the ends of an axis.
SymbolicTensor pad(const SymbolicTensor& x, int64_t axis, int64_t before, int64_t after,
                   double value = 0);

}  // namespace ops
}  // namespace tessera
