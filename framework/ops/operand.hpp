#pragma once

#include <concepts>

#include <tessera/framework/ops/elementwise.hpp>

namespace tessera {

/// A tensor or a number, as an argument of a function of which another argument is a tensor. A
/// number takes the tensor's dtype, as in Keras: but a fraction makes integers and bools float32,
/// and an integer makes bools int32.
struct Operand {
  Operand(const DTensor& value) : tensor(value) {}  // NOLINT: reads as data
  template <std::floating_point T>
  Operand(T value) : number(value) {}  // NOLINT
  template <std::integral T>
  Operand(T value) : number(static_cast<double>(value)), is_integer(true) {}  // NOLINT

  DTensor tensor = {};      ///< undefined: a number
  double number = 0;        ///< a number's value
  bool is_integer = false;  ///< whether the number is an integer
};

namespace ops {

/// The elementwise functions of two tensors with a number in place of one of them:
///
///     ops::maximum(x, 0.0), ops::pow(2, x), ops::where(x > 0, x, 0.01 * x)
///
/// Throws ConfigError if both are numbers.
DTensor add(const Operand& a, const Operand& b);
DTensor sub(const Operand& a, const Operand& b);
DTensor mul(const Operand& a, const Operand& b);
DTensor div(const Operand& a, const Operand& b);
DTensor maximum(const Operand& a, const Operand& b);
DTensor minimum(const Operand& a, const Operand& b);
DTensor pow(const Operand& a, const Operand& b);
DTensor floor_div(const Operand& a, const Operand& b);
DTensor remainder(const Operand& a, const Operand& b);
DTensor fmod(const Operand& a, const Operand& b);
DTensor arctan2(const Operand& a, const Operand& b);
DTensor hypot(const Operand& a, const Operand& b);
DTensor logaddexp(const Operand& a, const Operand& b);
DTensor bitwise_and(const Operand& a, const Operand& b);
DTensor bitwise_or(const Operand& a, const Operand& b);
DTensor bitwise_xor(const Operand& a, const Operand& b);
DTensor bitwise_left_shift(const Operand& a, const Operand& b);
DTensor bitwise_right_shift(const Operand& a, const Operand& b);
DTensor equal(const Operand& a, const Operand& b);
DTensor not_equal(const Operand& a, const Operand& b);
DTensor less(const Operand& a, const Operand& b);
DTensor less_equal(const Operand& a, const Operand& b);
DTensor greater(const Operand& a, const Operand& b);
DTensor greater_equal(const Operand& a, const Operand& b);
DTensor where(const DTensor& condition, const Operand& a, const Operand& b);

/// Further elementwise functions of a tensor and a tensor or number, with NumPy broadcasting and
/// the layouts and errors of those above.
///
/// divide_no_nan is a / b, 0 where b is 0 (keras.ops.divide_no_nan). fmax and fmin are the maximum
/// and minimum, of which a NaN is none unless both are NaN (keras.ops.fmax, keras.ops.fmin).
/// heaviside is 0 for a < 0, b for a = 0 and 1 for a > 0 (keras.ops.heaviside). logaddexp2 is
/// log2(2^a + 2^b) without overflow (keras.ops.logaddexp2).
DTensor divide_no_nan(const Operand& a, const Operand& b);
DTensor fmax(const Operand& a, const Operand& b);
DTensor fmin(const Operand& a, const Operand& b);
DTensor heaviside(const Operand& a, const Operand& b);
DTensor logaddexp2(const Operand& a, const Operand& b);
/// Returns whether |a - b| <= atol + rtol |b|, or both are the same infinity, or, with `equal_nan`,
/// NaN: each element (keras.ops.isclose), or all of them, 0-d (keras.ops.allclose). No gradient.
DTensor isclose(const Operand& a, const Operand& b, double rtol = 1e-5, double atol = 1e-8,
                bool equal_nan = false);
DTensor allclose(const Operand& a, const Operand& b, double rtol = 1e-5, double atol = 1e-8,
                 bool equal_nan = false);

}  // namespace ops

/// Arithmetic and comparisons of tensors, with numbers on either side: `1 - x`, `2.0 / x`,
/// `x > 0.5`. Comparisons are elementwise and return bool, `==` too: `x.is(y)` compares handles.
inline DTensor operator+(double value, const DTensor& x) { return ops::add_scalar(x, value); }
inline DTensor operator-(double value, const DTensor& x) { return ops::add_scalar(-x, value); }
inline DTensor operator/(double value, const DTensor& x) { return ops::div(Operand(value), x); }
inline DTensor operator+(const DTensor& x) { return x; }
/// Negates a bool tensor.
inline DTensor operator!(const DTensor& x) { return ops::logical_not(x); }

/// `x += y` makes x a handle of the sum; other handles of the earlier value keep it.
inline DTensor& operator+=(DTensor& a, const DTensor& b) { return a = a + b; }
inline DTensor& operator-=(DTensor& a, const DTensor& b) { return a = a - b; }
inline DTensor& operator*=(DTensor& a, const DTensor& b) { return a = a * b; }
inline DTensor& operator/=(DTensor& a, const DTensor& b) { return a = a / b; }
inline DTensor& operator+=(DTensor& a, double b) { return a = a + b; }
inline DTensor& operator-=(DTensor& a, double b) { return a = a - b; }
inline DTensor& operator*=(DTensor& a, double b) { return a = a * b; }
inline DTensor& operator/=(DTensor& a, double b) { return a = a / b; }

/// A tensor and a tensor or number, in either order.
template <class A, class B>
concept Operands = (std::same_as<A, DTensor> && std::constructible_from<Operand, B>) ||
                   (std::same_as<B, DTensor> && std::constructible_from<Operand, A>);

template <class A, class B>
requires Operands<A, B> DTensor operator==(const A& a, const B& b) { return ops::equal(a, b); }
template <class A, class B>
requires Operands<A, B> DTensor operator!=(const A& a, const B& b) { return ops::not_equal(a, b); }
template <class A, class B>
requires Operands<A, B> DTensor operator<(const A& a, const B& b) { return ops::less(a, b); }
template <class A, class B>
requires Operands<A, B> DTensor operator<=(const A& a, const B& b) { return ops::less_equal(a, b); }
template <class A, class B>
requires Operands<A, B> DTensor operator>(const A& a, const B& b) { return ops::greater(a, b); }
template <class A, class B>
requires Operands<A, B> DTensor operator>=(const A& a, const B& b) {
  return ops::greater_equal(a, b);
}

}  // namespace tessera
