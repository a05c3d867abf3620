#pragma once

#include <optional>
#include <string>

#include <c10/core/ScalarType.h>

namespace tessera::detail {

/// What safetensors calls a dtype, "F32". Throws ConfigError naming `where` for one that it lacks.
std::string safetensors_dtype(at::ScalarType dtype, const std::string& where);

/// The dtype that safetensors calls so; nothing for one that tensors here do not have.
std::optional<at::ScalarType> safetensors_scalar_type(const std::string& name);

/// What to do where weights are to be of the dtype that safetensors calls so: "make the model with
/// dtype "float32"".
std::string dtype_fix(const std::string& stored);

}  // namespace tessera::detail
