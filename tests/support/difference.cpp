#include "tests/support/difference.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <sstream>

namespace tessera::test {

using namespace detail;

namespace {

/// Whether at::isclose(), with NaN equal to NaN, holds for all elements of two tensors of a shape.
/// Most tensors of tests are so small that ATen's calls took a fifth of the oracle's time.
template <class T>
bool all_close(const at::Tensor& actual, const at::Tensor& expected, double rtol, double atol) {
  const at::Tensor a = actual.contiguous(), e = expected.contiguous();
  const T *got = a.const_data_ptr<T>(), *wanted = e.const_data_ptr<T>();
  for (int64_t i = 0; i < a.numel(); ++i) {
    const auto x = static_cast<double>(got[i]), y = static_cast<double>(wanted[i]);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double error = std::abs(x - y);
    if (!std::isfinite(error) || error > atol + std::abs(rtol * y)) return false;
  }
  return true;
}

}  // namespace

std::string difference(const at::Tensor& actual, const at::Tensor& expected, double rtol,
                       double atol) {
  if (actual.sizes() != expected.sizes() || actual.scalar_type() != expected.scalar_type()) {
    std::ostringstream text;
    text << "got " << actual.sizes() << " " << actual.scalar_type() << ", expected "
         << expected.sizes() << " " << expected.scalar_type();
    return text.str();
  }
  const bool on_host = actual.is_cpu() && expected.is_cpu();
  const at::ScalarType dtype = actual.scalar_type();
  if (on_host && dtype == at::kDouble && all_close<double>(actual, expected, rtol, atol)) return "";
  if (on_host && dtype == at::kFloat && all_close<float>(actual, expected, rtol, atol)) return "";
  const at::Tensor a = actual.to(at::kDouble).flatten();
  const at::Tensor e = expected.to(at::kDouble).flatten();
  const at::Tensor close = at::isclose(a, e, rtol, atol, /*equal_nan=*/true);
  if (close.all().item<bool>()) return "";
  // A NaN or infinite error counts as worse than any finite one.
  const at::Tensor error = at::nan_to_num((a - e).abs(), INFINITY, INFINITY, INFINITY);
  const int64_t worst = at::where(close, at::full_like(error, -1), error).argmax().item<int64_t>();
  std::ostringstream text;
  text << "element " << worst << " of " << a.numel() << ": got " << a[worst].item<double>()
       << ", expected " << e[worst].item<double>() << " (" << (~close).sum().item<int64_t>()
       << " differ)";
  return text.str();
}

std::string difference_in_float64(const std::vector<at::Tensor>& actual,
                                  const std::vector<at::Tensor>& expected, double tolerance) {
  if (actual.size() != expected.size()) return "other results";
  for (size_t r = 0; r < expected.size(); ++r) {
    const double largest = expected[r].abs().max().item<double>();
    const std::string wrong = difference(actual[r].to(at::kDouble), expected[r].to(at::kDouble),
                                         tolerance, tolerance * largest);
    if (!wrong.empty()) return "result " + std::to_string(r) + ": " + wrong;
  }
  return "";
}

}  // namespace tessera::test
