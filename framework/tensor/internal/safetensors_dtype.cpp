#include <tessera/framework/tensor/internal/safetensors_dtype.hpp>

#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/dtype_name.hpp>

namespace tessera::detail {
namespace {

constexpr std::pair<at::ScalarType, const char*> dtypes[] = {
    {at::kFloat, "F32"}, {at::kDouble, "F64"}, {at::kBFloat16, "BF16"},
    {at::kHalf, "F16"},  {at::kLong, "I64"},   {at::kInt, "I32"},
    {at::kChar, "I8"},   {at::kByte, "U8"},    {at::kBool, "BOOL"}};

}  // namespace

std::string safetensors_dtype(at::ScalarType dtype, const std::string& where) {
  for (const auto& [type, name] : dtypes) {
    if (type == dtype) return name;
  }
  throw ConfigError(where, "the dtype must be one that safetensors has", dtype_name(dtype),
                    "cast it");
}

std::optional<at::ScalarType> safetensors_scalar_type(const std::string& name) {
  for (const auto& [type, known] : dtypes) {
    if (name == known) return type;
  }
  return std::nullopt;
}

std::string dtype_fix(const std::string& stored) {
  constexpr std::pair<const char*, const char*> names[] = {
      {"F32", "float32"}, {"F64", "float64"}, {"BF16", "bfloat16"}, {"F16", "float16"}};
  for (const auto& [name, dtype] : names) {
    if (stored == name) return "make the model with dtype " + in_quotes(dtype);
  }
  return "make the model with that dtype";
}

}  // namespace tessera::detail
