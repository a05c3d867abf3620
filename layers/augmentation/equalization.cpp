#include <tessera/layers/augmentation/equalization.hpp>

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

class EqualizationLayer final : public AugmentationLayer {
 public:
  explicit EqualizationLayer(const EqualizationOptions& options);
  std::string class_name() const override { return "Equalization"; }
  Json config() const override { return layer_config(*this, options_); }
  int64_t draws(const Shape&) const override { return 0; }
  DTensor transform(const DTensor& images, const ImageDraws& draws) const override;

 private:
  EqualizationOptions options_;
};

const RegisteredLayer registered_equalization("Equalization", [](JsonObject& config) {
  return Equalization(layer_options_from<EqualizationOptions>(config));
});

EqualizationLayer::EqualizationLayer(const EqualizationOptions& options)
    : AugmentationLayer("Equalization", options), options_(options) {
  options_.value_range = checked_value_range(where(), options.value_range);
  if (options.bins > 1) return;
  throw ConfigError(where(), "bins are at least 2", str(options.bins), "leave it out for 256");
}

DTensor EqualizationLayer::transform(const DTensor& images, const ImageDraws&) const {
  const std::vector<double> bytes = {0, 255};
  const DTensor x = in_range(images, options_.value_range, bytes);
  const int64_t bins = options_.bins, channels = x.shape()[3];
  const Mesh& mesh = x.mesh();
  const DTensor first = pack(at::arange(channels) * bins, Layout::replicated(mesh, 1));
  const DTensor last = constant_like(x, double(bins - 1)), most = constant_like(x, 255);
  const auto numbered = [&](const DTensor& place) {
    return ops::cast(ops::clip(place, 0, double(bins - 1)), at::kLong) + first;
  };
  // Keras rounds differently when it counts and when it looks up.
  const DTensor counted = numbered(x * last / most);
  const DTensor ones = ops::cast(ops::equal(counted, counted), at::kDouble);
  const DTensor counts =
      ops::reshape(ops::segment_sum(ones, counted, channels * bins), {channels, bins});
  const DTensor up_to =
      pack(at::ones({bins, bins}, at::kDouble).triu(), Layout::replicated(mesh, 2));
  const DTensor sums = ops::matmul(counts, up_to);
  const DTensor none = constant_like(sums, 0), all = ops::max(sums, {1}, true);
  const DTensor least = ops::min(ops::where(ops::greater(sums, none), sums, all), {1}, true);
  const DTensor rest = ops::maximum(all - least, constant_like(sums, 1));
  const DTensor table = ops::clip(ops::round((sums - least) * 255 / rest), 0, 255);
  const DTensor spread = ops::cast(
      ops::gather(ops::reshape(table, {channels * bins}), numbered(x / most * last)), x.dtype());
  const DTensor used = ops::sum(ops::cast(ops::greater(counts, none), at::kDouble), {1});
  const DTensor stays = ops::less(used, constant_like(used, 2));
  return in_range(ops::where(stays, x, spread), bytes, options_.value_range);
}

}  // namespace

Equalization::Equalization(const EqualizationOptions& options)
    : AugmentationHandle(std::make_shared<EqualizationLayer>(options)) {}

}  // namespace tessera
