#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::ops {

/// What lies beyond the edges of an image: one value, the cells at the edges, the image again, or
/// its mirror image, in which the cells at the edges are not (mirror) or are repeated (reflect).
enum class FillMode : uint8_t { constant, nearest, wrap, mirror, reflect };

/// The options of affine_transform().
struct AffineTransformOptions {
  bool nearest = false;  ///< the cell nearest to a place; else the four around it, weighted
  FillMode fill_mode = FillMode::constant;  ///< what lies beyond the edges
  double fill_value = 0;                    ///< what does for FillMode::constant
  /// Height and width of the made images; absent: the given ones'.
  std::optional<std::array<int64_t, 2>> size = std::nullopt;
};

/// Images (n, h, w, c) whose cell (x, y) is what lies at ((a0 x + a1 y + a2) / k, (b0 x + b1 y +
/// b2) / k), k = c0 x + c1 y + 1, of the given ones, for each image by its row of transforms (n, 8)
/// with a0, a1, a2, b0, b1, b2, c0, c1 (keras.ops.image.affine_transform, and perspective_transform
/// where c0 and c1 are not 0). Sharding of batch and channels passes on, a sharded height or width
/// is gathered first. Differentiable in the images twice; no gradient passes to the transforms.
/// Throws ShapeError for tensors of other shapes or images without cells, ConfigError for images or
/// transforms that are not floating.
DTensor affine_transform(const DTensor& images, const DTensor& transforms,
                         const AffineTransformOptions& options = {});

}  // namespace tessera::ops
