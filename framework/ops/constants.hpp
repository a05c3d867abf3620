#pragma once

#include <optional>

#include <tessera/framework/tensor/create.hpp>

/// Tensors of constant numbers, the same on every mesh. In a captured step they are constants. No
/// communication, no gradient.
namespace tessera::ops {

using tessera::ones;
using tessera::zeros;

/// Returns a tensor filled with one value (keras.ops.full). Its layout is the default for new
/// values, as of the functions without an argument x below.
DTensor full(const Shape& shape, double value, at::ScalarType dtype = at::kFloat);
/// Return a tensor of x's shape and layout, by default of its dtype, filled with 0, 1 or a value
/// (keras.ops.zeros_like, keras.ops.ones_like, keras.ops.full_like).
DTensor zeros_like(const DTensor& x, std::optional<at::ScalarType> dtype = std::nullopt);
DTensor ones_like(const DTensor& x, std::optional<at::ScalarType> dtype = std::nullopt);
DTensor full_like(const DTensor& x, double value,
                  std::optional<at::ScalarType> dtype = std::nullopt);

/// Returns start, start + step, … up to but without stop (keras.ops.arange); from 0 if only stop is
/// given. The default dtype is int32, or float32 if a number has a fraction. Throws ConfigError for
/// step 0.
DTensor arange(double stop);
DTensor arange(double start, double stop, double step = 1,
               std::optional<at::ScalarType> dtype = std::nullopt);
/// Returns `num` numbers at equal distances, from start to stop, which is left out unless
/// `endpoint` (keras.ops.linspace). Throws ConfigError for a negative num.
DTensor linspace(double start, double stop, int64_t num = 50, bool endpoint = true,
                 at::ScalarType dtype = at::kFloat);
/// Return `num` numbers from base^start to base^stop, or from start to stop, each the same multiple
/// of the one before; the end is left out unless `endpoint` (keras.ops.logspace,
/// keras.ops.geomspace). Throw ConfigError for a negative num; geomspace also unless start and stop
/// have one sign.
DTensor logspace(double start, double stop, int64_t num = 50, bool endpoint = true,
                 double base = 10, at::ScalarType dtype = at::kFloat);
DTensor geomspace(double start, double stop, int64_t num = 50, bool endpoint = true,
                  at::ScalarType dtype = at::kFloat);
/// Return a matrix (n, m), m = n by default, of ones on diagonal k (eye, identity), or on and below
/// it (tri), and zeros elsewhere (keras.ops.eye, keras.ops.identity, keras.ops.tri). Throw
/// ShapeError for negative extents.
DTensor eye(int64_t n, std::optional<int64_t> m = std::nullopt, int64_t k = 0,
            at::ScalarType dtype = at::kFloat);
DTensor identity(int64_t n, at::ScalarType dtype = at::kFloat);
DTensor tri(int64_t n, std::optional<int64_t> m = std::nullopt, int64_t k = 0,
            at::ScalarType dtype = at::kFloat);

}  // namespace tessera::ops
