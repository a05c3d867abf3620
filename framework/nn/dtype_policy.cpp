#include <tessera/framework/nn/dtype_policy.hpp>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera {

using namespace detail;

namespace {

const std::array<std::pair<const char*, DTypePolicy>, 6> policies = {{
    {"float32", {at::kFloat, at::kFloat}},
    {"float64", {at::kDouble, at::kDouble}},
    {"bfloat16", {at::kBFloat16, at::kBFloat16}},
    {"float16", {at::kHalf, at::kHalf}},
    {"mixed_bfloat16", {at::kFloat, at::kBFloat16}},
    {"mixed_float16", {at::kFloat, at::kHalf}},
}};

/// Between the mode and the name of the policy that a quantized layer had before.
constexpr std::string_view from_source = "_from_";

DTypePolicy& global_policy() {
  static DTypePolicy policy;
  return policy;
}

}  // namespace

DTypePolicy dtype_policy(const std::string& name) {
  if (name.empty()) return default_dtype_policy();
  if (const size_t mode = name.find(from_source); mode != std::string::npos) {
    return quantized_policy(name.substr(0, mode),
                            dtype_policy(name.substr(mode + from_source.size())));
  }
  std::vector<std::string> names;
  for (const auto& [known, policy] : policies) {
    if (name == known) return policy;
    names.push_back(known);
  }
  throw ConfigError("dtype", "a dtype policy is float32, float64, bfloat16, float16 or a mixed one",
                    in_quotes(name), suggestion(name, names));
}

DTypePolicy detail::quantized_policy(const std::string& mode, const DTypePolicy& policy) {
  if (mode != "int8") {
    throw ConfigError("quantization", "the mode is \"int8\", the only one that is implemented",
                      in_quotes(mode), "quantize the floating model to \"int8\"");
  }
  if (policy.compute == at::kHalf) {
    throw ConfigError("quantization", "a layer quantized to \"int8\" does not compute in float16",
                      in_quotes(to_string(policy)), "make it with dtype \"mixed_bfloat16\"");
  }
  DTypePolicy quantized = policy;
  quantized.quantization_mode = mode;
  return quantized;
}

std::string to_string(const DTypePolicy& policy) {
  if (!policy.quantization_mode.empty()) {
    DTypePolicy source = policy;
    source.quantization_mode.clear();
    return str(policy.quantization_mode, from_source, to_string(source));
  }
  for (const auto& [name, known] : policies) {
    if (known == policy) return name;
  }
  return "custom";
}

DTypePolicy default_dtype_policy() { return global_policy(); }

void set_dtype_policy(const std::string& name) { set_dtype_policy(dtype_policy(name)); }

void set_dtype_policy(const DTypePolicy& policy) {
  global_policy() = policy;
  dtype_policy_map() = nullptr;
}

std::shared_ptr<const DTypePolicyMap>& detail::dtype_policy_map() {
  static std::shared_ptr<const DTypePolicyMap> map;
  return map;
}

}  // namespace tessera
