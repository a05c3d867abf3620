#include <tessera/layers/reshaping/reshape.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/layer_config.hpp>

namespace tessera {

using namespace detail;

namespace {

class PermuteLayer final : public Layer {
 public:
  PermuteLayer(std::vector<int64_t> dims, const LayerOptions& options);
  std::string class_name() const override { return "Permute"; }
  Json config() const override { return layer_config(*this, {{"dims", dims_}}); }
  Shape output_shape(const Shapes& inputs) const override;
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  std::vector<int64_t> dims_;
};

const RegisteredLayer registered_permute("Permute", [](JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  return Permute(config.take<std::vector<int64_t>>("dims"), options);
});

PermuteLayer::PermuteLayer(std::vector<int64_t> dims, const LayerOptions& options)
    : Layer(options), dims_(std::move(dims)) {
  std::vector<int64_t> sorted = dims_;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] == static_cast<int64_t>(i) + 1) continue;
    throw ConfigError("Permute " + options.name, "dims holds each of 1, 2, … once",
                      to_string(dims_), "count the axes after the batch from 1");
  }
}

Shape PermuteLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  if (input.size() != dims_.size() + 1) {
    throw ShapeError("Permute " + path(),
                     str("the input has ", dims_.size() + 1, " axes with the batch, as dims says"),
                     to_string(input), "give one entry in dims for each axis after the batch");
  }
  Shape shape = {input[0]};
  for (const int64_t axis : dims_) shape.push_back(input[static_cast<size_t>(axis)]);
  return shape;
}

DTensor PermuteLayer::call(const Inputs& inputs, const CallContext&) {
  std::vector<int64_t> axes = {0};
  axes.insert(axes.end(), dims_.begin(), dims_.end());
  return ops::transpose(inputs[0], axes);
}

}  // namespace

Permute::Permute(const std::vector<int64_t>& dims, const LayerOptions& options)
    : LayerHandle(std::make_shared<PermuteLayer>(dims, options)) {}

}  // namespace tessera
