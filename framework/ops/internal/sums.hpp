#pragma once

#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>

#include <tessera/framework/ops/reduce.hpp>

namespace tessera::detail {

/// Returns float16 and bfloat16 as float32, in which sums and squares neither overflow nor round;
/// other dtypes as they are.
DTensor widened(const DTensor& x);

/// Returns ops::sum() before it is rounded: sums of float16 and bfloat16 are float32, as are the
/// partial sums of a sharded axis.
DTensor wide_sum(const DTensor& x, const ops::Axes& axes = {}, bool keepdims = false);

/// Returns ops::sum() for gradients: a sharded axis leaves a partial sum in float16 and bfloat16
/// too, so that gradients are reduced together later.
DTensor partial_sum(const DTensor& x, const ops::Axes& axes);

/// Returns a block for a kernel that adds up elements: on CPUs float32 for float16 and bfloat16,
/// which some of ATen's kernels round after each addition. GPU kernels add in float32 themselves.
inline at::Tensor wide_on_cpu(const at::Tensor& x) {
  return x.is_cpu() ? x.to(at::toOpMathType(x.scalar_type())) : x;
}

}  // namespace tessera::detail
