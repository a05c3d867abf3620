#pragma once

#include <string>

#include <c10/core/ScalarType.h>

namespace tessera {

/// Returns the name of a dtype in Keras and NumPy: "float32", "int64", "bool".
std::string dtype_name(at::ScalarType dtype);

}  // namespace tessera
