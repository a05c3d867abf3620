#include "tests/support/keras_core.hpp"

#include <ATen/ATen.h>

#include <tessera/framework/base/shape.hpp>

#include "tests/support/files.hpp"

namespace tessera::test {

using namespace detail;

const Json& keras_core(const std::string& part) {
  static const Json all = read_json_file(golden_path("keras_core.json").string());
  return all.at(part);
}

at::Tensor golden_tensor(const Json& json, at::ScalarType dtype) {
  const auto values = json.at("values").get<std::vector<double>>();
  return at::tensor(values, at::kDouble).reshape(json.at("shape").get<Shape>()).to(dtype);
}

}  // namespace tessera::test
