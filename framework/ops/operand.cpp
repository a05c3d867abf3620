#include <tessera/framework/ops/operand.hpp>

#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::ops {

namespace {

at::ScalarType dtype_beside(const Operand& number, at::ScalarType dtype) {
  if (!number.is_integer && !at::isFloatingType(dtype)) return at::kFloat;
  return number.is_integer && dtype == at::kBool ? at::kInt : dtype;
}

/// Returns both as tensors of one dtype, on one mesh.
std::pair<DTensor, DTensor> as_tensors(const Operand& a, const Operand& b) {
  if (a.tensor.defined() && b.tensor.defined()) return {a.tensor, b.tensor};
  const DTensor& x = a.tensor.defined() ? a.tensor : b.tensor;
  if (!x.defined()) {
    throw ConfigError("Operand", "one of two operands is a tensor", "two numbers",
                      "compute with the numbers, or pack() one");
  }
  const Operand& number = a.tensor.defined() ? b : a;
  const at::ScalarType dtype = dtype_beside(number, x.dtype());
  const DTensor tensor = cast(x, dtype), other = scalar(number.number, x.mesh(), dtype);
  return a.tensor.defined() ? std::pair(tensor, other) : std::pair(other, tensor);
}

using Function = DTensor (*)(const DTensor&, const DTensor&);

DTensor call(Function function, const Operand& a, const Operand& b) {
  const auto [x, y] = as_tensors(a, b);
  return function(x, y);
}

}  // namespace

DTensor add(const Operand& a, const Operand& b) { return call(add, a, b); }
DTensor sub(const Operand& a, const Operand& b) { return call(sub, a, b); }
DTensor mul(const Operand& a, const Operand& b) { return call(mul, a, b); }
DTensor div(const Operand& a, const Operand& b) { return call(div, a, b); }
DTensor maximum(const Operand& a, const Operand& b) { return call(maximum, a, b); }
DTensor minimum(const Operand& a, const Operand& b) { return call(minimum, a, b); }
DTensor pow(const Operand& a, const Operand& b) { return call(pow, a, b); }
DTensor floor_div(const Operand& a, const Operand& b) { return call(floor_div, a, b); }
DTensor remainder(const Operand& a, const Operand& b) { return call(remainder, a, b); }
DTensor fmod(const Operand& a, const Operand& b) { return call(fmod, a, b); }
DTensor arctan2(const Operand& a, const Operand& b) { return call(arctan2, a, b); }
DTensor hypot(const Operand& a, const Operand& b) { return call(hypot, a, b); }
DTensor logaddexp(const Operand& a, const Operand& b) { return call(logaddexp, a, b); }
DTensor bitwise_and(const Operand& a, const Operand& b) { return call(bitwise_and, a, b); }
DTensor bitwise_or(const Operand& a, const Operand& b) { return call(bitwise_or, a, b); }
DTensor bitwise_xor(const Operand& a, const Operand& b) { return call(bitwise_xor, a, b); }
DTensor bitwise_left_shift(const Operand& a, const Operand& b) {
  return call(bitwise_left_shift, a, b);
}
DTensor bitwise_right_shift(const Operand& a, const Operand& b) {
  return call(bitwise_right_shift, a, b);
}
DTensor equal(const Operand& a, const Operand& b) { return call(equal, a, b); }
DTensor not_equal(const Operand& a, const Operand& b) { return call(not_equal, a, b); }
DTensor less(const Operand& a, const Operand& b) { return call(less, a, b); }
DTensor less_equal(const Operand& a, const Operand& b) { return call(less_equal, a, b); }
DTensor greater(const Operand& a, const Operand& b) { return call(greater, a, b); }
DTensor greater_equal(const Operand& a, const Operand& b) { return call(greater_equal, a, b); }

DTensor where(const DTensor& condition, const Operand& a, const Operand& b) {
  const auto [x, y] = as_tensors(a, b);
  return where(condition, x, y);
}

}  // namespace tessera::ops
