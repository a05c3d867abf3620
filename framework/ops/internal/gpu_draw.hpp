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

/// Random float32 in `slice`, made on a GPU: of `uniform_draw` from a on and below b, of the normal
/// ones with mean a and standard deviation b. Uniform numbers are those of stateless_uniform bit
/// for bit, normal ones as far as the GPU's logarithms and sines are the host's. Nothing is
/// uploaded and nothing waits. Throws ShapeError for more than 12 axes.
at::Tensor draw_on_gpu(kernels::DrawKind kind, const DrawSlice& slice, float a, float b,
                       c10::Device gpu);

/// x, the slice of a value on a GPU, with zeros where the uniform draw is below `rate` and times
/// `scale` elsewhere; of float32.
at::Tensor dropout_on_gpu(const at::Tensor& x, const DrawSlice& slice, float rate, float scale);

/// What these two run, for tests.
const DeviceKernel& draw_kernel();
kernels::DrawParameters draw_parameters(kernels::DrawKind kind, const DrawSlice& slice);
/// Calls that a draw takes.
uint64_t draw_calls(const kernels::DrawParameters& parameters);

}  // namespace tessera::detail
