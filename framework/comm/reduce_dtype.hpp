#pragma once

#include <optional>

#include <c10/core/ScalarType.h>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/mesh/layout.hpp>

namespace tessera {

namespace detail {

/// Returns the dtype of a reduction: for sums of float16 and bfloat16 that of set_reduce_dtype(),
/// by default float32, since they lose too much precision over many terms; else the dtype itself.
at::ScalarType reduction_dtype(at::ScalarType dtype, Reduce kind);

}  // namespace detail

/// Sets the dtype in which partial sums of float16 and bfloat16, such as gradients, are summed
/// between devices and processes, before the result is cast back (FSDP's reduce_dtype; default:
/// float32). bfloat16 and float16 send half the bytes of float32. ops::sum() and ops::mean() are
/// always summed in float32. Must be equal on every process; call it between steps. Throws
/// ConfigError for a dtype other than these and float64.
void set_reduce_dtype(std::optional<at::ScalarType> dtype);
/// While alive, overrides set_reduce_dtype() for this thread.
class ReduceDtypeScope {
 public:
  explicit ReduceDtypeScope(at::ScalarType dtype);

 private:
  detail::ScopedValue<std::optional<at::ScalarType>> dtype_;
};

}  // namespace tessera
