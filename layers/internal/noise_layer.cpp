#include <tessera/layers/internal/noise_layer.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/noise.hpp>

namespace tessera::detail {

NoiseLayer::NoiseLayer(const LayerOptions& options, double rate, std::optional<int64_t> seed,
                       const Shape& noise_shape)
    : Layer(options), rate_(rate), seed_(seed), noise_shape_(noise_shape) {}

void NoiseLayer::check(const std::string& where) const {
  check_rate(where, rate_);
  for (const int64_t extent : noise_shape_) {
    if (extent > 0 || extent == -1) continue;
    throw ConfigError(where, "noise_shape holds -1 and extents from 1 on", to_string(noise_shape_),
                      "give 1 where all indices share a choice");
  }
}

Shape NoiseLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  const Shape& shape = noise_shape_;
  bool fits = shape.empty() || shape.size() == input.size();
  for (size_t a = 0; fits && a < shape.size(); ++a) {
    fits = shape[a] == -1 || shape[a] == 1 || input[a] == -1 || shape[a] == input[a];
  }
  if (fits) return input;
  throw ShapeError(class_name() + " " + path(),
                   str("noise_shape ", to_string(shape), " broadcasts to the input"),
                   to_string(input), "give -1, 1 or the extent for each axis");
}

DTensor NoiseLayer::call(const Inputs& inputs, const CallContext& context) {
  const DTensor& x = inputs[0];
  if (!context.training || rate_ == 0) return x;
  return noisy(x, draw_seed(context, path(), x.mesh(), seed_));
}

DTensor NoiseLayer::factors(const DTensor& x, const DTensor& seed) const {
  Shape shape = noise_shape_.empty() ? x.shape() : noise_shape_;
  for (size_t a = 0; a < shape.size(); ++a) {
    if (shape[a] == -1) shape[a] = x.shape()[a];
  }
  const Layout layout =
      shape == x.shape() ? fetch_layout(x) : Layout::replicated(x.mesh(), x.rank());
  return ops::dropout(filled(shape, 1, x.dtype(), layout), rate_, seed);
}

Json option_json(const NoiseShapeOption& option) {
  Json json = nullptr;
  for (const int64_t extent : option.shape) {
    json.push_back(extent == -1 ? Json(nullptr) : Json(extent));
  }
  return json;
}

void read_option(JsonObject& config, const std::string& key, NoiseShapeOption& option) {
  const auto extents = config.take_optional<std::vector<std::optional<int64_t>>>(key);
  if (!extents) return;
  option.shape.clear();
  for (const auto& extent : *extents) option.shape.push_back(extent.value_or(-1));
}

}  // namespace tessera::detail
