#pragma once

#include <string>

#include <c10/core/ScalarType.h>

namespace tessera {

/// What safetensors calls a dtype, "F32". Throws ConfigError naming `where` for one that it lacks.
std::string safetensors_dtype(at::ScalarType dtype, const std::string& where);

}  // namespace tessera
