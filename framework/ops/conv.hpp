#pragma once

#include <vector>

#include <tessera/framework/ops/internal/window_axis.hpp>

namespace tessera::ops {

/// Convolution with channels last, in 1 to 3 spatial axes: x (n, spatial…, c), kernel
/// (window…, c, o) -> (n, spatial'…, o), of one floating dtype (keras.ops.conv). In groups, which
/// have an axis of their own: x (n, spatial…, g, c), kernel (window…, c, g, o) ->
/// (n, spatial'…, g, o); a depthwise convolution has c = 1. `axes` has stride, dilation and padding
/// of each spatial axis; sizes are the kernel's. Sharding of n, o and g passes on; of spatial axes
/// too, each shard fetching the rows that its windows read beyond it; c sharded leaves a sum
/// pending. Differentiable twice. Throws ShapeError for what does not fit.
DTensor conv(const DTensor& x, const DTensor& kernel, std::vector<detail::WindowAxis> axes);

/// The adjoint of conv in x: y as conv gives it -> x (n, spatial…, c) of the given spatial extents;
/// a transposed convolution (keras.ops.conv_transpose). Each shard fetches the rows of y whose
/// windows meet it; o sharded leaves a sum pending.
DTensor conv_transpose(const DTensor& y, const DTensor& kernel,
                       std::vector<detail::WindowAxis> axes, const std::vector<int64_t>& extents);

/// The gradient of a kernel of the given window sizes: x and dy as in conv. Sharding of n and of
/// spatial axes leaves a sum pending.
DTensor conv_kernel_grad(const DTensor& x, const DTensor& dy, std::vector<detail::WindowAxis> axes);

}  // namespace tessera::ops
