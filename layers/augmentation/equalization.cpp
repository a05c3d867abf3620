#include <tessera/layers/augmentation/color.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/segment.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/augmentation.hpp>
#include <tessera/layers/internal/colors.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(EqualizationOptions& o, const Visit& visit) {
  visit("value_range", o.value_range);
  visit("bins", o.bins);
  visit("data_format", o.data_format);
}

namespace {

class EqualizationLayer final : public AugmentationOf<EqualizationLayer, EqualizationOptions> {
 public:
  static constexpr const char* keras_name = "Equalization";
  explicit EqualizationLayer(const EqualizationOptions& options);
  int64_t draws(const Shape&) const override { return 0; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;
};

const RegisteredLayerOf<EqualizationLayer> registered_equalization;

EqualizationLayer::EqualizationLayer(const EqualizationOptions& options) : AugmentationOf(options) {
  if (options.bins > 1) return;
  throw ConfigError(where(), "bins are at least 2", str(options.bins), "leave it out for 256");
}

DTensor EqualizationLayer::transform(const DTensor& images, const ImageDraws&) const {
  const std::vector<double> bytes = {0, 255};
  const DTensor x = in_range(images, arguments_.value_range, bytes);
  const int64_t bins = arguments_.bins, channels = x.shape()[3];
  const Mesh& mesh = x.mesh();
  const DTensor first = pack(at::arange(channels) * bins, Layout::replicated(mesh, 1));
  const DTensor last = constant_like(x, double(bins - 1)), max_byte = constant_like(x, 255);
  const auto bin_of = [&](const DTensor& position) {
    return ops::cast(ops::clip(position, 0, double(bins - 1)), at::kLong) + first;
  };
  // Keras rounds differently when it counts and when it looks up.
  const DTensor counted = bin_of(x * last / max_byte);
  const DTensor ones = ops::cast(ops::equal(counted, counted), at::kDouble);
  const DTensor counts =
      ops::reshape(ops::segment_sum(ones, counted, channels * bins), {channels, bins});
  const DTensor upper_triangle =
      pack(at::ones({bins, bins}, at::kDouble).triu(), Layout::replicated(mesh, 2));
  const DTensor cumulative = ops::matmul(counts, upper_triangle);
  const DTensor none = constant_like(cumulative, 0), all = ops::max(cumulative, {1}, true);
  const DTensor cdf_min =
      ops::min(ops::where(ops::greater(cumulative, none), cumulative, all), {1}, true);
  const DTensor cdf_range = ops::maximum(all - cdf_min, constant_like(cumulative, 1));
  const DTensor table = ops::clip(ops::round((cumulative - cdf_min) * 255 / cdf_range), 0, 255);
  const DTensor equalized = ops::cast(
      ops::gather(ops::reshape(table, {channels * bins}), bin_of(x / max_byte * last)), x.dtype());
  const DTensor used_bins = ops::sum(ops::cast(ops::greater(counts, none), at::kDouble), {1});
  const DTensor unchanged = ops::less(used_bins, constant_like(used_bins, 2));
  return in_range(ops::where(unchanged, x, equalized), bytes, arguments_.value_range);
}

}  // namespace

Equalization::Equalization(const EqualizationOptions& options)
    : AugmentationHandle(std::make_shared<EqualizationLayer>(options)) {}

}  // namespace tessera
