#include "tests/support/difference.hpp"

#include <ATen/ATen.h>

#include <sstream>

namespace tessera::test {

using namespace detail;

std::string difference(const at::Tensor& actual, const at::Tensor& expected, double rtol,
                       double atol) {
  std::ostringstream text;
  if (actual.sizes() != expected.sizes() || actual.scalar_type() != expected.scalar_type()) {
    text << "got " << actual.sizes() << " " << actual.scalar_type() << ", expected "
         << expected.sizes() << " " << expected.scalar_type();
    return text.str();
  }
  const at::Tensor a = actual.to(at::kDouble).flatten();
  const at::Tensor e = expected.to(at::kDouble).flatten();
  const at::Tensor close = at::isclose(a, e, rtol, atol, /*equal_nan=*/true);
  if (close.all().item<bool>()) return "";
  // A NaN or infinite error counts as worse than any finite one.
  const at::Tensor error = at::nan_to_num((a - e).abs(), INFINITY, INFINITY, INFINITY);
  const int64_t worst = at::where(close, at::full_like(error, -1), error).argmax().item<int64_t>();
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
