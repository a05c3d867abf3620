#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace tessera::test {

using namespace detail;

/// Empty if the tensors have one shape and dtype and |actual - expected| <= atol + rtol*|expected|
/// everywhere (NaN equals NaN); else one line that names the worst element.
/// Use: `CHECK(difference(actual, expected, 1e-6) == "")`.
std::string difference(const at::Tensor& actual, const at::Tensor& expected, double rtol = 0,
                       double atol = 0);

}  // namespace tessera::test
