#include <tessera/framework/ops/internal/fused_conv_kernels.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <tessera/framework/ops/internal/bfloat16.hpp>
#include <tessera/framework/ops/internal/vectorized.hpp>

namespace tessera::detail {

namespace {

/// Fewer operations than these take less time than to wake another thread.
constexpr int64_t operations_per_thread = 1 << 14;

int64_t rows_per_thread(int64_t operations_per_row) {
  return std::max<int64_t>(1, operations_per_thread / std::max<int64_t>(1, operations_per_row));
}

/// Rows [begin, end) of a product, and what they are finished with.
struct ProductRows {
  int64_t begin = 0, end = 0, channels = 0;
  const float *bias = nullptr, *residual = nullptr;
  float* y = nullptr;
};

template <FusedActivation A, bool adds>
struct FinishRows {
  TESSERA_VECTORIZED void run(const ProductRows& in) {
    const float* bias = in.bias;
    for (int64_t r = in.begin; r < in.end; ++r) {
      float* y = in.y + r * in.channels;
      const float* residual = adds ? in.residual + r * in.channels : y;
#pragma omp simd
      for (int64_t c = 0; c < in.channels; ++c) {
        const float sum = y[c] + bias[c];
        y[c] = activated<A>(adds ? sum + residual[c] : sum);
      }
    }
  }
};

/// One axis of an image under a window.
struct WindowedAxis {
  int64_t extent = 0, out = 0, size = 0, stride = 1, dilation = 1, padding = 0;

  /// Returns the element of the image under the first element of a window; negative in the padding.
  int64_t first(int64_t window) const { return window * stride - padding; }
  bool contains(int64_t i) const { return i >= 0 && i < extent; }
};

/// Rows [begin, end) of n · out height, and what they are computed from. Elements of images are E.
template <class E>
struct ChannelRows {
  WindowedAxis height, width;
  int64_t begin = 0, end = 0, channels = 0;
  const E *x = nullptr, *zeros = nullptr;  ///< `zeros`: a pixel of the padding
  const float *kernel = nullptr, *bias = nullptr;
  E* y = nullptr;
};

template <class E, FusedActivation A, int64_t elements>
struct ConvolveRows {
  template <class X>
  using Elements = std::array<X, size_t(elements)>;

  TESSERA_VECTORIZED void run(const ChannelRows<E>& in) {
    const int64_t channels = in.channels, line = in.width.extent * channels;
    Elements<int64_t> down, right;
    for (size_t i = 0; i < down.size(); ++i) {
      down[i] = int64_t(i) / in.width.size * in.height.dilation;
      right[i] = int64_t(i) % in.width.size * in.width.dilation;
    }
    for (int64_t r = in.begin; r < in.end; ++r) {
      const E* image = in.x + r / in.height.out * in.height.extent * line;
      const int64_t top = in.height.first(r % in.height.out);
      Elements<const E*> lines;
      for (size_t i = 0; i < lines.size(); ++i) {
        const int64_t h = top + down[i];
        lines[i] = in.height.contains(h) ? image + h * line : nullptr;
      }
      for (int64_t column = 0; column < in.width.out; ++column) {
        const int64_t left = in.width.first(column);
        Elements<const E*> x;
        for (size_t i = 0; i < x.size(); ++i) {
          const int64_t w = left + right[i];
          x[i] = lines[i] && in.width.contains(w) ? lines[i] + w * channels : in.zeros;
        }
        convolve(x, in, in.y + (r * in.width.out + column) * channels);
      }
    }
  }

 private:
  /// Computes the channels of one result from the pixels under its window.
  TESSERA_VECTORIZED void convolve(const Elements<const E*>& x, const ChannelRows<E>& in, E* y) {
    const float *bias = in.bias, *kernel = in.kernel;
    const int64_t channels = in.channels;
#pragma omp simd
    for (int64_t c = 0; c < channels; ++c) {
      float sum = bias[c];
#pragma GCC unroll 25
      for (size_t i = 0; i < x.size(); ++i) {
        sum += widened<float>(x[i][c]) * kernel[int64_t(i) * channels + c];
      }
      y[c] = rounded<E>(activated<A>(sum));
    }
  }
};

template <class E, FusedActivation A>
void convolve_rows(const ChannelRows<E>& all, int64_t rows) {
  const int64_t elements = all.height.size * all.width.size;
  const int64_t operations = all.width.out * all.channels * elements;
  at::parallel_for(0, rows, rows_per_thread(operations), [&](int64_t begin, int64_t end) {
    ChannelRows<E> part = all;
    part.begin = begin;
    part.end = end;
    if (elements == 9) return vectorized<ConvolveRows<E, A, 9>, const ChannelRows<E>&>(part);
    vectorized<ConvolveRows<E, A, 25>, const ChannelRows<E>&>(part);
  });
}

}  // namespace

void finish_product(const at::Tensor& y, const at::Tensor& bias, const at::Tensor& residual,
                    FusedActivation activation) {
  ProductRows all;
  all.channels = bias.numel();
  all.bias = bias.const_data_ptr<float>();
  if (residual.defined()) all.residual = residual.const_data_ptr<float>();
  all.y = y.data_ptr<float>();
  const int64_t rows = y.numel() / std::max<int64_t>(1, all.channels);
  for_activation(activation, [&](auto constant) {
    at::parallel_for(0, rows, rows_per_thread(all.channels), [&](int64_t begin, int64_t end) {
      ProductRows part = all;
      part.begin = begin;
      part.end = end;
      if (part.residual) {
        return vectorized<FinishRows<constant(), true>, const ProductRows&>(part);
      }
      vectorized<FinishRows<constant(), false>, const ProductRows&>(part);
    });
  });
}

bool can_convolve_channels(int64_t window_elements) {
  return window_elements == 9 || window_elements == 25;
}

at::Tensor convolve_channels(const at::Tensor& x, const at::Tensor& kernel, const at::Tensor& bias,
                             const Convolution::Local& local, FusedActivation activation) {
  const auto axis_of = [&](size_t i) {
    WindowedAxis axis;
    axis.extent = x.size(int64_t(i) + 2);
    axis.size = kernel.size(int64_t(i));
    axis.stride = local.stride[i];
    axis.dilation = local.dilation[i];
    axis.padding = local.padding[i];
    const int64_t reach = (axis.size - 1) * axis.dilation + 1;
    axis.out = (axis.extent + 2 * axis.padding - reach) / axis.stride + 1;
    return axis;
  };
  const int64_t rows = x.size(0), channels = x.size(1);
  const WindowedAxis height = axis_of(0), width = axis_of(1);
  const at::Tensor y = at::empty({rows, channels, height.out, width.out}, x.options(),
                                 at::MemoryFormat::ChannelsLast);
  const auto run = [&](auto element) {
    using E = decltype(element);
    const std::vector<E> zeros(static_cast<size_t>(channels));
    ChannelRows<E> all;
    all.height = height;
    all.width = width;
    all.channels = channels;
    all.x = elements_of<E>(x);
    all.zeros = zeros.data();
    all.kernel = kernel.const_data_ptr<float>();
    all.bias = bias.const_data_ptr<float>();
    all.y = elements_of<E>(y);
    for_activation(activation,
                   [&](auto constant) { convolve_rows<E, constant()>(all, rows * height.out); });
  };
  x.scalar_type() == at::kBFloat16 ? run(Bfloat16()) : run(float());
  return y;
}

}  // namespace tessera::detail
