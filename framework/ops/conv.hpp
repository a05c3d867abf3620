#pragma once

#include <vector>

#include <tessera/framework/ops/window_axis.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// Channels-last convolution over 1 to 3 spatial axes: x (n, spatial…, c), kernel (window…, c, o)
/// -> (n, spatial'…, o), of one floating dtype (keras.ops.conv). Grouped convolution has a separate
/// group axis: x (n, spatial…, g, c), kernel (window…, c, g, o) -> (n, spatial'…, g, o); a
/// depthwise convolution has c = 1. `axes` holds stride, dilation and padding of each spatial axis;
/// window sizes are taken from the kernel. n, o and g keep their sharding; so do spatial axes,
/// whose shards fetch the halo that their windows read; a sharded c leaves a partial sum. Twice
/// differentiable. Throws ShapeError for shapes that do not fit.
DTensor conv(const DTensor& x, const DTensor& kernel, std::vector<WindowAxis> axes);

/// Returns the order of a kernel's axes (window…, c, o) in memory that conv and conv_transpose read
/// without a copy, (o, window…, c), for a weight's memory_order.
std::vector<int64_t> conv_kernel_order(int64_t spatial);

/// Convolves each channel on its own: x (n, spatial…, c), kernel (window…, c, m) -> (n, spatial'…,
/// c · m) (keras.ops.depthwise_conv). Channels may be sharded without communication; the rest is as
/// in conv.
DTensor depthwise_conv(const DTensor& x, const DTensor& kernel,
                       const std::vector<WindowAxis>& axes);
/// Returns depthwise_conv(), whose channels a second kernel, (1…, c · m, o), mixes: (n, spatial'…,
/// o) (keras.ops.separable_conv).
DTensor separable_conv(const DTensor& x, const DTensor& depthwise_kernel,
                       const DTensor& pointwise_kernel, const std::vector<WindowAxis>& axes);

/// Transposed convolution, the adjoint of conv in x (keras.ops.conv_transpose): y, shaped like
/// conv's result -> x (n, spatial…, c) with spatial extents `extents`. Each shard fetches the rows
/// of y whose windows overlap it; a sharded o leaves a partial sum.
DTensor conv_transpose(const DTensor& y, const DTensor& kernel, std::vector<WindowAxis> axes,
                       const std::vector<int64_t>& extents);

/// Returns the gradient of conv's kernel, whose window sizes are those of `axes`, from x and the
/// gradient dy of conv's result. Sharding of n and of spatial axes leaves a partial sum.
DTensor conv_kernel_grad(const DTensor& x, const DTensor& dy, const std::vector<WindowAxis>& axes);

}  // namespace tessera::ops
