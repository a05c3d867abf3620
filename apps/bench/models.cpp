#include "apps/bench/models.hpp"

#include <ATen/ATen.h>

#include "apps/imdb/layout_texts.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

constexpr int64_t batches = 8;

TensorDataset random_rows(int64_t rows, int64_t width, int64_t classes) {
  const at::Tensor x = stateless_uniform({rows, width}, Seed{1, 2}).full();
  return TensorDataset(x, x.narrow(1, 0, classes).argmax(1));
}

Sequential mlp_of(const std::vector<int64_t>& sizes, const LayoutMap& layouts) {
  const InitializerHandle xavier = GlorotUniform({.seed = Seed{22, 23}});
  std::vector<LayerHandle> layers = {Flatten()};
  for (size_t i = 1; i < sizes.size(); ++i) {
    const char* activation = i + 1 < sizes.size() ? "relu" : "linear";
    layers.push_back(Dense(sizes[i], {.activation = activation, .kernel_initializer = xavier}));
  }
  Sequential model(layers);
  model.compile({.optimizer = Adam(1e-3, {.epsilon_on_corrected_root = true}),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"},
                 .layouts = layouts});
  return model;
}

const char* layouts_text(const std::string& scheme) {
  if (scheme == "data") return imdb::layout_texts::data;
  return scheme == "model" ? imdb::layout_texts::model : imdb::layout_texts::spatial;
}

}  // namespace

TensorDataset mlp_data() {
  return random_rows(batches * mlp_batch_size, mlp_sizes.front(), mlp_sizes.back());
}

Sequential mlp_model(const LayoutMap& layouts) { return mlp_of(mlp_sizes, layouts); }

TensorDataset imdb_data() {
  return random_rows(batches * imdb_batch_size, imdb_sizes.front(), imdb_sizes.back());
}

LayoutMap imdb_layouts(const std::string& scheme) {
  const LayoutFile file = layout_file_from_json(parse_json(layouts_text(scheme), scheme), scheme);
  return make_layout_map(file, create_mesh(*file.mesh, virtual_cpus(8)));
}

Sequential imdb_model(const LayoutMap& layouts) {
  Sequential model(
      {Dense(imdb_sizes[1], {.activation = "relu", .name = "dense1"}),
       BatchNormalization({.epsilon = 1e-5, .center = false, .scale = false, .name = "bn"}),
       Dense(imdb_sizes[2], {.name = "dense2"})});
  model.compile(
      {.optimizer = SGD(1e-2),
       .loss = SparseCategoricalCrossentropy({.from_logits = true, .reduction = Reduction::sum}),
       .metrics = {"accuracy"},
       .layouts = layouts});
  return model;
}

Sequential digits_model() {
  Sequential model({Flatten(), Dense(128, {.activation = "relu"}), Dense(10)});
  model.compile({.optimizer = Adam(1e-3),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"}});
  return model;
}

MnistDataset cnn_data() { return datasets::mnist({.size = 100 * mlp_batch_size}); }

Sequential cnn_model(const LayoutMap& layouts) {
  Sequential model({Reshape({28, 28, 1}), Conv2D(32, 3, {.activation = "relu"}), MaxPooling2D(2),
                    Conv2D(64, 3, {.activation = "relu"}), MaxPooling2D(2), Flatten(), Dropout(0.5),
                    Dense(10)});
  model.compile({.optimizer = Adam(1e-3),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"},
                 .layouts = layouts});
  return model;
}

Sequential large_model(const LayoutMap& layouts) {
  return mlp_of({mlp_sizes.front(), 7200, 7200, mlp_sizes.back()}, layouts);
}

}  // namespace tessera::bench
