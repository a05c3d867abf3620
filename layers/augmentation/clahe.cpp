#include <tessera/layers/augmentation/color.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/internal/take_gradient.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/sharding.hpp>
#include <tessera/layers/internal/augmentation.hpp>
#include <tessera/layers/internal/colors.hpp>
#include <tessera/layers/internal/spatial_layer.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(ContrastLimitedAdaptiveHistogramEqualizationOptions& o, const Visit& visit) {
  visit("value_range", o.value_range);
  visit("clip_limit", o.clip_limit);
  visit("tile_grid_size", o.tile_grid_size);
  visit("data_format", o.data_format);
}

namespace {

constexpr int64_t levels = 256;

/// The tiles of an axis. The last ones may lie beyond the image, which continues as its mirror
/// image with the edge pixels repeated.
struct TileAxis {
  TileAxis(int64_t image_extent, int64_t tiles)
      : extent(image_extent), count(tiles), size((image_extent + tiles - 1) / tiles) {}
  int64_t extent, count, size;

  int64_t padded() const { return count * size; }
  /// Returns the index in the image of each pixel of the tiles, and the tile that it is in.
  at::Tensor pixels() const {
    const at::Tensor phase = at::arange(padded(), at::kLong).remainder(2 * extent);
    return at::minimum(phase, 2 * extent - 1 - phase);
  }
  at::Tensor tiles() const { return at::arange(padded(), at::kLong).div(size, "floor"); }
  /// Returns the position of each pixel of the image, in tiles from the centre of the first.
  at::Tensor positions() const {
    return at::arange(extent, at::kDouble).sub(double(size) / 2).div(double(size));
  }
  /// Returns the tile before (0) or after (1) each pixel of the image, and its weight.
  at::Tensor near_tiles(int64_t side) const {
    return positions().floor().add(side).clamp(0, count - 1).to(at::kLong);
  }
  at::Tensor weights(int64_t side) const {
    const at::Tensor share = positions().sub(positions().floor());
    return side == 1 ? share : share.neg().add(1);
  }
};

/// Returns numbers a · factor + b of all pairs as a replicated row (1, 1, pairs).
DTensor row_of_pairs(const at::Tensor& a, int64_t factor, const at::Tensor& b, const Mesh& mesh) {
  const at::Tensor pairs = a.mul(factor).unsqueeze(1).add(b.unsqueeze(0));
  return pack(pairs.reshape({1, 1, -1}), Layout::replicated(mesh, 3));
}

using ClaheOptions = ContrastLimitedAdaptiveHistogramEqualizationOptions;

class ClaheLayer final : public AugmentationOf<ClaheLayer, ClaheOptions> {
 public:
  static constexpr const char* keras_name = "ContrastLimitedAdaptiveHistogramEqualization";
  explicit ClaheLayer(const ClaheOptions& options);
  int64_t draws(const Shape&) const override { return 0; }
  DTensor transform(const DTensor& images, const ImageDraws&) const override {
    return outside_training(images);
  }

 protected:
  DTensor outside_training(const DTensor& images) const override;

 private:
  DTensor tables(const DTensor& pixels, const TileAxis& y, const TileAxis& x) const;
};

const RegisteredLayerOf<ClaheLayer> registered_clahe;

ClaheLayer::ClaheLayer(const ClaheOptions& options) : AugmentationOf(options) {
  std::vector<int64_t>& grid = arguments_.tile_grid_size.values;
  if (grid.size() == 1) grid.push_back(grid[0]);
  if (grid.size() == 2 && grid[0] > 0 && grid[1] > 0) return;
  throw ConfigError(where(), "tile_grid_size is one number or two of at least 1", Json(grid).dump(),
                    "give the numbers of tiles along height and width");
}

/// Returns the new level of each level in each tile, (batch, channels, tiles · levels), of pixels
/// (batch, channels, height · width).
DTensor ClaheLayer::tables(const DTensor& pixels, const TileAxis& y, const TileAxis& x) const {
  const Mesh& mesh = pixels.mesh();
  const int64_t batch = pixels.shape()[0], channels = pixels.shape()[1], tiles = y.count * x.count;
  const auto tile_size = double(y.size * x.size);
  DTensor counted = pixels;
  if (y.padded() != y.extent || x.padded() != x.extent) {
    const DTensor index = row_of_pairs(y.pixels(), x.extent, x.pixels(), mesh);
    counted = ops::gather(pixels, ops::reshape(index, {-1}), 2);
  }
  counted = counted + row_of_pairs(y.tiles() * levels, x.count, x.tiles() * levels, mesh);
  const DTensor ones = ops::cast(ops::equal(counted, counted), at::kDouble);
  const Shape shape = {batch, channels, tiles * levels};
  // The adjoint of take_along_axis counts within each channel of each image, so that a sharded
  // batch needs no communication.
  const DTensor histograms = take_along_axis_gradient(
      ones, counted, 2, *intern(shape, at::kDouble, Layout::replicated(mesh, 3)));
  DTensor counts = ops::reshape(histograms, {batch, channels, tiles, levels});
  if (arguments_.clip_limit > 0) {
    const DTensor kept = ops::clip(counts, 0, arguments_.clip_limit * tile_size / levels);
    counts = kept + ops::sum(counts - kept, {3}, true) * (1.0 / levels);
  }
  const DTensor cumulative = ops::cumsum(counts, 3), first = ops::slice(cumulative, 3, 0, 1);
  const DTensor others = -first + tile_size;
  const DTensor empty = ops::equal(others, constant_like(others, 0));
  const DTensor scale = ops::where(empty, constant_like(others, 1), others);
  return ops::reshape(ops::clip((cumulative - first) * 255 / scale, 0, 255), shape);
}

DTensor ClaheLayer::outside_training(const DTensor& images) const {
  const std::vector<double> bytes = {0, 255};
  const DTensor x = in_range(widened(images), arguments_.value_range, bytes);
  const int64_t batch = x.shape()[0], height = x.shape()[1], width = x.shape()[2],
                channels = x.shape()[3];
  const TileAxis rows(height, arguments_.tile_grid_size.values[0]);
  const TileAxis columns(width, arguments_.tile_grid_size.values[1]);
  const DTensor whole = ops::cast(ops::clip(x, 0, 255), at::kLong);
  const DTensor pixels =
      ops::reshape(ops::transpose(whole, {0, 3, 1, 2}), {batch, channels, height * width});
  const DTensor table = ops::stop_gradient(ops::cast(tables(pixels, rows, columns), x.dtype()));
  DTensor sum;
  for (const int64_t below : {0, 1}) {
    for (const int64_t right : {0, 1}) {
      const DTensor tile = row_of_pairs(rows.near_tiles(below) * levels, columns.count,
                                        columns.near_tiles(right) * levels, x.mesh());
      const at::Tensor weight =
          rows.weights(below).unsqueeze(1).mul(columns.weights(right).unsqueeze(0));
      const DTensor weights = pack(weight.to(x.dtype()).reshape({1, 1, height * width}),
                                   Layout::replicated(x.mesh(), 3));
      const DTensor part = ops::take_along_axis(table, pixels + tile, 2) * weights;
      sum = sum.defined() ? sum + part : part;
    }
  }
  const DTensor made =
      in_range(ops::transpose(ops::reshape(sum, {batch, channels, height, width}), {0, 2, 3, 1}),
               bytes, arguments_.value_range);
  return ops::cast(made, images.dtype());
}

}  // namespace

ContrastLimitedAdaptiveHistogramEqualization::ContrastLimitedAdaptiveHistogramEqualization(
    const ContrastLimitedAdaptiveHistogramEqualizationOptions& options)
    : AugmentationHandle(std::make_shared<ClaheLayer>(options)) {}

}  // namespace tessera
