// Model::quantize(): which layers it changes, predictions on meshes, recorded steps, files, errors.
#include <filesystem>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"

namespace quantize_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

ModelHandle small_model() {
  return Sequential({Input({6}), Dense(8, {.activation = "relu", .name = "hidden"}),
                     Dense(4, {.name = "logits"})});
}

/// Words, attention over them, and a nested model.
ModelHandle attention_model() {
  const SymbolicTensor ids = Input({5}, {.dtype = "int32"});
  const SymbolicTensor words = Embedding(7, 6, {.name = "words"})(ids);
  const SymbolicTensor seen = MultiHeadAttention(2, 4, {.name = "seen"})({words, words});
  const Sequential head({Flatten(), Dense(3, {.name = "inner"})}, {.name = "head"});
  return Functional({ids}, {head(LayerNormalization({.name = "norm"})(seen))});
}

std::vector<std::string> quantized_paths(const Layer& layer) {
  std::vector<std::string> paths;
  for (const auto& inner : layer.sublayers()) {
    if (inner->is_quantized()) paths.push_back(inner->path());
    const std::vector<std::string> below = quantized_paths(*inner);
    paths.insert(paths.end(), below.begin(), below.end());
  }
  return paths;
}

at::Tensor rows(int64_t n, int64_t features) {
  return at::sin(at::arange(n * features, at::kFloat).mul(1.7)).view({n, features});
}

}  // namespace

TEST_CASE("quantize reaches the layers inside, and leaves others as they are") {
  const ModelHandle model = attention_model();
  const at::Tensor ids = at::arange(20, at::kInt).remainder(7).view({4, 5});
  const at::Tensor before = model.predict(ids);
  model.quantize("int8");
  CHECK(quantized_paths(model.model()) ==
        std::vector<std::string>{"words", "seen/query", "seen/key", "seen/value",
                                 "seen/attention_output", "head/inner"});
  const at::Tensor after = model.predict(ids);
  CHECK_FALSE(at::equal(after, before));
  CHECK(test::difference(after, before, 0, 0.05) == "");
}

TEST_CASE("predictions of int8 kernels are those of one device, bit for bit, in every layout") {
  const at::Tensor x = rows(8, 6);
  const ModelHandle alone = small_model();
  const std::vector<at::Tensor> weights = alone.get_weights();
  alone.quantize("int8");
  const at::Tensor expected = alone.predict(x);
  const std::vector<LayoutSpec> kernels = {{unsharded, "model"},
                                           {"model", unsharded},
                                           {"batch", "model"},
                                           {unsharded, {"batch", "model"}},
                                           {{"batch", "model"}, unsharded}};
  for (const LayoutSpec& hidden : kernels) {
    for (const LayoutSpec& logits : kernels) {
      CAPTURE(to_string(hidden), to_string(logits));
      LayoutMap layouts(create_mesh({{"batch", 2}, {"model", 2}}, virtual_cpus(4)));
      layouts["hidden/kernel"] = hidden;
      layouts["logits/kernel"] = logits;
      const ModelHandle model = small_model();
      model.set_weights(weights);
      model.compile({.layouts = layouts});
      model.quantize("int8");
      CHECK(model.get_layer("logits")->own_weights()[0].layout() == Layout(logits, layouts.mesh()));
      CHECK(at::equal(model.predict(x, {.batch_size = 8}), expected));
      // A rule for a scale is one for a weight that the floating model lacks.
      layouts["logits/kernel_scale"] = {"batch"};
      model.compile({.layouts = layouts});
      CHECK(model.get_layer("logits")->own_weights()[2].layout() ==
            Layout(LayoutSpec{"batch"}, layouts.mesh()));
      CHECK(at::equal(model.predict(x, {.batch_size = 8}), expected));
    }
  }
}

TEST_CASE("sums too large for float32 are added up exactly over shards") {
  const at::Tensor x = rows(4, 20000).abs();
  const ModelHandle alone = Sequential({Input({20000}), Dense(3, {.name = "hidden"})});
  alone.set_weights({rows(20000, 3).abs(), at::zeros({3})});
  LayoutMap layouts(create_mesh({{"batch", 2}, {"model", 2}}, virtual_cpus(4)));
  layouts["hidden/kernel"] = {"model", unsharded};
  const ModelHandle sharded = Sequential({Input({20000}), Dense(3, {.name = "hidden"})});
  sharded.set_weights(alone.get_weights());
  sharded.compile({.layouts = layouts});
  alone.quantize("int8");
  sharded.quantize("int8");
  CHECK(at::equal(sharded.predict(x), alone.predict(x)));
}

TEST_CASE("steps recorded before quantize are not replayed after it") {
  const at::Tensor x = rows(4, 6);
  const ModelHandle model = small_model();
  model.compile({.optimizer = SGD(0.1), .loss = MeanSquaredError()});
  for (int step = 0; step < 4; ++step) model.predict(x);
  CHECK(model.predict_step_records().replayed > 0);
  model.quantize("int8");
  const at::Tensor expected = model(x).full();
  for (int step = 0; step < 4; ++step) CHECK(at::equal(model.predict(x), expected));
}

TEST_CASE("training a quantized model changes its biases alone") {
  const at::Tensor x = rows(16, 6), y = rows(16, 4);
  const ModelHandle model = small_model();
  model.quantize("int8");
  const std::vector<at::Tensor> before = model.get_weights();
  model.compile({.optimizer = SGD(0.1), .loss = MeanSquaredError()});
  const History history = model.fit(x, y, {.batch_size = 16, .epochs = 5, .verbose = 0});
  CHECK(history.at("loss").back() < history.at("loss").front());
  const std::vector<at::Tensor> after = model.get_weights();
  const std::vector<Variable> weights = model.weights();
  for (size_t w = 0; w < weights.size(); ++w) {
    CAPTURE(weights[w].path());
    CHECK(at::equal(after[w], before[w]) == !weights[w].trainable());
  }
}

TEST_CASE("files of a quantized model give its predictions") {
  const at::Tensor x = rows(5, 6);
  const ModelHandle model = small_model();
  model.quantize("int8");
  const at::Tensor expected = model.predict(x);
  const test::TempFolder folder;
  const std::string keras = (folder / "model.keras").string();
  model.save(keras);
  CHECK(at::equal(load_model(keras).predict(x), expected));
  const LayoutMap layouts = [] {
    LayoutMap map(create_mesh({{"batch", 2}, {"model", 2}}, virtual_cpus(4)));
    map["hidden/kernel"] = {"batch", "model"};
    return map;
  }();
  CHECK(at::equal(load_model(keras, {.layouts = layouts}).predict(x), expected));
  for (const char* const name : {"a.weights.h5", "a.safetensors"}) {
    CAPTURE(name);
    model.save_weights((folder / name).string());
    const ModelHandle other = small_model();
    CHECK_THROWS_AS(other.load_weights((folder / name).string()), Error);
    other.quantize("int8");
    other.load_weights((folder / name).string());
    CHECK(at::equal(other.predict(x), expected));
  }
}

TEST_CASE("the weights of quantized attention are saved, but not its configuration") {
  const ModelHandle model = attention_model();
  const at::Tensor ids = at::arange(20, at::kInt).remainder(7).view({4, 5});
  model.quantize("int8");
  const test::TempFolder folder;
  CHECK_THROWS_WITH(model.save((folder / "model.keras").string()),
                    Contains("[MultiHeadAttention seen]") && Contains("save_weights()"));
  model.save_weights((folder / "a.weights.h5").string());
  const ModelHandle other = attention_model();
  other.quantize("int8");
  other.load_weights((folder / "a.weights.h5").string());
  CHECK(at::equal(other.predict(ids), model.predict(ids)));
}

TEST_CASE("quantize refuses other modes, unbuilt models and a second time, and changes nothing") {
  const ModelHandle model = small_model();
  CHECK_THROWS_WITH(model.quantize("float8"), Contains("\"int8\"") && Contains("\"float8\""));
  model.get_layer("logits")->quantize("int8");
  CHECK_THROWS_WITH(model.quantize("int8"), Contains("Dense logits") && Contains("once"));
  CHECK_FALSE(model.get_layer("hidden")->is_quantized());
  const Sequential unbuilt({Dense(3)});
  CHECK_THROWS_WITH(unbuilt.quantize("int8"), Contains("[quantize]") && Contains("build()"));
  const ModelHandle mixed =
      Sequential({Input({6}), Dense(8, {.name = "hidden"}), Dense(4, {.dtype = "mixed_float16"})});
  CHECK_THROWS_WITH(mixed.quantize("int8"), Contains("float16"));
  CHECK_FALSE(mixed.get_layer("hidden")->is_quantized());
}

}  // namespace quantize_test
