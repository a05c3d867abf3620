#include <tessera/framework/nn/internal/l2_normalize.hpp>

#include <limits>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>

namespace tessera::detail {

DTensor l2_normalize(const DTensor& x, const std::vector<int64_t>& axes, double epsilon) {
  // Clip before the square root, whose gradient at 0 is infinite.
  const DTensor squares = ops::sum(ops::square(x), axes, true);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return x * ops::rsqrt(ops::clip(squares, epsilon * epsilon, infinity));
}

}  // namespace tessera::detail
