#include <tessera/layers/reshaping/padding_cropping.hpp>

#include <algorithm>
#include <limits>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/spatial_layer.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(SpatialSizeOptions& o, const Visit& visit) {
  visit("data_format", o.data_format);
}

namespace {

enum class Border : uint8_t { padding, cropping };

class PaddingCroppingLayer final : public SpatialLayer {
 public:
  PaddingCroppingLayer(Border border, int64_t spatial, const AxisPads& counts,
                       const SpatialSizeOptions& options);
  Json config() const override;

 protected:
  Shape image_shape(const Shape& x) const override;
  DTensor transform(const DTensor& x, const CallContext& context) override;

 private:
  Border border_;
  std::vector<AxisPads::Pair> counts_;
  SpatialSizeOptions options_;
};

/// Returns Keras' name of the counts.
std::string argument(Border border) { return border == Border::padding ? "padding" : "cropping"; }

std::string received(const std::vector<AxisPads::Pair>& counts) {
  std::string text = str(counts.size(), " pairs");
  for (const auto& [before, after] : counts) text += str(", (", before, ", ", after, ")");
  return text;
}

AxisPads take_pads(JsonObject& config, const std::string& key, const AxisPads& fallback) {
  const std::optional<Json> value = config.take_optional<Json>(key);
  if (!value) return fallback;
  const JsonPath path = config.path().key(key);
  AxisPads pads = 0;
  pads.one.clear();
  if (!value->is_array()) {
    pads.one = {json_as<int64_t>(*value, path)};
  } else if (value->empty() || !(*value)[0].is_array()) {
    pads.one = json_as<std::vector<int64_t>>(*value, path);
  } else {
    for (const auto& pair : json_as<std::vector<std::vector<int64_t>>>(*value, path)) {
      if (pair.size() != 2) json_fail(*value, path, "pairs of counts before and after");
      pads.two.emplace_back(pair[0], pair[1]);
    }
  }
  return pads;
}

template <Border border, int64_t spatial>
LayerHandle padding_cropping_from(JsonObject& config) {
  const auto options = layer_options_from<SpatialSizeOptions>(config);
  const AxisPads fallback = border == Border::cropping && spatial == 2 ? 0 : 1;
  const AxisPads counts = take_pads(config, argument(border), fallback);
  return make_layer<PaddingCroppingLayer>(border, spatial, counts, options);
}

const RegisteredLayer registered_zero_padding1d("ZeroPadding1D",
                                                padding_cropping_from<Border::padding, 1>);
const RegisteredLayer registered_zero_padding2d("ZeroPadding2D",
                                                padding_cropping_from<Border::padding, 2>);
const RegisteredLayer registered_zero_padding3d("ZeroPadding3D",
                                                padding_cropping_from<Border::padding, 3>);
const RegisteredLayer registered_cropping1d("Cropping1D",
                                            padding_cropping_from<Border::cropping, 1>);
const RegisteredLayer registered_cropping2d("Cropping2D",
                                            padding_cropping_from<Border::cropping, 2>);
const RegisteredLayer registered_cropping3d("Cropping3D",
                                            padding_cropping_from<Border::cropping, 3>);

PaddingCroppingLayer::PaddingCroppingLayer(Border border, int64_t spatial, const AxisPads& counts,
                                           const SpatialSizeOptions& options)
    : SpatialLayer(common_options(options),
                   str(border == Border::padding ? "ZeroPadding" : "Cropping", spatial, "D"),
                   spatial, options.data_format),
      border_(border),
      counts_(counts.two),
      options_(options) {
  options_.data_format = data_format();
  if (counts_.empty() && spatial == 1 && counts.one.size() == 2) {
    counts_ = {{counts.one[0], counts.one[1]}};
  } else if (counts_.empty()) {
    for (int64_t n : each(counts.one, argument(border), 0)) counts_.emplace_back(n, n);
  }
  const bool valid = std::all_of(counts_.begin(), counts_.end(), [](const AxisPads::Pair& pair) {
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    return std::min(pair.first, pair.second) >= 0 && std::max(pair.first, pair.second) <= most;
  });
  if (valid && static_cast<int64_t>(counts_.size()) == spatial) return;
  throw ConfigError(
      class_name() + " " + name(),
      str(argument(border), " has counts from 0 to 2147483647 before and after each of ", spatial,
          " spatial axes"),
      received(counts_), "give one number, or pairs");
}

Json PaddingCroppingLayer::config() const {
  Json counts = Json::array();
  for (const auto& [before, after] : counts_) counts.push_back({before, after});
  if (spatial() == 1) counts = Json(counts[0]);
  return layer_config(*this, {{"data_format", data_format()}, {argument(border_), counts}},
                      options_);
}

Shape PaddingCroppingLayer::image_shape(const Shape& x) const {
  Shape y = x;
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (x[i + 1] < 0) continue;
    const int64_t both = counts_[i].first + counts_[i].second;
    y[i + 1] += border_ == Border::padding ? both : -both;
    if (y[i + 1] >= 1 || border_ == Border::padding) continue;
    throw ShapeError(where(), str("cropping must leave at least one element of spatial axis ", i),
                     str(both, " of ", x[i + 1]), "crop less");
  }
  return y;
}

DTensor PaddingCroppingLayer::transform(const DTensor& x, const CallContext&) {
  DTensor y = x;
  for (size_t i = 0; i < counts_.size(); ++i) {
    const auto axis = static_cast<int64_t>(i) + 1;
    const auto [before, after] = counts_[i];
    y = border_ == Border::padding ? ops::pad(y, axis, before, after)
                                   : ops::slice(y, axis, before, y.size(axis) - before - after);
  }
  return y;
}

}  // namespace

ZeroPadding1D::ZeroPadding1D(const AxisPads& padding, const SpatialSizeOptions& options)
    : LayerHandle(std::make_shared<PaddingCroppingLayer>(Border::padding, 1, padding, options)) {}
ZeroPadding2D::ZeroPadding2D(const AxisPads& padding, const SpatialSizeOptions& options)
    : LayerHandle(std::make_shared<PaddingCroppingLayer>(Border::padding, 2, padding, options)) {}
ZeroPadding2D::ZeroPadding2D(std::initializer_list<AxisPads::Pair> padding,
                             const SpatialSizeOptions& options)
    : ZeroPadding2D(AxisPads(std::vector(padding)), options) {}
ZeroPadding3D::ZeroPadding3D(const AxisPads& padding, const SpatialSizeOptions& options)
    : LayerHandle(std::make_shared<PaddingCroppingLayer>(Border::padding, 3, padding, options)) {}
ZeroPadding3D::ZeroPadding3D(std::initializer_list<AxisPads::Pair> padding,
                             const SpatialSizeOptions& options)
    : ZeroPadding3D(AxisPads(std::vector(padding)), options) {}
Cropping1D::Cropping1D(const AxisPads& cropping, const SpatialSizeOptions& options)
    : LayerHandle(std::make_shared<PaddingCroppingLayer>(Border::cropping, 1, cropping, options)) {}
Cropping2D::Cropping2D(const AxisPads& cropping, const SpatialSizeOptions& options)
    : LayerHandle(std::make_shared<PaddingCroppingLayer>(Border::cropping, 2, cropping, options)) {}
Cropping2D::Cropping2D(std::initializer_list<AxisPads::Pair> cropping,
                       const SpatialSizeOptions& options)
    : Cropping2D(AxisPads(std::vector(cropping)), options) {}
Cropping3D::Cropping3D(const AxisPads& cropping, const SpatialSizeOptions& options)
    : LayerHandle(std::make_shared<PaddingCroppingLayer>(Border::cropping, 3, cropping, options)) {}
Cropping3D::Cropping3D(std::initializer_list<AxisPads::Pair> cropping,
                       const SpatialSizeOptions& options)
    : Cropping3D(AxisPads(std::vector(cropping)), options) {}

}  // namespace tessera
