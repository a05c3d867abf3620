#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

namespace tessera::detail {

/// Returns the dtype of numbers that files call `name`, in safetensors' words ("F32", "U16") and
/// "C128"; nothing for one that ATen lacks.
std::optional<at::ScalarType> stored_dtype(std::string_view name);
/// Returns the name of a dtype for stored_dtype(); nothing for one that has none.
std::optional<std::string> stored_name(at::ScalarType dtype);

/// Returns numbers from a file in the dtype in which programs get them: unsigned integers above 8
/// bits, with which ATen computes little, in a wider signed one, others as they are. Throws
/// FileError naming `where`, with the fix, for an integer from 2^63 on.
at::Tensor without_unsigned(const at::Tensor& numbers, const std::string& where,
                            const std::string& fix);

}  // namespace tessera::detail
