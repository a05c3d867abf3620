#include <tessera/framework/ops/internal/l2_normalize.hpp>

#include <limits>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/reduce.hpp>

namespace tessera::detail {

DTensor l2_normalize(const DTensor& x, const std::vector<int64_t>& axes, double epsilon) {
  // Squares in float16 overflow.
  const DTensor wide = widened(x);
  const DTensor squares = ops::sum(ops::square(wide), axes, true);
  // Clip before the square root, whose gradient at 0 is infinite.
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const DTensor factor = ops::rsqrt(ops::clip(squares, epsilon * epsilon, infinity));
  return ops::cast(wide * factor, x.dtype());
}

}  // namespace tessera::detail
