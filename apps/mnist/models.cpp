#include "apps/mnist/models.hpp"

#include <tessera/framework/base/error.hpp>

namespace tessera::mnist {
namespace {

/// Options of the dense layers of one model.
using DenseLayers = std::vector<std::pair<int64_t, DenseOptions>>;

ModelHandle sequential(const DenseLayers& dense, const std::string& name) {
  const Sequential model({Flatten()}, {.name = name});
  for (const auto& [units, options] : dense) model.add(Dense(units, options));
  return model;
}

ModelHandle functional(const DenseLayers& dense, const std::string& name) {
  const Input images({784}, {.name = "images"});
  SymbolicTensor x = Flatten()(images);
  for (const auto& [units, options] : dense) x = Dense(units, options)(x);
  return Functional({images}, {x}, {.name = name});
}

class Classifier final : public Model {
 public:
  Classifier(const DenseLayers& dense, const std::string& name) : Model({.name = name}) {
    for (const auto& [units, options] : dense) dense_.push_back(track(Dense(units, options)));
  }
  std::string class_name() const override { return "Classifier"; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override {
    DTensor x = flatten_(inputs[0], context);
    for (const LayerHandle& layer : dense_) x = layer(x, context);
    return x;
  }

 private:
  LayerHandle flatten_ = track(Flatten());
  std::vector<LayerHandle> dense_;
};

ModelHandle make_model(Style style, const DenseLayers& dense, const std::string& name) {
  if (style == Style::sequential) return sequential(dense, name);
  if (style == Style::functional) return functional(dense, name);
  return ModelHandle(std::make_shared<Classifier>(dense, name));
}

}  // namespace

Style parse_style(const std::string& text) {
  if (text == "sequential") return Style::sequential;
  if (text == "functional") return Style::functional;
  if (text == "subclass") return Style::subclass;
  throw ConfigError("style", "sequential, functional or subclass", text, "choose one of them");
}

Recipe core_api(Style style, const std::vector<int64_t>& hidden, double learning_rate) {
  const InitializerRef xavier = GlorotUniform({.seed = Seed{22, 23}});
  DenseLayers dense;
  for (size_t i = 0; i < hidden.size(); ++i) {
    dense.push_back({hidden[i], {.activation = "relu",
                                 .kernel_initializer = xavier,
                                 .name = "hidden_" + std::to_string(i + 1)}});
  }
  dense.push_back({10, {.kernel_initializer = xavier, .name = "logits"}});
  return {make_model(style, dense, "core_api"),
          Adam(learning_rate, {.epsilon_on_corrected_root = true})};
}

Recipe keras(Style style, double learning_rate) {
  const DenseLayers dense = {
      {128, {.activation = "relu",
             .kernel_initializer = GlorotUniform({.seed = 1337}),
             .name = "hidden_1"}},
      {10, {.kernel_initializer = GlorotUniform({.seed = 1338}), .name = "logits"}}};
  return {make_model(style, dense, "keras"), Adam(learning_rate)};
}

}  // namespace tessera::mnist
