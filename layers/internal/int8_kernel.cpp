#include <tessera/layers/internal/int8_kernel.hpp>

#include <algorithm>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/int8.hpp>
#include <tessera/framework/ops/internal/equation.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera::detail {
namespace {

/// Returns the axes of `term` that the output lacks.
std::vector<int64_t> summed_axes(const std::string& term, const std::string& output) {
  std::vector<int64_t> axes;
  for (size_t a = 0; a < term.size(); ++a) {
    if (output.find(term[a]) == std::string::npos) axes.push_back(static_cast<int64_t>(a));
  }
  return axes;
}

/// Gives a scale of `term`, whose summed axes have extent 1, the axes of the output.
DTensor aligned_scale(const DTensor& scale, const std::string& term, const std::string& output) {
  std::vector<int64_t> order;
  Shape shape;
  for (const char letter : output) {
    const size_t axis = term.find(letter);
    const bool has = axis != std::string::npos;
    if (has) order.push_back(static_cast<int64_t>(axis));
    shape.push_back(has ? scale.shape()[axis] : 1);
  }
  for (const int64_t axis : summed_axes(term, output)) order.push_back(axis);
  const bool in_order = std::is_sorted(order.begin(), order.end());
  const DTensor ordered = in_order ? scale : ops::transpose(scale, order);
  return ordered.shape() == shape ? ordered : ops::reshape(ordered, shape);
}

}  // namespace

Int8Kernel int8_kernel(const std::string& equation, const DTensor& kernel) {
  const Equation terms = split_equation(equation);
  const std::string &term = terms.in[1], &output = *terms.out;
  const auto [values, scale] = ops::abs_max_quantize(kernel, summed_axes(term, output));
  return {values, aligned_scale(scale, term, output)};
}

Int8Kernel int8_sum(const std::string& equation, const Int8Kernel& kernel, const DTensor& delta) {
  const Equation terms = split_equation(equation);
  const DTensor scale = aligned_scale(kernel.scale, *terms.out, terms.in[1]);
  return int8_kernel(equation, ops::cast(kernel.values, scale.dtype()) / scale + delta);
}

DTensor int8_product(const std::string& equation, const DTensor& x, const Int8Kernel& kernel,
                     const std::function<DTensor(const DTensor&)>& place) {
  const Equation terms = split_equation(equation);
  const std::string &term = terms.in[0], &output = *terms.out;
  const DTensor scale = ops::abs_max_scale(x, summed_axes(term, output));
  // A cast to fewer digits adds up the parts first, so that the result is that of one device.
  const DTensor sums =
      ops::cast(place(ops::int8_einsum(equation, x, scale, kernel.values)), x.dtype());
  return sums / (aligned_scale(scale, term, output) * kernel.scale);
}

void read_option(JsonObject& config, const std::string& key, QuantizationConfigOption&) {
  const auto json = config.take_optional<Json>(key);
  if (!json) return;
  const Json defaults = {{"value_range", {-127, 127}}, {"epsilon", 1e-7}, {"output_dtype", "int8"}};
  const JsonPath path = config.path().key(key);
  auto [name, options] = read_serialized(*json, path);
  const auto weights = options.take_or<Json>("weight_quantizer", {});
  const auto inputs = options.take_or<Json>("activation_quantizer", {});
  options.finish();
  const bool fits = name == "Int8QuantizationConfig" && weights.is_null() && inputs.is_object() &&
                    inputs.value("class_name", "") == "AbsMaxQuantizer" &&
                    inputs.value("config", Json()) == defaults;
  if (fits) return;
  throw ConfigError(path.text(), "the quantization is Keras' default of mode int8", json->dump(),
                    "quantize the model with quantize(\"int8\") alone");
}

}  // namespace tessera::detail
