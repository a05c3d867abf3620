#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace tessera::test {

using namespace detail;

/// Empty if the tensors have one shape and dtype and |actual - expected| <= atol + rtol*|expected|
/// everywhere (NaN equals NaN); else one line that names the worst element.
/// Use: `CHECK(difference(actual, expected, 1e-6) == "")`.
std::string difference(const at::Tensor& actual, const at::Tensor& expected, double rtol = 0,
                       double atol = 0);

/// Empty if all results have their expected shape and values in float64, up to `tolerance` of each
/// value and of the largest one in its tensor; else a line that names the result, too.
std::string difference_in_float64(const std::vector<at::Tensor>& actual,
                                  const std::vector<at::Tensor>& expected, double tolerance);

}  // namespace tessera::test
