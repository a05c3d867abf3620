#include <tessera/layers/reshaping/padding_cropping.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {
namespace {

using Pair = AxisPads::Pair;

AxisPads take_pads(JsonObject& config, const std::string& key, const AxisPads& fallback) {
  const std::optional<Json> given = config.take_optional<Json>(key);
  if (!given) return fallback;
  const JsonPath path = config.path().key(key);
  AxisPads pads = 0;
  pads.one.clear();
  if (!given->is_array()) {
    pads.one = {json_as<int64_t>(*given, path)};
  } else if (given->empty() || !(*given)[0].is_array()) {
    pads.one = json_as<std::vector<int64_t>>(*given, path);
  } else {
    for (const auto& pair : json_as<std::vector<std::vector<int64_t>>>(*given, path)) {
      if (pair.size() != 2) json_fail(*given, path, "pairs of counts before and after");
      pads.two.emplace_back(pair[0], pair[1]);
    }
  }
  return pads;
}

LayerHandle sized_from(JsonObject& config, PaddingCroppingLayer::Kind kind, int64_t spatial) {
  const LayerOptions base = take_layer_options(config);
  const SpatialSizeOptions options{.data_format = config.take_or("data_format", std::string()),
                                   .name = base.name,
                                   .dtype = base.dtype,
                                   .trainable = base.trainable};
  const AxisPads fallback =
      kind == PaddingCroppingLayer::Kind::cropping && spatial == 2 ? 0 : 1;
  const AxisPads counts = take_pads(
      config, kind == PaddingCroppingLayer::Kind::padding ? "padding" : "cropping", fallback);
  return make_layer<PaddingCroppingLayer>(kind, spatial, counts, options);
}

}  // namespace

PaddingCroppingLayer::PaddingCroppingLayer(Kind kind, int64_t spatial, const AxisPads& counts,
                                   const SpatialSizeOptions& options)
    : SpatialLayer(str(kind == Kind::padding ? "ZeroPadding" : "Cropping", spatial, "D"), spatial,
                 options.data_format, {options.name, options.dtype, options.trainable}),
      kind_(kind), counts_(counts.two) {
  if (counts_.empty() && spatial == 1 && counts.one.size() == 2) {
    counts_ = {{counts.one[0], counts.one[1]}};
  } else if (counts_.empty()) {
    for (int64_t n : each(counts.one, argument(), 0)) counts_.emplace_back(n, n);
  }
  const bool good = std::all_of(counts_.begin(), counts_.end(), [](const Pair& pair) {
    return std::min(pair.first, pair.second) >= 0;
  });
  if (good && static_cast<int64_t>(counts_.size()) == spatial) return;
  throw ConfigError(class_name() + " " + name(),
                    str(argument(), " has counts of at least 0 before and after each of ", spatial,
                        " spatial axes"),
                    str(counts_.size(), " pairs"), "give one number, or pairs");
}

Json PaddingCroppingLayer::config() const {
  Json json = SpatialLayer::config();
  Json& counts = json[argument()] = Json::array();
  for (const Pair& pair : counts_) counts.push_back({pair.first, pair.second});
  if (spatial() == 1) counts = Json(counts[0]);
  return json;
}

Shape PaddingCroppingLayer::image_shape(const Shape& x) const {
  Shape y = x;
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (x[i + 1] < 0) continue;
    const int64_t both = counts_[i].first + counts_[i].second;
    y[i + 1] += kind_ == Kind::padding ? both : -both;
    if (y[i + 1] >= 1 || kind_ == Kind::padding) continue;
    throw ShapeError(where(), str("cropping leaves something of spatial axis ", i),
                     str(both, " of ", x[i + 1]), "crop less");
  }
  return y;
}

DTensor PaddingCroppingLayer::transform(const DTensor& x, const CallContext&) {
  DTensor y = x;
  for (size_t i = 0; i < counts_.size(); ++i) {
    const auto axis = static_cast<int64_t>(i) + 1;
    const auto [before, after] = counts_[i];
    y = kind_ == Kind::padding ? ops::pad(y, axis, before, after)
                               : ops::slice(y, axis, before, y.size(axis) - before - after);
  }
  return y;
}

LayerHandle ZeroPadding1D::from_config(JsonObject& config) {
  return sized_from(config, PaddingCroppingLayer::Kind::padding, 1);
}
LayerHandle ZeroPadding2D::from_config(JsonObject& config) {
  return sized_from(config, PaddingCroppingLayer::Kind::padding, 2);
}
LayerHandle Cropping1D::from_config(JsonObject& config) {
  return sized_from(config, PaddingCroppingLayer::Kind::cropping, 1);
}
LayerHandle Cropping2D::from_config(JsonObject& config) {
  return sized_from(config, PaddingCroppingLayer::Kind::cropping, 2);
}

}  // namespace tessera
