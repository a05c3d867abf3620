#include <tessera/framework/ops/internal/gpu_draw.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/philox.hpp>

#include "framework/ops/kernel_texts.hpp"

namespace tessera::detail {
namespace {

void draw_on_host(const void* parameters, uint64_t index) {
  kernels::draw_group(*static_cast<const kernels::DrawParameters*>(parameters), index);
}

Shape extents_of(std::span<const Interval> slice) {
  Shape shape;
  for (Interval interval : slice) shape.push_back(interval.size());
  return shape;
}

at::Tensor run_draw(kernels::DrawParameters parameters, const DrawSlice& slice, c10::Device gpu) {
  const at::Tensor out =
      at::empty(extents_of(slice.slice), at::TensorOptions().dtype(at::kFloat).device(gpu));
  if (out.numel() == 0) return out;
  parameters.out = static_cast<float*>(out.mutable_data_ptr());
  launch(draw_kernel(), gpu, draw_calls(parameters), &parameters);
  return out;
}

}  // namespace

const DeviceKernel& draw_kernel() {
  static const DeviceKernel kernel{.name = "draw_kernel",
                                   .source = kernel_texts::draw_kernel,
                                   .on_host = draw_on_host,
                                   .parameter_bytes = sizeof(kernels::DrawParameters)};
  return kernel;
}

kernels::DrawParameters draw_parameters(kernels::DrawKind kind, const DrawSlice& slice) {
  kernels::DrawParameters p{};
  const philox::Stream stream(slice.seed);
  p.key[0] = stream.key()[0];
  p.key[1] = stream.key()[1];
  p.upper = stream.upper();
  p.kind = kind;
  size_t axes = slice.global.size();
  p.run = 1;
  for (bool full = true; axes > 0 && full;) {
    --axes;
    p.run *= static_cast<uint64_t>(slice.slice[axes].size());
    full = slice.slice[axes].size() == slice.global[axes];
  }
  if (axes > size_t{kernels::DrawParameters::max_axes}) {
    throw ShapeError(
        "random draw",
        str("a draw on a GPU has at most ", int{kernels::DrawParameters::max_axes}, " axes"),
        to_string(slice.global), "reshape what is drawn");
  }
  p.axes = static_cast<int>(axes);
  uint64_t step = 1;
  for (size_t a = slice.global.size(); a-- > 0;) {
    const auto first = static_cast<uint64_t>(slice.slice[a].lo);
    if (a < axes) {
      p.extent[a] = slice.slice[a].size();
      p.first[a] = slice.slice[a].lo;
      p.step[a] = step;
    } else {
      p.start += first * step;
    }
    step *= static_cast<uint64_t>(slice.global[a]);
  }
  return p;
}

uint64_t draw_calls(const kernels::DrawParameters& parameters) {
  uint64_t rows = 1;
  for (int a = 0; a < parameters.axes; ++a) rows *= static_cast<uint64_t>(parameters.extent[a]);
  return rows * parameters.groups();
}

at::Tensor draw_on_gpu(kernels::DrawKind kind, const DrawSlice& slice, float a, float b,
                       c10::Device gpu) {
  kernels::DrawParameters p = draw_parameters(kind, slice);
  p.a = a;
  p.b = kind == kernels::uniform_draw ? b - a : b;
  return run_draw(p, slice, gpu);
}

at::Tensor dropout_on_gpu(const at::Tensor& x, const DrawSlice& slice, float rate, float scale) {
  const at::Tensor dense = x.contiguous();
  kernels::DrawParameters p = draw_parameters(kernels::dropout_draw, slice);
  p.a = rate;
  p.b = scale;
  p.in = static_cast<const float*>(dense.const_data_ptr());
  return run_draw(p, slice, x.device());
}

}  // namespace tessera::detail
