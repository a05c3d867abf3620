#pragma once

#include <string>

#include <c10/core/ScalarType.h>

namespace tessera::detail {

/// A dtype as Keras and NumPy name it: "float32", "int64", "bool".
std::string dtype_name(at::ScalarType dtype);

}  // namespace tessera::detail
