// Model::enable_lora(): which layers it changes, training on meshes, recorded steps, files, errors.
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"

namespace lora_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

ModelHandle small_model() {
  return Sequential({Input({6}), Dense(8, {.activation = "relu", .name = "hidden"}),
                     Dense(4, {.name = "logits"})});
}

/// Words, attention over them, batch normalization and a nested model.
ModelHandle attention_model() {
  const SymbolicTensor ids = Input({5}, {.dtype = "int32"});
  const SymbolicTensor words = Embedding(7, 6, {.name = "words"})(ids);
  const SymbolicTensor seen = MultiHeadAttention(2, 4, {.name = "seen"})({words, words});
  const Sequential head({Flatten(), Dense(3, {.name = "inner"})}, {.name = "head"});
  return Functional({ids}, {head(BatchNormalization({.name = "norm"})(seen))});
}

at::Tensor rows(int64_t n, int64_t features) {
  return at::sin(at::arange(n * features, at::kFloat).mul(1.7)).view({n, features});
}

at::Tensor some_ids() { return at::arange(20, at::kInt).remainder(7).view({4, 5}); }

std::vector<std::string> trained(const ModelHandle& model) {
  std::vector<std::string> paths;
  for (const Variable& weight : model.trainable_weights()) paths.push_back(weight.path());
  return paths;
}

Layout layout_of(const ModelHandle& model, const std::string& path) {
  for (const Variable& weight : model.weights()) {
    if (weight.path() == path) return weight.layout();
  }
  FAIL("no weight " << path);
  return {};
}

/// Sets B of every adapter, so that the adapter changes outputs.
void fill_adapters(const ModelHandle& model) {
  for (Variable weight : model.weights()) {
    if (weight.path().find("/lora_") == std::string::npos || !weight.path().ends_with("_b"))
      continue;
    const at::Tensor values = rows(1, numel(weight.shape())).view(weight.shape()).mul(0.5);
    weight.assign(pack(values, Layout::replicated(weight.layout().mesh(), values.dim())));
  }
}

}  // namespace

TEST_CASE("enable_lora of a model reaches the layers that match, and freezes all other weights") {
  const ModelHandle model = attention_model();
  const at::Tensor before = model.predict(some_ids());
  model.enable_lora("seen/(query|value)|head/.*", 2, {.alpha = 4});
  CHECK(trained(model) ==
        std::vector<std::string>{"seen/query/lora_kernel_a", "seen/query/lora_kernel_b",
                                 "seen/value/lora_kernel_a", "seen/value/lora_kernel_b",
                                 "head/inner/lora_kernel_a", "head/inner/lora_kernel_b"});
  CHECK_FALSE(model.get_layer("norm")->trainable());
  CHECK(test::difference(model.predict(some_ids()), before, 1e-5, 1e-5) == "");
  fill_adapters(model);
  const at::Tensor adapted = model.predict(some_ids());
  CHECK(test::difference(adapted, before, 1e-3, 1e-3) != "");
  model.merge_lora();
  CHECK(test::difference(model.predict(some_ids()), adapted, 1e-5, 1e-5) == "");
}

TEST_CASE("training changes the factors alone, with the same losses in every layout") {
  const at::Tensor x = rows(16, 6), y = rows(16, 4);
  std::vector<double> expected;
  const ModelHandle first = small_model();
  const std::vector<at::Tensor> weights = first.get_weights();
  const std::vector<LayoutSpec> kernels = {
      {unsharded, unsharded}, {unsharded, "model"}, {"model", unsharded}, {"batch", "model"}};
  for (const bool int8 : {false, true}) {
    expected.clear();
    for (const LayoutSpec& kernel : kernels) {
      CAPTURE(to_string(kernel), int8);
      LayoutMap layouts(create_mesh({{"batch", 2}, {"model", 2}}, virtual_cpus(4)));
      layouts["hidden/kernel"] = kernel;
      layouts["logits/kernel"] = kernel;
      const ModelHandle model = small_model();
      model.set_weights(weights);
      if (int8) model.quantize("int8");
      model.enable_lora(".*", 2, {.alpha = 4});
      const std::vector<at::Tensor> before = model.get_weights();
      model.compile({.optimizer = SGD(0.1), .loss = MeanSquaredError(), .layouts = layouts});
      // Factors are sharded as the axes that they have of the kernel.
      CHECK(layout_of(model, "hidden/lora_kernel_a") ==
            Layout(LayoutSpec{kernel[0], unsharded}, layouts.mesh()));
      CHECK(layout_of(model, "hidden/lora_kernel_b") ==
            Layout(LayoutSpec{unsharded, kernel[1]}, layouts.mesh()));
      const History history = model.fit(x, y, {.batch_size = 8, .epochs = 5, .verbose = 0});
      CHECK(history.at("loss").back() < history.at("loss").front());
      CHECK(model.step_records().replayed > 0);
      if (expected.empty()) expected = history.at("loss");
      for (size_t e = 0; e < expected.size(); ++e) {
        CHECK(history.at("loss")[e] == Approx(expected[e]).epsilon(1e-5));
      }
      const std::vector<at::Tensor> after = model.get_weights();
      const std::vector<Variable> variables = model.weights();
      for (size_t w = 0; w < variables.size(); ++w) {
        CAPTURE(variables[w].path());
        CHECK(at::equal(after[w], before[w]) == !variables[w].trainable());
      }
    }
  }
}

TEST_CASE("rules of the layout map place factors by their paths") {
  LayoutMap layouts(create_mesh({{"batch", 2}, {"model", 2}}, virtual_cpus(4)));
  layouts["hidden/kernel"] = {unsharded, "model"};
  layouts["hidden/lora_kernel_a"] = {"batch", unsharded};
  const ModelHandle model = small_model();
  model.enable_lora("hidden", 2);
  model.compile({.layouts = layouts});
  CHECK(layout_of(model, "hidden/lora_kernel_a") ==
        Layout(LayoutSpec{"batch", unsharded}, layouts.mesh()));
  CHECK(layout_of(model, "hidden/lora_kernel_b") ==
        Layout(LayoutSpec{unsharded, "model"}, layouts.mesh()));
  // An adapter of a model whose weights are placed is placed at once.
  model.merge_lora();
  model.get_layer("hidden")->enable_lora(3);
  CHECK(layout_of(model, "hidden/lora_kernel_b") ==
        Layout(LayoutSpec{unsharded, "model"}, layouts.mesh()));
}

TEST_CASE("steps recorded before enable_lora or merge_lora are not replayed after it") {
  const at::Tensor x = rows(4, 6);
  const ModelHandle model = small_model();
  model.compile({.optimizer = SGD(0.1), .loss = MeanSquaredError()});
  for (int step = 0; step < 4; ++step) model.predict(x);
  CHECK(model.predict_step_records().replayed > 0);
  model.get_layer("hidden")->enable_lora(2, {.b_initializer = "ones"});
  const at::Tensor adapted = model(x).full();
  for (int step = 0; step < 4; ++step) CHECK(at::equal(model.predict(x), adapted));
  model.merge_lora();
  model.get_layer("hidden")->enable_lora(2, {.alpha = 8, .b_initializer = "ones"});
  const at::Tensor twice = model(x).full();
  CHECK_FALSE(at::equal(twice, adapted));
  for (int step = 0; step < 4; ++step) CHECK(at::equal(model.predict(x), twice));
}

TEST_CASE("files of a model with adapters give its predictions") {
  const at::Tensor x = rows(5, 6);
  const ModelHandle model = small_model();
  model.enable_lora("hidden", 2, {.alpha = 3});
  fill_adapters(model);
  const at::Tensor expected = model.predict(x);
  const test::TempFolder folder;
  const std::string keras = (folder / "model.keras").string();
  model.save(keras);
  const ModelHandle loaded = load_model(keras);
  CHECK(loaded.get_layer("hidden")->has_lora());
  CHECK(loaded.get_layer("hidden")->config().at("lora_alpha") == 3);
  CHECK(test::difference(loaded.predict(x), expected, 1e-5, 1e-5) == "");
  // A file of Keras has the product in the kernel.
  const std::string h5 = (folder / "a.weights.h5").string();
  model.save_weights(h5);
  const ModelHandle plain = small_model();
  plain.load_weights(h5);
  CHECK(test::difference(plain.predict(x), expected, 1e-5, 1e-5) == "");
  // A safetensors file has the weights as they are.
  const std::string own = (folder / "a.safetensors").string();
  model.save_weights(own);
  const ModelHandle same = small_model();
  same.enable_lora("hidden", 2, {.alpha = 3});
  same.load_weights(own);
  CHECK(at::equal(same.predict(x), expected));
}

TEST_CASE("a loaded adapter goes on training, unlike Keras', whose factors are both 0") {
  const at::Tensor x = rows(16, 6), y = rows(16, 4);
  const test::TempFolder folder;
  const std::string keras = (folder / "model.keras").string();
  const ModelHandle model = small_model();
  model.enable_lora("hidden", 2);
  model.save(keras);
  const ModelHandle loaded = load_model(keras);
  loaded.enable_lora("logits", 2);
  loaded.compile({.optimizer = SGD(0.1), .loss = MeanSquaredError()});
  const std::vector<Variable> before = loaded.get_layer("hidden")->own_weights();
  const at::Tensor b = before.back().value().full().clone();
  loaded.fit(x, y, {.batch_size = 16, .epochs = 2, .verbose = 0});
  CHECK_FALSE(at::equal(before.back().value().full(), b));
}

TEST_CASE("a model with adapters inside attention is saved after merge_lora") {
  const ModelHandle model = attention_model();
  model.enable_lora("seen/query", 2);
  const test::TempFolder folder;
  const std::string keras = (folder / "model.keras").string();
  CHECK_THROWS_WITH(model.save(keras),
                    Contains("[MultiHeadAttention seen]") && Contains("merge_lora() first"));
  fill_adapters(model);
  const at::Tensor expected = model.predict(some_ids());
  model.merge_lora();
  model.save(keras);
  CHECK(test::difference(load_model(keras).predict(some_ids()), expected, 1e-5, 1e-5) == "");
}

TEST_CASE("enable_lora of a model changes nothing unless all can be") {
  const ModelHandle unbuilt = Sequential({Dense(3, {.name = "d"})});
  CHECK_THROWS_WITH(unbuilt.enable_lora(".*", 2), Contains("the model is built"));
  const ModelHandle model = small_model();
  CHECK_THROWS_WITH(model.enable_lora("hiden", 2), Contains("\"hiden\"") && Contains("\"hidden\""));
  CHECK_THROWS_WITH(model.enable_lora("(", 2), Contains("RE2"));
  CHECK_THROWS_WITH(model.enable_lora(".*", 0), Contains("at least 1"));
  CHECK(model.trainable_weights().size() == 4);
  model.enable_lora("logits", 2);
  CHECK_THROWS_WITH(model.enable_lora(".*", 2),
                    Contains("[Dense logits]") && Contains("one adapter"));
  CHECK_FALSE(model.get_layer("hidden")->has_lora());
}

}  // namespace lora_test
