#pragma once

#include <memory>
#include <string>

#include <c10/core/ScalarType.h>

namespace tessera {

/// The dtypes of a layer's weights and of its computation (keras.DTypePolicy).
struct DTypePolicy {
  at::ScalarType variable = at::kFloat;
  at::ScalarType compute = at::kFloat;
  std::string quantization_mode = "";  ///< "int8" for int8 kernels; "" for floating ones
  bool operator==(const DTypePolicy&) const = default;
};

/// Returns the policy named "float32", "float64", "bfloat16", "float16", "mixed_bfloat16" or
/// "mixed_float16", or that of a quantized layer, "int8_from_float32"; "" is the global policy.
/// Throws ConfigError naming the nearest one.
DTypePolicy dtype_policy(const std::string& name);
/// Returns the policy's name, as dtype_policy() takes it.
std::string to_string(const DTypePolicy& policy);

class DTypePolicyMap;

/// Returns the global policy, for layers that name none: float32 unless set
/// (keras.config.set_dtype_policy).
DTypePolicy default_dtype_policy();
void set_dtype_policy(const DTypePolicy& policy);
/// Sets the policy of this name, "mixed_bfloat16". Throws ConfigError as dtype_policy() does.
void set_dtype_policy(const std::string& name);

namespace detail {

/// Returns the policy of a layer with `policy` after Layer::quantize(mode). Throws ConfigError for
/// another mode than "int8" and for a policy that computes in float16.
DTypePolicy quantized_policy(const std::string& mode, const DTypePolicy& policy);

/// The policies by path that set_dtype_policy() was given; null if there are none.
std::shared_ptr<const DTypePolicyMap>& dtype_policy_map();

}  // namespace detail

}  // namespace tessera
