#pragma once

#include <span>

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/random.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/ops/internal/draw_kernel.hpp>

namespace tessera::detail {

/// A slice of a stateless draw of shape `global`.
struct DrawSlice {
  Seed seed;
  const Shape& global;
  std::span<const Interval> slice;
};

/// Draws the float32 random numbers of `slice` on a GPU: uniform ones in [a, b), normal ones with
/// mean a and standard deviation b. Uniform numbers equal those of stateless_uniform bit for bit;
/// normal ones do as far as the GPU's logarithms and sines equal the host's. Uploads nothing and
/// does not wait. Throws ShapeError for more than 12 axes.
at::Tensor draw_on_gpu(kernels::DrawKind kind, const DrawSlice& slice, float a, float b,
                       c10::Device gpu);

/// Applies dropout to x, a float32 slice of a value on a GPU: zeros where the uniform draw is below
/// `rate`, x times `scale` elsewhere.
at::Tensor dropout_on_gpu(const at::Tensor& x, const DrawSlice& slice, float rate, float scale);

/// Returns the kernel that both functions run (for tests).
const DeviceKernel& draw_kernel();
/// Returns the kernel's parameters, but for a, b, in and out.
kernels::DrawParameters draw_parameters(kernels::DrawKind kind, const DrawSlice& slice);
/// Returns the number of kernel calls that a draw takes.
uint64_t draw_calls(const kernels::DrawParameters& parameters);

}  // namespace tessera::detail
