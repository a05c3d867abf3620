#include <tessera/framework/nn/l2_normalize.hpp>

#include <limits>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>

namespace tessera {

DTensor l2_normalize(const DTensor& x, int64_t axis) {
  // Cut off before the root, whose gradient at 0 is infinite.
  const DTensor squares = ops::sum(ops::square(x), {axis}, true);
  return x * ops::rsqrt(ops::clip(squares, 1e-14, std::numeric_limits<double>::infinity()));
}

}  // namespace tessera
