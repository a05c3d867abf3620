// Keras' example "Simple custom layer example: Antirectifier": a layer of one's own, in a model
// that is saved to a .keras file and loaded again.

#include <cstdio>
#include <string>

#include <ATen/ATen.h>

#include <tessera/tessera.hpp>

#include "apps/common/example.hpp"
#include "apps/common/formula.hpp"

namespace {

using namespace tessera;

/// A replacement of ReLU: centers each row, keeps its positive and its negative part, and mixes
/// both by a kernel. Shape: (batch, n) -> (batch, n).
struct Antirectifier : Layer {
  explicit Antirectifier(const std::string& kernel_initializer = "he_normal",
                         const LayerOptions& options = {})
      : Layer(options), initializer(kernel_initializer) {}
  std::string class_name() const override { return "Antirectifier"; }
  Json config() const override {
    Json config = Layer::config();
    config["initializer"] = initializer;
    return config;
  }
  /// call() has operations only, so steps may be recorded.
  bool can_be_replayed() const override { return true; }
  void make_weights(const Shapes& inputs) override {
    const int64_t width = inputs[0].back();
    kernel = add_weight("kernel", {2 * width, width}, initializer);
  }
  DTensor call(const Inputs& inputs, const CallContext&) override {
    const DTensor x = inputs[0] - ops::mean(inputs[0], {-1}, /*keepdims=*/true);
    return ops::matmul(ops::concat({ops::relu(x), ops::relu(-x)}, -1), read(kernel));
  }

  std::string initializer;
  Variable kernel;
};

/// Registers the class as Python does by @register_keras_serializable(package="examples").
void register_antirectifier() {
  register_layer("Antirectifier",
                 [](JsonObject& config) {
                   const auto initializer = config.take<std::string>("initializer");
                   return make_layer<Antirectifier>(initializer, take_layer_options(config));
                 },
                 {.package = "examples"});
}

History train(const app::Example& example) {
  const at::Tensor labels = app::hashed_integers({640}, /*seed=*/1, 10);
  const at::Tensor pictures = app::hashed_digits(labels, /*seed=*/2).flatten(1);

  const Sequential model({Input({28 * 28}), Dense(64), make_layer<Antirectifier>(), Dense(64),
                          make_layer<Antirectifier>(), Dense(10)});
  app::set_hashed_weights(model);
  model.compile({.optimizer = "rmsprop",
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {SparseCategoricalAccuracy()},
                 .layouts = example.layouts});
  const History history = model.fit(pictures, labels, example.fit);

  register_antirectifier();
  model.save("own_layer.keras");
  const ModelHandle loaded = load_model("own_layer.keras", {.layouts = example.layouts});
  const Logs scores = loaded.evaluate(pictures.slice(0, 512), labels.slice(0, 512),
                                      {.batch_size = example.fit.batch_size, .verbose = 0});
  if (example.prints) std::printf("loaded: val_loss %.7g\n", *find_value(scores, "loss"));
  return history;
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::app::run_example(
      argc, argv,
      {.name = "own_layer",
       .description = "Trains, saves and loads a model with a layer of its own."},
      train);
}
