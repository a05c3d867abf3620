#pragma once

#include <initializer_list>
#include <memory>
#include <utility>

#include <tessera/layers/reshaping/spatial_layer.hpp>

namespace tessera {

/// Counts before and after each spatial axis: one for all, one for each axis, or two for each
/// (Keras' int, (h, w) or ((top, bottom), (left, right))). On one axis two numbers are before and
/// after.
struct AxisPads {
  using Pair = std::pair<int64_t, int64_t>;
  AxisPads(int64_t all) : one{all} {}                              // NOLINT: reads as data
  AxisPads(std::initializer_list<int64_t> each) : one(each) {}     // NOLINT
  AxisPads(std::initializer_list<Pair> each) : two(each) {}        // NOLINT
  std::vector<int64_t> one;
  std::vector<Pair> two;
};

struct SpatialSizeOptions {
  std::string data_format = "";  ///< "channels_last" or "channels_first"
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// Zeros put around an image, or its border cut off (keras.layers.ZeroPadding1D, ZeroPadding2D,
/// Cropping1D, Cropping2D). Shape: (batch, spatial…, channels) -> (batch, spatial'…, channels). A
/// sharded spatial axis fetches what each new shard lacks.
class PaddingCroppingLayer final : public SpatialLayer {
 public:
  enum class Kind { padding, cropping };
  /// Throws ConfigError for counts that do not fit the axes.
  PaddingCroppingLayer(Kind kind, int64_t spatial, const AxisPads& counts,
                   const SpatialSizeOptions& options);
  Json config() const override;

 protected:
  Shape image_shape(const Shape& x) const override;
  DTensor transform(const DTensor& x, const CallContext& context) override;

 private:
  std::string argument() const { return kind_ == Kind::padding ? "padding" : "cropping"; }

  Kind kind_;
  std::vector<AxisPads::Pair> counts_;
};

class ZeroPadding1D : public LayerHandle {
 public:
  /// Throws ConfigError for negative counts.
  explicit ZeroPadding1D(const AxisPads& padding = 1, const SpatialSizeOptions& options = {})
      : LayerHandle(std::make_shared<PaddingCroppingLayer>(PaddingCroppingLayer::Kind::padding, 1,
                                                           padding, options)) {}
  static LayerHandle from_config(JsonObject& config);
};

class ZeroPadding2D : public LayerHandle {
 public:
  explicit ZeroPadding2D(const AxisPads& padding = 1, const SpatialSizeOptions& options = {})
      : LayerHandle(std::make_shared<PaddingCroppingLayer>(PaddingCroppingLayer::Kind::padding, 2,
                                                           padding, options)) {}
  explicit ZeroPadding2D(std::initializer_list<AxisPads::Pair> padding,
                         const SpatialSizeOptions& options = {})
      : ZeroPadding2D(AxisPads(padding), options) {}
  static LayerHandle from_config(JsonObject& config);
};

class Cropping1D : public LayerHandle {
 public:
  explicit Cropping1D(const AxisPads& cropping = 1, const SpatialSizeOptions& options = {})
      : LayerHandle(std::make_shared<PaddingCroppingLayer>(PaddingCroppingLayer::Kind::cropping, 1,
                                                       cropping, options)) {}
  static LayerHandle from_config(JsonObject& config);
};

class Cropping2D : public LayerHandle {
 public:
  explicit Cropping2D(const AxisPads& cropping = 0, const SpatialSizeOptions& options = {})
      : LayerHandle(std::make_shared<PaddingCroppingLayer>(PaddingCroppingLayer::Kind::cropping, 2,
                                                       cropping, options)) {}
  explicit Cropping2D(std::initializer_list<AxisPads::Pair> cropping,
                      const SpatialSizeOptions& options = {})
      : Cropping2D(AxisPads(cropping), options) {}
  static LayerHandle from_config(JsonObject& config);
};

}  // namespace tessera
