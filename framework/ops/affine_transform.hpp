#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// How an image continues beyond its edges: with a constant, its edge pixels, itself (wrap), or its
/// mirror image, without (mirror) or with (reflect) the edge pixels repeated.
enum class FillMode : uint8_t { constant, nearest, wrap, mirror, reflect };

/// The options of affine_transform().
struct AffineTransformOptions {
  bool nearest = false;  ///< whether to read the nearest pixel (default: bilinear interpolation)
  FillMode fill_mode = FillMode::constant;  ///< how images continue beyond their edges
  double fill_value = 0;                    ///< pixel value beyond the edges (FillMode::constant)
  /// Height and width of the output (default: the input's).
  std::optional<std::array<int64_t, 2>> size = std::nullopt;
};

/// Transforms each image of (n, h, w, c) by its row (a0, a1, a2, b0, b1, b2, c0, c1) of
/// `transforms` (n, 8): output pixel (x, y) reads the input at ((a0 x + a1 y + a2) / k,
/// (b0 x + b1 y + b2) / k), k = c0 x + c1 y + 1 (keras.ops.image.affine_transform, or
/// perspective_transform where c0 or c1 is not 0). Batch and channels keep their sharding; a
/// sharded height or width is all-gathered first. Twice differentiable in the images; the
/// transforms get no gradient. Throws ShapeError for other shapes or images without pixels,
/// ConfigError unless images and transforms are floating-point.
DTensor affine_transform(const DTensor& images, const DTensor& transforms,
                         const AffineTransformOptions& options = {});

}  // namespace tessera::ops
