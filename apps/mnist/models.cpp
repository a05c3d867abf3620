#include "apps/mnist/models.hpp"

#include <tessera/framework/base/error.hpp>

namespace tessera::mnist {

using namespace detail;

namespace {

using Layers = std::vector<LayerHandle>;

ModelHandle sequential(const Layers& layers, const std::string& name) {
  const Sequential model({}, {.name = name});
  for (const LayerHandle& layer : layers) model.add(layer);
  return model;
}

ModelHandle functional(const Layers& layers, const Shape& image, const std::string& name) {
  const Input images(image, {.name = "images"});
  SymbolicTensor x = images;
  for (const LayerHandle& layer : layers) x = layer(x);
  return Functional({images}, {x}, {.name = name});
}

class Classifier final : public Model {
 public:
  Classifier(const Layers& layers, const std::string& name) : Model({.name = name}) {
    for (const LayerHandle& layer : layers) layers_.push_back(track(layer));
  }
  std::string class_name() const override { return "Classifier"; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override {
    DTensor x = inputs[0];
    for (const LayerHandle& layer : layers_) x = layer(x, context);
    return x;
  }

 private:
  Layers layers_;
};

ModelHandle make_model(Style style, const Layers& layers, const Shape& image,
                       const std::string& name) {
  if (style == Style::sequential) return sequential(layers, name);
  if (style == Style::functional) return functional(layers, image, name);
  return ModelHandle(std::make_shared<Classifier>(layers, name));
}

}  // namespace

Style parse_style(const std::string& text) {
  if (text == "sequential") return Style::sequential;
  if (text == "functional") return Style::functional;
  if (text == "subclass") return Style::subclass;
  throw ConfigError("style", "sequential, functional or subclass", text, "choose one of them");
}

Recipe core_api(Style style, const std::vector<int64_t>& hidden, double learning_rate) {
  const InitializerHandle xavier = GlorotUniform({.seed = Seed{22, 23}});
  Layers layers = {Flatten()};
  for (size_t i = 0; i < hidden.size(); ++i) {
    layers.push_back(Dense(hidden[i], {.activation = "relu",
                                       .kernel_initializer = xavier,
                                       .name = "hidden_" + std::to_string(i + 1)}));
  }
  layers.push_back(Dense(10, {.kernel_initializer = xavier, .name = "logits"}));
  return {make_model(style, layers, {784}, "core_api"),
          Adam(learning_rate, {.epsilon_on_corrected_root = true})};
}

Recipe keras(Style style, double learning_rate) {
  const Layers layers = {
      Flatten(),
      Dense(128, {.activation = "relu",
                  .kernel_initializer = GlorotUniform({.seed = 1337}),
                  .name = "hidden_1"}),
      Dense(10, {.kernel_initializer = GlorotUniform({.seed = 1338}), .name = "logits"})};
  return {make_model(style, layers, {784}, "keras"), Adam(learning_rate)};
}

Recipe cnn(Style style, const CnnOptions& options, double learning_rate) {
  Layers layers = {Reshape({28, 28, 1})};
  for (int64_t i = 1; i <= 2; ++i) {
    const std::string number = std::to_string(i);
    layers.push_back(Conv2D(32 * i, 3,
                            {.activation = "relu",
                             .kernel_initializer = GlorotUniform({.seed = i}),
                             .name = "conv_" + number}));
    if (options.batch_norm) layers.push_back(BatchNormalization({.name = "norm_" + number}));
    layers.push_back(MaxPooling2D(2, {.name = "pool_" + number}));
  }
  layers.push_back(Flatten());
  if (options.dropout > 0) layers.push_back(Dropout(options.dropout, {.name = "dropout"}));
  layers.push_back(Dense(10, {.kernel_initializer = GlorotUniform({.seed = 3}), .name = "logits"}));
  return {make_model(style, layers, {28, 28}, "cnn"), Adam(learning_rate)};
}

}  // namespace tessera::mnist
