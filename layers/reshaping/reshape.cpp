#include <tessera/layers/reshaping/reshape.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/layer_config.hpp>

namespace tessera {

using namespace detail;

namespace {

class ReshapeLayer final : public Layer {
 public:
  ReshapeLayer(Shape target_shape, const LayerOptions& options);
  std::string class_name() const override { return "Reshape"; }
  Json config() const override { return layer_config(*this, {{"target_shape", target_shape_}}); }
  Shape output_shape(const Shapes& inputs) const override;
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  Shape target_shape_;
  int64_t known_ = 1;  ///< product of the extents other than -1
  int64_t open_ = -1;  ///< axis whose extent is -1; -1 if none
};

const RegisteredLayer registered_reshape("Reshape", [](JsonObject& config) {
  const LayerOptions options = take_layer_options(config);
  return Reshape(config.take<Shape>("target_shape"), options);
});

ReshapeLayer::ReshapeLayer(Shape target_shape, const LayerOptions& options)
    : Layer(options), target_shape_(std::move(target_shape)) {
  bool valid = true;
  for (size_t a = 0; a < target_shape_.size(); ++a) {
    if (target_shape_[a] == -1 && open_ < 0) {
      open_ = static_cast<int64_t>(a);
    } else {
      valid = valid && target_shape_[a] > 0 &&
              !__builtin_mul_overflow(known_, target_shape_[a], &known_);
    }
  }
  if (valid) return;
  throw ConfigError("Reshape " + options.name,
                    "target_shape holds extents from 1 on, and -1 at most once",
                    to_string(target_shape_), "give the shape without the batch");
}

Shape ReshapeLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = single_input(inputs);
  if (input.empty()) {
    throw ShapeError("Reshape " + path(), "the input has a batch axis", to_string(input),
                     "give it one");
  }
  Shape shape = {input[0]};
  shape.insert(shape.end(), target_shape_.begin(), target_shape_.end());
  const Shape rest(input.begin() + 1, input.end());
  if (std::find(rest.begin(), rest.end(), -1) != rest.end()) return shape;
  const int64_t count = numel(rest);
  if (open_ < 0 ? count != known_ : count % known_ != 0) {
    throw ShapeError("Reshape " + path(),
                     str("the input's ", count, " elements a row fill ", to_string(target_shape_)),
                     to_string(input), "give a shape of as many elements, or -1 for one extent");
  }
  if (open_ >= 0) shape[static_cast<size_t>(open_) + 1] = count / known_;
  return shape;
}

DTensor ReshapeLayer::call(const Inputs& inputs, const CallContext&) {
  return ops::reshape(inputs[0], output_shape({inputs[0].shape()}));
}

}  // namespace

Reshape::Reshape(const Shape& target_shape, const LayerOptions& options)
    : LayerHandle(std::make_shared<ReshapeLayer>(target_shape, options)) {}

}  // namespace tessera
