#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Returns at each j along an axis the sum over all i but j of g(i) times the product of x's
/// elements other than i and j: the second derivative of a product. Divides by nothing, and is
/// correct where elements are 0. `axis` is not negative.
DTensor products_without_pairs(const DTensor& x, const DTensor& g, int64_t axis);

}  // namespace tessera::detail
