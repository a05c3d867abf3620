#include <tessera/layers/core/reversible_embedding.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/keras_layers.hpp"
#include "tests/support/layer_check.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace reversible_embedding_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

/// Returns the layer of a golden, built on a mesh with Keras' weights in these layouts.
ReversibleEmbedding layer_of(const Json& golden, const std::vector<Layout>& layouts) {
  const Json& config = golden.at("layer").at("config");
  ReversibleEmbeddingOptions options;
  options.tie_weights = config.at("tie_weights");
  if (!config.at("embeddings_regularizer").is_null()) options.embeddings_regularizer = "l2";
  if (config.at("reverse_dtype").is_string()) options.reverse_dtype = config.at("reverse_dtype");
  if (config.at("logit_soft_cap").is_number()) options.logit_soft_cap = config.at("logit_soft_cap");
  options.dtype = config.at("dtype").at("config").at("name");
  const ReversibleEmbedding layer(config.at("input_dim"), config.at("output_dim"), options);
  layer->build({{-1}});
  std::vector<Variable> weights = layer->weights();
  REQUIRE(weights.size() == golden.at("weights").size());
  for (size_t w = 0; w < weights.size(); ++w) {
    weights[w].place({weights[w].shape(), layouts[w]});
    weights[w].assign(
        pack(test::golden_tensor(golden.at("weights")[w], weights[w].dtype()), layouts[w]));
  }
  return layer;
}

/// Compares reverse() and its gradients with Keras'.
void check_reverse(const Json& golden, const ReversibleEmbedding& layer, const DTensor& vectors) {
  GradientTape tape;
  tape.watch(vectors);
  std::vector<DTensor> sources = {vectors};
  for (const Variable& weight : layer->weights()) sources.push_back(weight.value());
  const DTensor y = layer.reverse(vectors);
  CHECK(test::unlike(y.full(), golden.at("output")) == "");
  const at::Tensor factors = test::upstream(at::empty(y.shape(), y.dtype()));
  DTensor loss = ops::sum(y * pack(factors, Layout::replicated(y.mesh(), y.rank())));
  for (const DTensor& penalty : layer->losses()) loss = loss + penalty;
  const std::vector<DTensor> gradients = tape.gradient(loss, sources);
  REQUIRE(gradients.size() == golden.at("gradients").size());
  // A tied table in float64 gets gradients that were computed in float32.
  const bool rounded = y.dtype() != vectors.dtype();
  for (size_t g = 0; g < gradients.size(); ++g) {
    CAPTURE(g);
    if (!gradients[g].defined()) {
      CHECK(
          test::golden_tensor(golden.at("gradients")[g], at::kDouble).abs().max().item<double>() ==
          0);
      continue;
    }
    const at::Tensor value = gradients[g].full();
    CHECK(test::unlike(rounded ? value.to(at::kFloat) : value, golden.at("gradients")[g]) == "");
  }
}

}  // namespace

TEST_CASE("ReversibleEmbedding matches Keras on any mesh") {
  test::check_layers(test::golden_part("keras_cells.json", "ReversibleEmbedding"));
}

TEST_CASE("reverse() of ReversibleEmbedding matches Keras on any mesh") {
  for (const Json& golden : test::golden_part("keras_cells.json", "reverse")) {
    CAPTURE(golden.at("layer").dump());
    const at::Tensor full = test::input_tensor(golden.at("inputs")[0]);
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1}, {2}, {2, 2}}) {
      const Mesh mesh = test::virtual_mesh(sizes);
      const DefaultMeshScope scope(mesh);
      std::vector<std::vector<Layout>> lists = {test::all_layouts(mesh, full.dim())};
      for (size_t w = 0; w < golden.at("weights").size(); ++w) {
        lists.push_back(test::all_layouts(mesh, 2));
      }
      for (const std::vector<Layout>& layouts : test::choices(lists, 12, mesh.hash())) {
        CAPTURE(test::short_name(mesh), test::short_name(layouts));
        check_reverse(golden, layer_of(golden, {layouts.begin() + 1, layouts.end()}),
                      pack(full, layouts[0]));
      }
    }
  }
}

TEST_CASE("a layer of reversed() computes reverse() with the embedding's weights") {
  for (const ReversibleEmbeddingOptions& options :
       {ReversibleEmbeddingOptions{}, {.tie_weights = false}, {.logit_soft_cap = 0.01}}) {
    const ReversibleEmbedding words(6, 4, options);
    const LayerHandle head = words.reversed("logits");
    const DTensor x = ones({2, 3, 4});
    const DTensor y = head(x);
    CHECK(at::equal(y.full(), words.reverse(x).full()));
    CHECK(head->weights().empty());
    CHECK(head->output_shape({{-1, 3, 4}}) == Shape{-1, 3, 6});
    CHECK_THROWS_WITH(head->output_shape({{-1, 3}}), Contains("output_dim 4"));
    // Both directions train one table.
    GradientTape tape;
    const DTensor loss = ops::sum(head(words(ones({2, 3}))));
    const DTensor table = words->weights().back().value();
    CHECK(tape.gradient(loss, {table})[0].full().abs().max().item<double>() > 0);
  }
}

TEST_CASE("a tied head is saved as a call of its embedding, as Keras does") {
  const auto tied = [](const ReversibleEmbeddingOptions& options) {
    const Input ids({3}, {.dtype = "int32"});
    const ReversibleEmbedding words(6, 4, options);
    const LayerHandle head = words.reversed("logits");
    const SymbolicTensor x = Dense(4, {.name = "dense"})(words(ids));
    // The second call of the head is the third of the embedding.
    return Functional({ids}, {Add()({head(x), head(words(ids))})});
  };
  const at::Tensor ids = at::tensor({0, 5, 2, 3, 3, 1}, at::kInt).view({2, 3});
  for (const ReversibleEmbeddingOptions& options :
       {ReversibleEmbeddingOptions{.name = "words"},
        {.tie_weights = false, .logit_soft_cap = 0.5, .name = "words"}}) {
    const Functional model = tied(options);
    const Json config = parse_json(model.to_json(), "model");
    const Json& layers = config.at("config").at("layers");
    REQUIRE(layers.size() == 4);
    const Json& calls = layers[1].at("inbound_nodes");
    CHECK(layers[1].at("name") == "words");
    REQUIRE(calls.size() == 4);
    int reversed = 0;
    for (const Json& call : calls) reversed += call.at("kwargs").value("reverse", false);
    CHECK(reversed == 2);
    const ModelHandle copy = clone_model(model);
    copy->set_weights(model->get_weights());
    CHECK(copy.to_json() == model.to_json());
    CHECK(copy.predict(ids).equal(model.predict(ids)));
    CHECK(copy->weights().size() == model->weights().size());
    const test::TempFolder folder;
    model.save(folder / "m.keras");
    CHECK(load_model(folder / "m.keras").predict(ids).equal(model.predict(ids)));
  }
  // Without its embedding nothing can describe it.
  const ReversibleEmbedding words(6, 4);
  const Sequential head({Input({4}), words.reversed()});
  const test::TempFolder folder;
  CHECK_THAT(test::error_line([&] { head.save(folder / "m.keras"); }),
             Contains("in the same Functional model as its embedding"));
}

TEST_CASE("ReversibleEmbedding under every layout") {
  test::run_golden_layer_test({.make = [] { return ReversibleEmbedding(6, 3); },
                               .input = {{4, 5}, at::kLong, 0, 5},
                               .output = {4, 5, 3},
                               .weights = {{"embeddings", {6, 3}}}});
}

TEST_CASE("ReversibleEmbedding refuses invalid arguments by name") {
  CHECK_THAT(test::error_line([] { ReversibleEmbedding(0, 4, {.name = "e"}); }),
             Contains("[ReversibleEmbedding e]") && Contains("Received: 0 and 4"));
  CHECK_THAT(test::error_line([] { ReversibleEmbedding(3, 4, {.logit_soft_cap = 0.0}); }),
             Contains("logit_soft_cap"));
  CHECK_THAT(test::error_line([] { ReversibleEmbedding(3, 4, {.reverse_dtype = "float3"}); }),
             Contains("float32"));
  const ReversibleEmbedding layer(3, 4, {.name = "e"});
  CHECK_THAT(test::error_line([&] {
               layer.reverse(ones({2, 3}));
             }),
             Contains("[ReversibleEmbedding e]") && Contains("output_dim 4") && Contains("(2, 3)"));
}

}  // namespace reversible_embedding_test
