#include <tessera/tessera.hpp>

#include <algorithm>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/warnings.hpp"

namespace first_step_test {

using namespace tessera;
using Catch::Matchers::Contains;

namespace {

const LossHandle crossentropy = SparseCategoricalCrossentropy({.from_logits = true});

Examples data() { return {.x = {at::rand({40, 4})}, .y = {at::arange(40).remainder(3)}}; }

CompileOptions options(int64_t devices = 1) {
  return {.optimizer = "adam", .loss = crossentropy, .mesh = create_mesh({{"batch", devices}})};
}

/// A model that forgot track() for its first layer.
class Forgetful final : public Model {
 public:
  Forgetful() : Model({.name = "forgetful"}) {}
  std::string class_name() const override { return "Forgetful"; }
  LayerHandle hidden = Dense(16, {.activation = "relu", .name = "hidden"});
  LayerHandle logits = track(Dense(3));

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override {
    return logits(hidden(inputs[0], context), context);
  }
};

/// An ATen function of the blocks, through which no gradient flows.
class Sine final : public Layer {
 public:
  Sine() : Layer(LayerOptions()) {}
  std::string class_name() const override { return "Sine"; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    std::vector<at::Tensor> shards = unpack(inputs[0]);
    for (at::Tensor& shard : shards) shard = at::sin(shard);
    return pack(shards, inputs[0].layout(), inputs[0].shape());
  }
};

std::string warnings_of(const ModelHandle& model, const CompileOptions& how, int64_t epochs = 1) {
  const test::Warnings heard;
  model.compile(how);
  model.fit(data(), {.epochs = epochs, .verbose = 0});
  return heard.text();
}

}  // namespace

TEST_CASE("a layer that was not tracked is named in the first step", "[first_step]") {
  const auto net = std::make_shared<Forgetful>();
  const ModelHandle model(net);
  model.compile(options());
  const std::string error = test::error_line([&] { model.fit(data(), {.verbose = 0}); });
  CHECK_THAT(error, Contains("[model forgetful] the weights that a step reads are the model's. "
                             "Received: hidden/kernel, hidden/bias of a layer that the model "
                             "does not track"));
  CHECK_THAT(error, Contains("track()"));
  // Nothing was trained before.
  CHECK(model.weights().size() == 2);
  net->hidden->set_trainable(false);
  CHECK(model.fit(data(), {.verbose = 0}).at("loss").size() == 1);
}

TEST_CASE("on a mesh, weights of a layer that was not tracked are named, too", "[first_step]") {
  const ModelHandle model(std::make_shared<Forgetful>());
  model.compile(options(2));
  CHECK_THAT(test::error_line([&] { model.fit(data(), {.verbose = 0}); }),
             Contains("[Dense hidden] a layer's weights must be on the mesh of its inputs. "
                      "Received: hidden/kernel on ") &&
                 Contains("track()"));
}

TEST_CASE("variables without a gradient of the loss are named once", "[first_step]") {
  const Sequential model({Input({4}), Dense(6), make_layer<Sine>(), Dense(3)});
  const std::string text = warnings_of(model, options(), 3);
  CHECK(text ==
        "Warning: gradients do not exist for dense/kernel, dense/bias: the loss does not "
        "depend on them, or only through functions without gradients, such as ATen functions on "
        "shards\n");
  const Sequential tracked({Input({4}), Dense(6), Dense(3)});
  CHECK(warnings_of(tracked, options()).empty());
}

TEST_CASE("an optimizer belongs to one model", "[first_step]") {
  const CompileOptions how = options();
  const Sequential a({Input({4}), Dense(3, {.name = "a"})}), b({Input({4}), Dense(3)});
  a.compile(how);
  a.fit(data(), {.verbose = 0});
  CHECK_THAT(
      test::error_line([&] { b.compile(how); }),
      Contains("an optimizer belongs to one model. Received: adam, which has slots of another "
               "model's a/kernel"));
  // A model may be compiled again, and another one around it.
  a.compile(how);
  const Sequential around({Input({4}), Dense(4), a});
  around.compile(how);
  CHECK(around.fit(data(), {.verbose = 0}).at("loss").size() == 1);
}

TEST_CASE("a warning is printed for probabilities where the loss takes logits", "[first_step]") {
  const std::string line =
      "Warning: the loss is from logits, but the outputs come from softmax: "
      "leave out that activation, or from_logits\n";
  const Sequential softmax({Input({4}), Dense(3, {.activation = "softmax"})});
  CHECK(warnings_of(softmax, options()) == line);
  CompileOptions from_probabilities = options();
  from_probabilities.loss = "sparse_categorical_crossentropy";
  const Sequential right({Input({4}), Dense(3, {.activation = "softmax"})});
  CHECK(warnings_of(right, from_probabilities).empty());
  CompileOptions binary = options();
  binary.loss = BinaryCrossentropy({.from_logits = true});
  const Sequential sigmoid({Input({4}), Dense(1, {.activation = "sigmoid"})});
  sigmoid.compile(binary);
  const test::Warnings heard;
  sigmoid.fit(at::rand({8, 4}), at::ones({8, 1}), {.verbose = 0});
  CHECK_THAT(heard.text(), Contains("come from sigmoid"));
}

TEST_CASE("a large weight that no rule matches and every device keeps is named", "[first_step]") {
  // Kernels of (4, 8) and (8, 3) have 128 and 96 bytes.
  const auto heard_of = [](int64_t devices, int64_t bound, const std::string& match,
                           const LayoutSpec& spec) {
    LayoutMap layouts(create_mesh({{"batch", 1}, {"model", devices}}, virtual_cpus(devices)),
                      {.warn_of_replicated_bytes = bound});
    if (!match.empty()) layouts[match] = spec;
    const Sequential model({Input({4}), Dense(8, {.name = "hidden"}), Dense(3, {.name = "out"})});
    CompileOptions how{.optimizer = "adam", .loss = crossentropy};
    how.layouts = layouts;
    return warnings_of(model, how, 2);
  };
  const LayoutSpec columns = {unsharded, "model"}, rows = {"model", unsharded},
                   full = {unsharded, unsharded};
  const std::string end =
      ": add a rule to the layout map, or set its option warn_of_replicated_bytes\n";
  for (const int64_t devices : {2, 4}) {
    CAPTURE(devices);
    CHECK(heard_of(devices, 100, "out/kernel", rows) ==
          "Warning: each device keeps a full copy of hidden/kernel (128 B)" + end);
    CHECK(heard_of(devices, 128, "out/kernel", rows) ==
          "Warning: each device keeps a full copy of hidden/kernel (128 B)" + end);
    // The bias of a sharded kernel follows it.
    CHECK(heard_of(devices, 16, "hidden/kernel", columns) ==
          "Warning: each device keeps a full copy of out/kernel (96 B)" + end);
    CHECK(heard_of(devices, 64, ".*/kernel", full).empty());
    CHECK(heard_of(devices, 129, "out/kernel", rows).empty());
    CHECK(heard_of(devices, 0, "out/kernel", rows).empty());
    CHECK(heard_of(devices, 1, "", {}).empty());
  }
  CHECK(heard_of(1, 1, "out/kernel", rows).empty());
}

TEST_CASE("a fit that trains nothing warns once", "[first_step]") {
  const std::string line =
      "Warning: the model does not have any trainable weights: training changes none of them. Call "
      "set_trainable(true) for the layers to be trained\n";
  for (const int64_t devices : {1, 2, 4}) {
    const Sequential model({Input({4}), Dense(6), Dense(3)});
    CHECK(warnings_of(model, options(devices)).empty());
    const auto fitted = [&](bool trainable) {
      for (const auto& layer : model->sublayers()) layer->set_trainable(trainable);
      const test::Warnings heard;
      model.fit(data(), {.epochs = 4, .verbose = 0});
      model.train_on_batch(data());
      return heard.text();
    };
    CHECK(fitted(false) == line);
    CHECK(fitted(true).empty());
    CHECK(fitted(false) == line);
  }
}

TEST_CASE("metrics that take logits for probabilities are named once", "[first_step]") {
  const Examples rows = {.x = {at::rand({40, 4})},
                         .y = {at::arange(40).remainder(2).view({40, 1})}};
  for (const int64_t devices : {1, 2, 4}) {
    const auto heard_of = [&](const LossHandle& loss, const MetricsChoice& metrics, int64_t units,
                              bool fits) {
      const Sequential model({Input({4}), Dense(units)});
      model.compile({.optimizer = "adam",
                     .loss = loss,
                     .metrics = metrics,
                     .mesh = create_mesh({{"batch", devices}})});
      const test::Warnings heard;
      if (fits) {
        model.fit(rows, {.epochs = 2, .verbose = 0, .validation_data = rows});
      } else {
        model.evaluate(rows, {.verbose = 0});
      }
      return heard.text();
    };
    const LossHandle binary = BinaryCrossentropy({.from_logits = true});
    const std::string text =
        heard_of(binary, {"accuracy", Precision(), Recall(), AUC(), "mae"}, 1, true);
    CHECK_THAT(text, Contains("Warning: the loss is from logits, but "));
    for (const char* metric : {"accuracy", "precision", "recall", "auc"}) {
      CHECK_THAT(text, Contains(metric));
    }
    CHECK_THAT(text, !Contains("mae") && Contains(" take its outputs as probabilities: "));
    CHECK(std::count(text.begin(), text.end(), '\n') == 1);
    CHECK_THAT(heard_of(BinaryFocalCrossentropy({.from_logits = true}), {BinaryIoU()}, 1, false),
               Contains("binary_io_u takes its outputs as probabilities"));
    CHECK_THAT(heard_of(crossentropy, {"accuracy", "sparse_categorical_crossentropy"}, 2, true),
               Contains("but sparse_categorical_crossentropy takes its outputs"));
    // Right with logits, or without them.
    CHECK(heard_of(binary, {AUC({.from_logits = true}), Precision({.thresholds = {0.0}})}, 1, true)
              .empty());
    CHECK(heard_of("binary_crossentropy", {"accuracy", AUC()}, 1, true).empty());
    CHECK(heard_of(crossentropy, {"accuracy"}, 2, true).empty());
  }
}

TEST_CASE("a warning is printed once for a softmax of one output", "[first_step]") {
  const std::string end =
      " over an axis of extent 1 of (32, 1) gives the same number for every input: for a single "
      "output use sigmoid\n";
  for (const int64_t devices : {1, 2, 4}) {
    const auto heard_of = [&](const LayerHandle& last, int64_t units, int64_t outputs = 1) {
      const Examples rows = {.x = {at::rand({40, 4})}, .y = {at::ones({40, outputs})}};
      const Sequential model({Input({4}), Dense(units), last});
      model.compile(
          {.optimizer = "adam", .loss = "mse", .mesh = create_mesh({{"batch", devices}})});
      const test::Warnings heard;
      model.fit(rows, {.epochs = 3, .verbose = 0});
      return heard.text();
    };
    CHECK(heard_of(Dense(1, {.activation = "softmax"}), 4) == "Warning: softmax" + end);
    CHECK(heard_of(Activation("log_softmax"), 1) == "Warning: log_softmax" + end);
    CHECK(heard_of(Softmax({.name = "last"}), 1) == "Warning: Softmax last" + end);
    CHECK(heard_of(Dense(1, {.activation = "sigmoid"}), 4).empty());
    CHECK(heard_of(Softmax(), 2, 2).empty());
  }
}

}  // namespace first_step_test
