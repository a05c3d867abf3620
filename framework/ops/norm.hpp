#pragma once

#include <optional>
#include <type_traits>

#include <tessera/framework/ops/reduce.hpp>

namespace tessera::ops {

/// The order of a norm: none, a number, also an infinity, or "fro".
struct NormOrder {
  NormOrder() = default;
  template <class T>
  requires std::is_arithmetic_v<T> NormOrder(T order)
      : number(static_cast<double>(order)) {}  // NOLINT: reads as data
  /// Throws ConfigError for another name than "fro".
  NormOrder(const char* name);  // NOLINT

  std::optional<double> number = std::nullopt;
  bool frobenius = false;
};

/// Returns norms of vectors along one axis, of matrices in two, or without axes of all of x
/// (keras.ops.norm). Integers become float32; float16 and bfloat16 are computed in float32. By
/// default the norm is sqrt(sum(x²)). Other orders, of vectors: 0 counts elements that are not 0,
/// inf is max(|x|), -inf min(|x|), p sum(|x|^p)^(1/p). Of matrices: "fro" is the default, 1 the
/// largest sum of |x| of a column, inf of a row, -1 and -inf the smallest ones. The first axis
/// counts rows, the second columns. Layouts are those of sum and max. Throws ConfigError for other
/// orders, also those that need singular values (2, -2 and "nuc" of matrices), and ShapeError for
/// more axes.
DTensor norm(const DTensor& x, const NormOrder& order = {}, const Axes& axes = {},
             bool keepdims = false);

/// Divides x by its norm of an order along an axis, which counts as at least epsilon
/// (keras.ops.normalize). Throws ConfigError unless the order is at least 1 and x is
/// floating-point.
DTensor normalize(const DTensor& x, int64_t axis = -1, int64_t order = 2, double epsilon = 1e-7);

}  // namespace tessera::ops
