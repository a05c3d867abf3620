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

bool other_than_keras(const std::string& file, const std::string& section, size_t row) {
  static const Json all = read_json_file(golden_path("other_than_keras.json").string());
  for (const Json& files : all) {
    const auto sections = files.find(file);
    if (sections == files.end() || !sections->contains(section)) continue;
    for (const Json& number : sections->at(section)) {
      if (number.get<size_t>() == row) return true;
    }
  }
  return false;
}

at::Tensor golden_tensor(const Json& json, at::ScalarType dtype) {
  const auto values = json.at("values").get<std::vector<double>>();
  return at::tensor(values, at::kDouble).reshape(json.at("shape").get<Shape>()).to(dtype);
}

}  // namespace tessera::test
