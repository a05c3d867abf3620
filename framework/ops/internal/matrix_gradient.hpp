#pragma once

#include <string>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// The gradient of a matrix that all leading axes of `a` share: one contraction, not one matrix an
/// entry. In einsum's letters `a` ends in "xy" or "yx", the gradient is "yz" or "zy".
DTensor matrix_gradient(const DTensor& a, const DTensor& dy, const std::string& of_a = "xy",
                        const std::string& of_matrix = "yz");

}  // namespace tessera::detail
