#include <tessera/layers/reshaping/reshape.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/layer_config.hpp>

namespace tessera {

using namespace detail;

namespace {

class RepeatVectorLayer final : public Layer {
 public:
  RepeatVectorLayer(int64_t n, const LayerOptions& options);
  std::string class_name() const override { return "RepeatVector"; }
  Json config() const override { return layer_config(*this, {{"n", n_}}); }
  Shape output_shape(const Shapes& inputs) const override;
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  int64_t n_;
};

const RegisteredLayer registered_repeat_vector("RepeatVector", [](JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  return RepeatVector(take_extent(config, "n"), options);
});

RepeatVectorLayer::RepeatVectorLayer(int64_t n, const LayerOptions& options)
    : Layer(options), n_(n) {
  if (n >= 1) return;
  throw ConfigError("RepeatVector " + options.name, "n is at least 1", str(n),
                    "give the number of copies");
}

Shape RepeatVectorLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  if (input.size() != 2) {
    throw ShapeError("RepeatVector " + path(), "the input is (batch, features)", to_string(input),
                     "flatten it first");
  }
  return {input[0], n_, input[1]};
}

DTensor RepeatVectorLayer::call(const Inputs& inputs, const CallContext&) {
  return ops::broadcast_to(ops::expand_dims(inputs[0], 1), output_shape({inputs[0].shape()}));
}

}  // namespace

RepeatVector::RepeatVector(int64_t n, const LayerOptions& options)
    : LayerHandle(std::make_shared<RepeatVectorLayer>(n, options)) {}

}  // namespace tessera
