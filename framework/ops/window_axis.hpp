#pragma once

#include <cstdint>

#include <tessera/framework/base/shape.hpp>

namespace tessera::ops {

/// How a window moves along one spatial axis: output i reads the input at
/// i * stride - before + k * dilation, k in [0, size). Indices outside the input are padding.
struct WindowAxis {
  int64_t size = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t before = 0;
  int64_t after = 0;

  /// Returns the number of elements from the first that a window reads to the last.
  int64_t reach() const { return (size - 1) * dilation + 1; }
  /// Returns the number of windows that fit into an input of this extent.
  int64_t outputs(int64_t input) const;
  /// Returns the input interval that outputs in [lo, hi) read, padding included.
  Interval reads(Interval out) const;
  /// Returns the interval of the `outputs` outputs that read any of the inputs in [lo, hi).
  Interval readers(Interval in, int64_t outputs) const;
  bool operator==(const WindowAxis&) const = default;
};

}  // namespace tessera::ops
