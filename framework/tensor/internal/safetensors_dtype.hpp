#pragma once

#include <optional>
#include <string>

#include <c10/core/ScalarType.h>

namespace tessera::detail {

/// Returns safetensors' name of a dtype ("F32"). Throws ConfigError naming `where` for a dtype that
/// safetensors lacks.
std::string safetensors_dtype(at::ScalarType dtype, const std::string& where);

/// Returns the dtype that safetensors calls `name`; nothing for one that DTensors do not support.
std::optional<at::ScalarType> safetensors_scalar_type(const std::string& name);

/// Returns the fix for a model whose weights need the dtype that safetensors calls `stored`: "make
/// the model with dtype "float32"".
std::string dtype_fix(const std::string& stored);

}  // namespace tessera::detail
