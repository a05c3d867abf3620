#include <tessera/datasets/internal/stored_numbers.hpp>

#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

constexpr std::pair<const char*, at::ScalarType> stored_dtypes[] = {
    {"F32", at::kFloat},
    {"F64", at::kDouble},
    {"F16", at::kHalf},
    {"BF16", at::kBFloat16},
    {"I64", at::kLong},
    {"I32", at::kInt},
    {"I16", at::kShort},
    {"I8", at::kChar},
    {"U64", at::kUInt64},
    {"U32", at::kUInt32},
    {"U16", at::kUInt16},
    {"U8", at::kByte},
    {"BOOL", at::kBool},
    {"C64", at::kComplexFloat},
    {"C128", at::kComplexDouble},
    {"F8_E5M2", at::kFloat8_e5m2},
    {"F8_E4M3", at::kFloat8_e4m3fn},
    {"F8_E8M0", at::kFloat8_e8m0fnu},
    {"F8_E4M3FNUZ", at::kFloat8_e4m3fnuz},
    {"F8_E5M2FNUZ", at::kFloat8_e5m2fnuz}};

}  // namespace

std::optional<at::ScalarType> stored_dtype(std::string_view name) {
  for (const auto& [known, dtype] : stored_dtypes) {
    if (name == known) return dtype;
  }
  return std::nullopt;
}

std::optional<std::string> stored_name(at::ScalarType dtype) {
  for (const auto& [name, known] : stored_dtypes) {
    if (dtype == known) return name;
  }
  return std::nullopt;
}

at::Tensor without_unsigned(const at::Tensor& numbers, const std::string& where,
                            const std::string& fix) {
  switch (numbers.scalar_type()) {
    case at::kUInt16:
      return numbers.to(at::kInt);
    case at::kUInt32:
      return numbers.to(at::kLong);
    case at::kUInt64: {
      at::Tensor integers = numbers.to(at::kLong);
      if (!integers.lt(0).any().item<bool>()) return integers;
      throw FileError(where, "integers below 2^63", "larger ones", fix);
    }
    default:
      return numbers;
  }
}

}  // namespace tessera::detail
