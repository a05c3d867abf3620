#include <tessera/framework/nn/array_option.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

namespace tessera {

using namespace detail;

namespace {

Json to_json(const at::Tensor& values) {
  if (values.dim() == 0) return values.item<double>();
  Json list = Json::array();
  for (int64_t i = 0; i < values.size(0); ++i) list.push_back(to_json(values[i]));
  return list;
}

/// Appends the numbers of nested lists to `values` and the first lists' lengths to `shape`. Throws
/// ConfigError unless all lists of one depth have the same length.
void append(const Json& json, const JsonPath& path, size_t depth, Shape& shape,
            std::vector<double>& values) {
  constexpr size_t max_rank = 16;
  if (!json.is_array()) {
    if (depth < shape.size()) json_fail(json, path, "a list, like its neighbours");
    values.push_back(json_as<double>(json, path));
    return;
  }
  const auto length = static_cast<int64_t>(json.size());
  const bool first = values.empty() && depth == shape.size() && depth < max_rank;
  if (first) shape.push_back(length);
  if (length == 0 || depth >= shape.size() || shape[depth] != length) {
    json_fail(json, path, "numbers in lists of equal lengths");
  }
  for (size_t i = 0; i < json.size(); ++i) {
    append(json[i], path.index(i), depth + 1, shape, values);
  }
}

}  // namespace

ArrayOption::ArrayOption(double value) : values_(at::scalar_tensor(value, at::kDouble)) {}

ArrayOption::ArrayOption(std::initializer_list<double> values)
    : values_(at::tensor(at::ArrayRef<double>(values.begin(), values.size()), at::kDouble)) {}

ArrayOption::ArrayOption(const at::Tensor& values) : values_(values.to(at::kCPU, at::kDouble)) {}

Json ArrayOption::json() const { return defined() ? to_json(values_) : Json(nullptr); }

void detail::json_get(const Json& json, const JsonPath& path, ArrayOption& out) {
  out = {};
  if (json.is_null()) return;
  Shape shape;
  std::vector<double> values;
  append(json, path, 0, shape, values);
  out = ArrayOption(at::tensor(values, at::kDouble).reshape(shape));
}

}  // namespace tessera
