#pragma once

#include <tessera/framework/base/json.hpp>

#include <ATen/core/Tensor.h>

#include <string>

namespace tessera::test {

/// Returns a section of golden/keras_core.json: "initializers", "losses", "metrics", "optimizers".
const Json& keras_core(const std::string& part);

/// Whether golden/other_than_keras.json lists this row of a section of a golden file: Tessera
/// computes another value on purpose (the table in docs/keras.md).
bool other_than_keras(const std::string& file, const std::string& section, size_t row);

/// Returns a tensor of the file in this dtype.
at::Tensor golden_tensor(const Json& json, at::ScalarType dtype = at::kFloat);

/// Returns an option of a case, or its default.
template <class T>
T option(const Json& options, const std::string& key, T otherwise) {
  return options.contains(key) ? options.at(key).get<T>() : otherwise;
}

}  // namespace tessera::test
