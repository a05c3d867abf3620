#pragma once

#include <optional>

#include <c10/core/ScalarType.h>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/mesh/layout.hpp>

namespace tessera {

namespace detail {

/// The dtype that addends are combined in: for sums of half types float32, as they lose too much
/// when many addends meet, or what set_reduce_dtype() says; else the dtype itself.
at::ScalarType reduction_dtype(at::ScalarType dtype, Reduce kind);

}  // namespace detail

/// Sums of half types, between devices and processes, are made in this dtype and cast back (FSDP's
/// reduce_dtype): bfloat16 and float16 send half the bytes of float32. Without one: float32. The
/// same on every process, set between steps. Throws ConfigError for any other dtype.
void set_reduce_dtype(std::optional<at::ScalarType> dtype);
/// Sets the dtype of set_reduce_dtype() for this thread, while alive.
class ReduceDtypeScope {
 public:
  explicit ReduceDtypeScope(at::ScalarType dtype);

 private:
  detail::ScopedValue<std::optional<at::ScalarType>> dtype_;
};

}  // namespace tessera
