#pragma once

#include <ATen/core/Tensor.h>

#include <tessera/framework/ops/internal/convolution.hpp>
#include <tessera/framework/ops/internal/fused_activation.hpp>

namespace tessera::detail {

/// Replaces y (rows, channels) by activation(y + bias + residual) in one pass. bias (channels);
/// residual like y, or undefined. All are dense, float32 and on a CPU.
void finish_product(const at::Tensor& y, const at::Tensor& bias, const at::Tensor& residual,
                    FusedActivation activation);

/// Whether convolve_channels() computes windows of this size.
bool can_convolve_channels(int64_t window_elements);

/// Convolves each channel with a window of its own: activation(conv(x, kernel) + bias). x (n, c, h,
/// w) in channels_last order, float32 or bfloat16, kernel (height, width, c) and bias (c), dense
/// and float32, all on a CPU; `local` without output padding. Returns the same order and dtype.
at::Tensor convolve_channels(const at::Tensor& x, const at::Tensor& kernel, const at::Tensor& bias,
                             const Convolution::Local& local, FusedActivation activation);

}  // namespace tessera::detail
