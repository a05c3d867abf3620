#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/symbolic.hpp>

namespace tessera {

namespace detail {

/// An argument of an operation on tensors of a model: one, several, or a number.
struct Operand {
  Operand(const SymbolicTensor& tensor) : tensors{tensor} {}  // NOLINT: reads as data
  Operand(const std::vector<SymbolicTensor>& list) : tensors(list), is_list(true) {}  // NOLINT
  template <class T>
  requires std::integral<T> || std::floating_point<T> Operand(T number)
      : value(number) {}  // NOLINT

  std::vector<SymbolicTensor> tensors = {};
  bool is_list = false;
  Json value = {};
};

/// Calls the operation that Keras has under this class name; `options` are those of its class.
/// Throws ConfigError or ShapeError where the arguments do not fit.
std::vector<SymbolicTensor> operation_outputs(const std::string& class_name,
                                              const std::vector<Operand>& args,
                                              const Json& options = Json::object());

}  // namespace detail

/// Arithmetic on tensors of a model, and with numbers on either side, as in Keras: `x + y`,
/// `1 - x`. Each is an operation of the graph, "add" or "add_1" in its JSON and its summary, and no
/// layer. Shapes broadcast; a number takes the tensor's dtype, but for a fraction beside whole
/// numbers, which makes float32. An operation has no mask, and a mask ends there.
///
///     Input x({8});
///     const SymbolicTensor y = Dense(8)(ops::relu(x));
///     Functional residual({x}, {x + 0.5 * y});
SymbolicTensor operator+(const detail::Operand& a, const detail::Operand& b);
SymbolicTensor operator-(const detail::Operand& a, const detail::Operand& b);
SymbolicTensor operator*(const detail::Operand& a, const detail::Operand& b);
SymbolicTensor operator/(const detail::Operand& a, const detail::Operand& b);
SymbolicTensor operator-(const SymbolicTensor& x);

namespace ops {

/// Functions of each element (keras.ops), under the names that they have for DTensors and with the
/// same arguments: each call is an operation of the graph. Whole numbers become float32 where the
/// function needs fractions.
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

/// Functions of two elements, or of one and a number, as the arithmetic above; shapes broadcast.
/// Comparisons give truth values.
SymbolicTensor add(const detail::Operand& a, const detail::Operand& b);
SymbolicTensor sub(const detail::Operand& a, const detail::Operand& b);
SymbolicTensor mul(const detail::Operand& a, const detail::Operand& b);
SymbolicTensor div(const detail::Operand& a, const detail::Operand& b);
SymbolicTensor maximum(const detail::Operand& a, const detail::Operand& b);
SymbolicTensor minimum(const detail::Operand& a, const detail::Operand& b);
SymbolicTensor pow(const detail::Operand& a, const detail::Operand& b);
SymbolicTensor floor_div(const detail::Operand& a, const detail::Operand& b);
SymbolicTensor remainder(const detail::Operand& a, const detail::Operand& b);
SymbolicTensor equal(const detail::Operand& a, const detail::Operand& b);
SymbolicTensor not_equal(const detail::Operand& a, const detail::Operand& b);
SymbolicTensor less(const detail::Operand& a, const detail::Operand& b);
SymbolicTensor less_equal(const detail::Operand& a, const detail::Operand& b);
SymbolicTensor greater(const detail::Operand& a, const detail::Operand& b);
SymbolicTensor greater_equal(const detail::Operand& a, const detail::Operand& b);
SymbolicTensor logical_and(const detail::Operand& a, const detail::Operand& b);
SymbolicTensor logical_or(const detail::Operand& a, const detail::Operand& b);

/// Choices, products, other dtypes and slices by number.
SymbolicTensor clip(const SymbolicTensor& x, double lo, double hi);
SymbolicTensor where(const SymbolicTensor& condition, const detail::Operand& a,
                     const detail::Operand& b);
SymbolicTensor matmul(const SymbolicTensor& a, const SymbolicTensor& b);
SymbolicTensor einsum(const std::string& equation, const std::vector<SymbolicTensor>& operands);
SymbolicTensor gather(const SymbolicTensor& x, const SymbolicTensor& indices, int64_t axis = 0);
SymbolicTensor take_along_axis(const SymbolicTensor& x, const SymbolicTensor& indices,
                               int64_t axis);
SymbolicTensor one_hot(const SymbolicTensor& labels, int64_t classes);
SymbolicTensor cast(const SymbolicTensor& x, at::ScalarType dtype);

/// Reductions over axes, none for all, and functions along one axis.
SymbolicTensor softmax(const SymbolicTensor& x, int64_t axis = -1);
SymbolicTensor log_softmax(const SymbolicTensor& x, int64_t axis = -1);
SymbolicTensor sparsemax(const SymbolicTensor& x, int64_t axis = -1);
SymbolicTensor argmax(const SymbolicTensor& x, int64_t axis = -1);
SymbolicTensor argmin(const SymbolicTensor& x, int64_t axis = -1);
SymbolicTensor sum(const SymbolicTensor& x, const std::vector<int64_t>& axes = {},
                   bool keepdims = false);
SymbolicTensor mean(const SymbolicTensor& x, const std::vector<int64_t>& axes = {},
                    bool keepdims = false);
SymbolicTensor max(const SymbolicTensor& x, const std::vector<int64_t>& axes = {},
                   bool keepdims = false);
SymbolicTensor min(const SymbolicTensor& x, const std::vector<int64_t>& axes = {},
                   bool keepdims = false);
SymbolicTensor prod(const SymbolicTensor& x, const std::vector<int64_t>& axes = {},
                    bool keepdims = false);
SymbolicTensor all(const SymbolicTensor& x, const std::vector<int64_t>& axes = {},
                   bool keepdims = false);
SymbolicTensor any(const SymbolicTensor& x, const std::vector<int64_t>& axes = {},
                   bool keepdims = false);
SymbolicTensor logsumexp(const SymbolicTensor& x, const std::vector<int64_t>& axes = {},
                         bool keepdims = false);
SymbolicTensor variance(const SymbolicTensor& x, const std::vector<int64_t>& axes = {},
                        bool keepdims = false);
SymbolicTensor cumsum(const SymbolicTensor& x, int64_t axis);
/// The k largest numbers of the last axis and, as int32, their places.
std::pair<SymbolicTensor, SymbolicTensor> top_k(const SymbolicTensor& x, int64_t k);

/// Where elements lie.
SymbolicTensor reshape(const SymbolicTensor& x, const Shape& shape);
SymbolicTensor transpose(const SymbolicTensor& x, const std::vector<int64_t>& axes = {});
SymbolicTensor expand_dims(const SymbolicTensor& x, int64_t axis);
SymbolicTensor squeeze(const SymbolicTensor& x, const std::vector<int64_t>& axes);
SymbolicTensor broadcast_to(const SymbolicTensor& x, const Shape& shape);
SymbolicTensor concat(const std::vector<SymbolicTensor>& parts, int64_t axis = 0);
SymbolicTensor stack(const std::vector<SymbolicTensor>& parts, int64_t axis = 0);
std::vector<SymbolicTensor> split(const SymbolicTensor& x, int64_t parts, int64_t axis = 0);
std::vector<SymbolicTensor> unstack(const SymbolicTensor& x, int64_t axis = 0);
SymbolicTensor tile(const SymbolicTensor& x, const std::vector<int64_t>& repeats);
SymbolicTensor flip(const SymbolicTensor& x, const std::vector<int64_t>& axes = {});
SymbolicTensor roll(const SymbolicTensor& x, const std::vector<int64_t>& shifts,
                    const std::vector<int64_t>& axes = {});
SymbolicTensor tril(const SymbolicTensor& x, int64_t k = 0);
SymbolicTensor triu(const SymbolicTensor& x, int64_t k = 0);
/// Elements [begin, begin + size) of one axis, as x[{":", "1:3"}] has them.
SymbolicTensor slice(const SymbolicTensor& x, int64_t axis, int64_t begin, int64_t size);
/// `before` and `after` elements of `value` added along an axis.
SymbolicTensor pad(const SymbolicTensor& x, int64_t axis, int64_t before, int64_t after,
                   double value = 0);

}  // namespace ops
}  // namespace tessera
