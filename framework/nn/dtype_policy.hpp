#pragma once

#include <memory>
#include <string>

#include <c10/core/ScalarType.h>

namespace tessera {

/// Which dtype a layer's weights have and which it computes in (keras.DTypePolicy).
struct DTypePolicy {
  at::ScalarType variable = at::kFloat;
  at::ScalarType compute = at::kFloat;
  bool operator==(const DTypePolicy&) const = default;
};

/// The policy of "float32", "float64", "bfloat16", "float16", "mixed_bfloat16" or "mixed_float16";
/// "" is the default policy. Throws ConfigError naming the nearest one.
DTypePolicy dtype_policy(const std::string& name);
/// The name that dtype_policy() takes.
std::string to_string(const DTypePolicy& policy);

class DTypePolicyMap;

/// The policy of layers that name none; float32 unless set (keras.config.set_dtype_policy).
DTypePolicy default_dtype_policy();
void set_dtype_policy(const DTypePolicy& policy);

namespace detail {

/// Policies by path, if set_dtype_policy() was given such; else null.
std::shared_ptr<const DTypePolicyMap>& dtype_policy_map();

}  // namespace detail

}  // namespace tessera
