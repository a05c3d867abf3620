#include <tessera/layers/internal/noise.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera::detail {

DTensor draw_seed(const CallContext& context, const std::string& path, const Mesh& mesh,
                  std::optional<int64_t> seed) {
  if (context.random) return context.random->next_input(path, mesh, seed);
  return ops::seed_input(seed ? fold_in({}, static_cast<uint64_t>(*seed)) : Seed{}, mesh);
}

void check_rate(const std::string& where, double rate) {
  if (rate >= 0 && rate < 1) return;
  throw ConfigError(where, "rate lies in [0, 1)", str(rate), "give the share of elements to drop");
}

void NoiseShape::check(const std::string& where) const {
  for (const int64_t extent : shape) {
    if (extent > 0 || extent == -1) continue;
    throw ConfigError(where, "noise_shape holds -1 and extents from 1 on", to_string(shape),
                      "give 1 where all indices share a choice");
  }
}

void NoiseShape::check_input(const std::string& where, const Shape& input) const {
  bool fits = shape.empty() || shape.size() == input.size();
  for (size_t a = 0; fits && a < shape.size(); ++a) {
    fits = shape[a] == -1 || shape[a] == 1 || input[a] == -1 || shape[a] == input[a];
  }
  if (fits) return;
  throw ShapeError(where, str("noise_shape ", to_string(shape), " broadcasts to the input"),
                   to_string(input), "give -1, 1 or the extent for each axis");
}

DTensor NoiseShape::factors(const DTensor& x, double rate, const DTensor& seed) const {
  Shape mask_shape = shape.empty() ? x.shape() : shape;
  for (size_t a = 0; a < mask_shape.size(); ++a) {
    if (mask_shape[a] == -1) mask_shape[a] = x.shape()[a];
  }
  const Layout layout =
      mask_shape == x.shape() ? fetch_layout(x) : Layout::replicated(x.mesh(), x.rank());
  return ops::dropout(filled(mask_shape, 1, x.dtype(), layout), rate, seed);
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
