#include <tessera/framework/ops/constants.hpp>

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/internal/host_numbers.hpp>

namespace tessera::ops {

using namespace detail;

namespace {

/// Returns what make() computes on the host, in the default layout.
template <class Make>
DTensor constant(const Shape& shape, at::ScalarType dtype, const Make& make) {
  return host_numbers(shape, dtype, default_layout(static_cast<int64_t>(shape.size())), make);
}

void check_num(const std::string& where, int64_t num) {
  if (num < 0) throw ConfigError(where, "num must be at least 0", str(num), "");
}

at::Tensor evenly_spaced(double start, double stop, int64_t num, bool endpoint) {
  const int64_t steps = std::max<int64_t>(endpoint ? num - 1 : num, 1);
  at::Tensor numbers = at::arange(num, at::kDouble).mul_((stop - start) / double(steps));
  numbers.add_(start);
  if (endpoint && num > 1) numbers.select(0, num - 1).fill_(stop);
  return numbers;
}

Shape matrix_shape(const std::string& where, int64_t n, std::optional<int64_t> m) {
  const Shape shape = {n, m.value_or(n)};
  if (shape[0] >= 0 && shape[1] >= 0) return shape;
  throw ShapeError(where, "extents are at least 0", to_string(shape), "correct the extents");
}

}  // namespace

DTensor full(const Shape& shape, double value, at::ScalarType dtype) {
  return filled(shape, value, dtype);
}

DTensor full_like(const DTensor& x, double value, std::optional<at::ScalarType> dtype) {
  return filled(x.shape(), value, dtype.value_or(x.dtype()), fetch_layout(x));
}

DTensor zeros_like(const DTensor& x, std::optional<at::ScalarType> dtype) {
  return full_like(x, 0, dtype);
}

DTensor ones_like(const DTensor& x, std::optional<at::ScalarType> dtype) {
  return full_like(x, 1, dtype);
}

DTensor arange(double stop) { return arange(0, stop); }

DTensor arange(double start, double stop, double step, std::optional<at::ScalarType> dtype) {
  if (step == 0) throw ConfigError("arange", "step must not be 0", "0", "leave it out for 1");
  const auto is_whole = [](double x) { return x == std::floor(x); };
  const bool whole = is_whole(start) && is_whole(stop) && is_whole(step);
  const auto count = std::max<int64_t>(0, int64_t(std::ceil((stop - start) / step)));
  return constant({count}, dtype.value_or(whole ? at::kInt : at::kFloat),
                  [&] { return at::arange(count, at::kDouble).mul_(step).add_(start); });
}

DTensor linspace(double start, double stop, int64_t num, bool endpoint, at::ScalarType dtype) {
  check_num("linspace", num);
  return constant({num}, dtype, [&] { return evenly_spaced(start, stop, num, endpoint); });
}

DTensor logspace(double start, double stop, int64_t num, bool endpoint, double base,
                 at::ScalarType dtype) {
  check_num("logspace", num);
  return constant({num}, dtype,
                  [&] { return at::pow(base, evenly_spaced(start, stop, num, endpoint)); });
}

DTensor geomspace(double start, double stop, int64_t num, bool endpoint, at::ScalarType dtype) {
  check_num("geomspace", num);
  if (!(start * stop > 0)) {
    throw ConfigError("geomspace", "start and stop have one sign", str(start, " and ", stop),
                      "use linspace");
  }
  return constant({num}, dtype, [&] {
    at::Tensor numbers = at::pow(stop / start, evenly_spaced(0, 1, num, endpoint)).mul_(start);
    if (endpoint && num > 1) numbers.select(0, num - 1).fill_(stop);
    return numbers;
  });
}

DTensor eye(int64_t n, std::optional<int64_t> m, int64_t k, at::ScalarType dtype) {
  const Shape shape = matrix_shape("eye", n, m);
  return constant(shape, dtype, [&] { return at::ones(shape, at::kByte).tril(k).triu(k); });
}

DTensor identity(int64_t n, at::ScalarType dtype) { return eye(n, n, 0, dtype); }

DTensor tri(int64_t n, std::optional<int64_t> m, int64_t k, at::ScalarType dtype) {
  const Shape shape = matrix_shape("tri", n, m);
  return constant(shape, dtype, [&] { return at::ones(shape, at::kByte).tril(k); });
}

}  // namespace tessera::ops
