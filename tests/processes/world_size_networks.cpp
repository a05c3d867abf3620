#include "tests/processes/world_size_networks.hpp"

#include <cstdlib>
#include <filesystem>
#include <span>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/checksum.hpp>

#include "apps/gpt/gpt_model.hpp"
#include "apps/imdb/models.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace tessera::test {

using namespace detail;

namespace {

Dense dense(int64_t units, const char* name, const char* activation = "linear") {
  return Dense(units, {.activation = activation, .name = name});
}

/// Random rows of `shape`, with labels below `classes`.
TensorDataset random_rows(int64_t rows, Shape shape, int64_t classes, uint64_t seed) {
  shape.insert(shape.begin(), rows);
  return TensorDataset({.x = {random_values({shape, at::kFloat}, seed)},
                        .y = {random_values({{rows}, at::kLong, 0, double(classes)}, seed + 1)}});
}

WorldSizeNetwork of_rows(const ModelHandle& model, WorldSizeRows rows, const Shape& shape) {
  return {model, random_rows(rows.training, shape, 5, 10),
          random_rows(rows.validation, shape, 5, 20)};
}

/// Returns how many threads a process was started with.
int64_t threads_of_process() {
  const char* const threads = std::getenv("OMP_NUM_THREADS");
  return threads ? std::strtoll(threads, nullptr, 10) : 1;
}

/// Adds to each row its sum, in parts that are summed one by one, as a kernel does that has a
/// thread for each part.
at::Tensor with_row_sums(const at::Tensor& x, int64_t parts) {
  at::Tensor sum = at::zeros({x.size(0), 1}, x.options());
  for (int64_t part = 0; part < parts; ++part) {
    const Interval columns = shard_interval(x.size(1), parts, part);
    at::Tensor partial = at::zeros_like(sum);
    for (int64_t c = columns.lo; c < columns.hi; ++c) partial += x.narrow(1, c, 1);
    sum += partial;
  }
  return x + sum;
}

Sequential perceptron() {
  return Sequential(
      {dense(70, "hidden", "relu"), Dropout(0.3, {.name = "dropout"}), dense(5, "logits")});
}

Sequential perceptron_behind(const ops::CustomOp& kernel) {
  return Sequential({Lambda([&](const DTensor& x) { return kernel({x}); },
                            {.output_shape = Shape{300}, .can_be_replayed = true}),
                     dense(70, "hidden", "relu"), dense(5, "logits")});
}

Sequential convolution() {
  return Sequential({Conv2D(6, 3, {.padding = "same", .name = "conv"}),
                     BatchNormalization({.name = "norm"}), Activation("relu"), MaxPooling2D(2),
                     Flatten(), dense(5, "logits")});
}

/// Texts of words that become rarer with their number, and a class for each.
TextDataHandle texts(int64_t rows, int64_t seed) {
  std::vector<std::string> all;
  for (int64_t row = 0; row < rows; ++row) {
    std::string text;
    for (int64_t word = 0; word < 5 + row % 9; ++word) {
      const int64_t draw = (row * 31 + word * word * 17 + word * row + seed) % 97;
      text += str("w", draw * draw / 97, " ");
    }
    all.push_back(text);
  }
  return {all, at::remainder(at::arange(rows) * 5 + seed, 3).gt(0).to(at::kLong)};
}

WorldSizeNetwork of_texts(const ModelHandle& model, const TextVectorization& vectorize,
                          WorldSizeRows rows) {
  vectorize.adapt(texts(60, 1));
  return {model, vectorize.dataset(texts(rows.training, 1)),
          vectorize.dataset(texts(rows.validation, 2))};
}

Sequential embedded_words(int64_t length) {
  return Sequential({Input({length}, {.dtype = "int64"}), Embedding(61, 12, {.name = "words"}),
                     Dropout(0.2, {.name = "dropout"}),
                     Conv1D(8, 3, {.activation = "relu", .name = "window"}), GlobalMaxPooling1D(),
                     dense(2, "logits")});
}

/// Rows of token ids, with the next ones as labels.
TensorDataset tokens(int64_t rows, const gpt::ModelSize& size, int64_t seed) {
  const at::Tensor row = at::arange(rows, at::kLong).unsqueeze(1);
  const at::Tensor step = at::arange(size.length + 1, at::kLong);
  const at::Tensor all =
      at::remainder(row * 31 + step * step * 7 + step * row + seed, size.vocabulary);
  return TensorDataset({.x = {all.narrow(1, 0, size.length).contiguous()},
                        .y = {all.narrow(1, 1, size.length).contiguous()}});
}

WorldSizeNetwork transformer(bool experts, WorldSizeRows rows) {
  const gpt::ModelSize size = {.heads = 4,
                               .head_dim = 5,
                               .width = 18,
                               .hidden = 24,
                               .length = 9,
                               .vocabulary = 61,
                               .dropout = 0.1,
                               .experts = experts ? 4 : 0};
  return {gpt::gpt_model(size), tokens(rows.training, size, 3), tokens(rows.validation, size, 5)};
}

/// Rules of mlp, cnn and text for a mesh with "model".
void add_tensor_rules(LayoutMap& layouts) {
  for (LayoutRule rule : std::vector<LayoutRule>{
           {.match = "hidden/kernel", .layout = {unsharded, "model"}},
           {.match = "conv/kernel", .layout = {unsharded, unsharded, unsharded, "model"}},
           {.match = "words/embeddings", .layout = {"model", unsharded}},
           {.match = "logits/kernel", .layout = {"model", unsharded}}}) {
    rule.optional = true;
    layouts.add(std::move(rule));
  }
}

}  // namespace

WorldSizeNetwork world_size_network(const std::string& name, bool experts, WorldSizeRows rows) {
  static const ops::CustomOp parts(
      "sum_in_parts", {.rule = "b !n -> b !n", .forward = [](std::span<const at::Tensor> x) {
                         return with_row_sums(x[0], at::get_num_threads());
                       }});
  static const ops::CustomOp fixed_parts(
      "sum_in_fixed_parts", {.rule = "b !n -> b !n", .forward = [](std::span<const at::Tensor> x) {
                               return with_row_sums(x[0], threads_of_process());
                             }});
  if (name == "mlp") return of_rows(perceptron(), rows, {300});
  if (name == "parts") return of_rows(perceptron_behind(parts), rows, {300});
  if (name == "fixed") return of_rows(perceptron_behind(fixed_parts), rows, {300});
  if (name == "cnn") return of_rows(convolution(), rows, {9, 8, 3});
  if (name == "imdb") {
    return of_texts(imdb::sentiment_model(), TextVectorization({.output_mode = "tf_idf"}), rows);
  }
  if (name == "text") {
    constexpr int64_t length = 10;
    return of_texts(embedded_words(length),
                    TextVectorization({.max_tokens = 61, .output_sequence_length = length}), rows);
  }
  if (name == "gpt") return transformer(experts, rows);
  throw ConfigError("network", "mlp, cnn, imdb, text, gpt, parts or fixed", name, "name one");
}

LayoutMap world_size_layouts(const std::string& name, const Mesh& mesh,
                             const WorldSizeNetwork& network) {
  if (const size_t slash = name.find('/'); slash != std::string::npos) {
    const std::filesystem::path apps =
        std::filesystem::path(TESSERA_TEST_DIR).parent_path() / "apps";
    return make_layout_map(read_layout_file(apps / name.substr(0, slash) / "layouts" /
                                            (name.substr(slash + 1) + ".json")),
                           mesh);
  }
  LayoutMap layouts(mesh);
  if (name == "fsdp" || name == "hsdp") layouts.fully_shard("batch");
  if (name == "hsdp") {
    LayoutSpec x(network.data.input_shapes()[0].size() + 1, unsharded);
    x[0] = {"replica", "batch"};
    layouts.set_data("x", x);
  }
  if (name == "spatial") layouts.set_data("x", {"batch", "height", unsharded, unsharded});
  if (name == "zero2") layouts.fully_shard({.over = "batch", .reshard_after_forward = false});
  if (name == "tensor") add_tensor_rules(layouts);
  return layouts;
}

std::string digest_in_full(const ModelHandle& model, const History& history) {
  Xxh128 sum;
  std::vector<Variable> all = model.weights();
  const std::vector<Variable> slots = model->optimizer()->variables();
  all.insert(all.end(), slots.begin(), slots.end());
  for (const Variable& variable : all) {
    const at::Tensor value = variable.value().full().contiguous();
    sum.update({static_cast<const std::byte*>(value.const_data_ptr()), value.nbytes()});
  }
  sum.update(std::as_bytes(std::span(history.steps)));
  for (const auto& [name, course] : history.history) {
    sum.update(std::as_bytes(std::span(course)));
  }
  return sum.digits();
}

}  // namespace tessera::test
