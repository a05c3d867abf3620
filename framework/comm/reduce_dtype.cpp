#include <tessera/framework/comm/reduce_dtype.hpp>

#include <atomic>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>

namespace tessera {

using namespace detail;

namespace {

std::atomic<at::ScalarType> common_reduce_dtype{at::kFloat};

at::ScalarType checked_reduce_dtype(at::ScalarType dtype) {
  const bool known =
      dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf || dtype == at::kBFloat16;
  if (known) return dtype;
  throw ConfigError("reduce_dtype", "sums are computed in float32, float64, bfloat16 or float16",
                    dtype_name(dtype), "name one of them");
}

}  // namespace

at::ScalarType detail::reduction_dtype(at::ScalarType dtype, Reduce kind) {
  const bool half = dtype == at::kHalf || dtype == at::kBFloat16;
  if (!half || kind != Reduce::sum) return dtype;
  return thread_state().reduce_dtype.value_or(common_reduce_dtype.load());
}

void set_reduce_dtype(std::optional<at::ScalarType> dtype) {
  common_reduce_dtype = checked_reduce_dtype(dtype.value_or(at::kFloat));
}

ReduceDtypeScope::ReduceDtypeScope(at::ScalarType dtype)
    : dtype_(thread_state().reduce_dtype, checked_reduce_dtype(dtype)) {}

}  // namespace tessera
