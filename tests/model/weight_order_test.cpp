// The order of a model's weights is Keras': lists of arrays are exchanged by get_weights().
#include <tessera/tessera.hpp>

#include <functional>
#include <map>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace weight_order_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// Adds a weight that is not trained, then a sublayer's, then one that is trained, as in
/// make_keras_weight_order.py.
class ScaledLayer final : public Layer {
 public:
  ScaledLayer() : Layer({.name = "scaled"}) {}
  std::string class_name() const override { return "Scaled"; }
  Shape output_shape(const Shapes& inputs) const override { return inner_->output_shape(inputs); }

 protected:
  void make_weights(const Shapes& inputs) override {
    add_weight("calls", {1}, "zeros", {.trainable = false});
    inner_->build(inputs);
    scale_ = add_weight("scale", {6}, "ones");
    shift_ = add_weight("shift", {1, 6}, "zeros", {.trainable = false});
  }
  DTensor call(const Inputs& inputs, const CallContext& context) override {
    return inner_(inputs[0], context) * scale_.value() + shift_.value();
  }

 private:
  LayerHandle inner_ = track(Dense(6, {.name = "inner"}));
  Variable scale_, shift_;
};

ModelHandle chain() {
  return Sequential({Input({5, 3}), BatchNormalization({.name = "norm"}),
                     Dense(4, {.name = "first"}), BatchNormalization({.name = "second_norm"}),
                     TimeDistributed(Dense(2), {.name = "steps"})});
}

ModelHandle frozen() {
  const ModelHandle model = chain();
  model.layers()[0]->set_trainable(false);
  model.layers()[1]->set_trainable(false);
  return model;
}

ModelHandle own() {
  return Sequential({Input({3}), make_layer<ScaledLayer>(), Dense(2, {.name = "last"})});
}

ModelHandle nested() {
  const Input x({5, 3}, {.name = "x"});
  const Sequential part({Dense(7, {.name = "a"}), BatchNormalization({.name = "b"})},
                        {.name = "part"});
  const Input inner_x({5, 7}, {.name = "inner_x"});
  const SymbolicTensor c = Dense(8, {.name = "c"})(inner_x);
  const Functional inner({inner_x}, {LayerNormalization({.name = "d"})(c)}, {.name = "inner"});
  const SymbolicTensor right = Bidirectional(LSTM(3), {.name = "both"})(x);
  const SymbolicTensor mapped = inner(part(x));
  const SymbolicTensor left = GlobalAveragePooling1D({.name = "mean"})(mapped);
  const SymbolicTensor joined = Concatenate({.name = "join"})({left, right});
  const SymbolicTensor normal = BatchNormalization({.name = "e"})(joined);
  return Functional({x}, {Dense(9, {.name = "out"})(normal)});
}

ModelHandle attention() {
  const Input x({5, 6}, {.name = "x"});
  const SymbolicTensor y = MultiHeadAttention(2, 3, {.name = "attention"})({x, x});
  const SymbolicTensor z = GroupNormalization({.groups = 3, .name = "groups"})(y);
  return Functional({x}, {GRU(4, {.name = "gru"})(z)});
}

}  // namespace

TEST_CASE("the weights of a model are in Keras' order") {
  const Json golden = read_json_file(test::golden_path("keras_weight_order.json"));
  const std::map<std::string, std::function<ModelHandle()>> models = {{"chain", chain},
                                                                      {"frozen", frozen},
                                                                      {"own", own},
                                                                      {"nested", nested},
                                                                      {"attention", attention}};
  CHECK(models.size() == golden.size());
  for (const auto& [name, make] : models) {
    CAPTURE(name);
    const ModelHandle model = make();
    Json order = Json::array();
    for (const Variable& weight : model.weights()) {
      const std::string& path = weight.path();
      order.push_back({path.substr(path.rfind('/') + 1), weight.shape()});
    }
    CHECK(order == golden.at(name));
    // Lists of arrays go in and out in this order.
    std::vector<at::Tensor> values;
    for (size_t i = 0; i < model.weights().size(); ++i) {
      values.push_back(at::full(model.weights()[i].shape(), double(i)));
    }
    model.set_weights(values);
    for (size_t i = 0; i < values.size(); ++i) {
      CHECK(model.weights()[i].value().full().eq(double(i)).all().item<bool>());
      CHECK(model.get_weights()[i].eq(double(i)).all().item<bool>());
    }
  }
}

}  // namespace weight_order_test
