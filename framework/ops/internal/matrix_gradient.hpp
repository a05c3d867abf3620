#pragma once

#include <string>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Returns the gradient of a matrix that all leading axes of `a` share: one contraction instead of
/// one matrix per entry. In einsum's notation, `a` ends in "xy" or "yx", and the gradient is "yz"
/// or "zy".
DTensor matrix_gradient(const DTensor& a, const DTensor& dy, const std::string& of_a = "xy",
                        const std::string& of_matrix = "yz");

}  // namespace tessera::detail
