#include "apps/bench/step_works.hpp"

#include <algorithm>
#include <limits>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/ops/internal/deferred_logits.hpp>

#include "apps/bench/models.hpp"
#include "apps/bench/networks.hpp"
#include "apps/gpt/gpt_model.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

/// Number of batches of random data, which are repeated.
constexpr int64_t step_batches = 8;
constexpr int64_t step_classes = 10;

/// A GPT whose blocks are computed again, or divided into stages.
const gpt::ModelSize deep_gpt{.blocks = 8,
                              .heads = 3,
                              .head_dim = 64,
                              .width = 192,
                              .hidden = 768,
                              .length = 128,
                              .vocabulary = 2000,
                              .pre_norm = true};
constexpr const char* deep_gpt_title = "GPT 8 x 192, 128 words, batch 16";

struct TransformerSizes {
  int64_t batch, layers, width, heads, length, words;
  double dropout = 0;
};

struct LstmSizes {
  int64_t batch, length, features, units;
};

at::Tensor random_numbers(const Shape& shape) {
  return stateless_uniform(shape, Seed{1, 2}).full();
}

/// Returns random integers below `limit`.
at::Tensor random_choices(const Shape& shape, int64_t limit) {
  return random_numbers(shape).mul(static_cast<double>(limit)).to(at::kLong);
}

SymbolicTensor layer_normalized(const SymbolicTensor& x) {
  return LayerNormalization({.epsilon = 1e-5})(x);
}

/// Makes a pre-norm block: attention and two dense layers, each with a residual connection.
SymbolicTensor transformer_block(const SymbolicTensor& x, const TransformerSizes& s, bool causal) {
  const SymbolicTensor in = layer_normalized(x);
  const SymbolicTensor attended = MultiHeadAttention(
      s.heads, s.width / s.heads, {.dropout = s.dropout, .use_causal_mask = causal})({in, in});
  const SymbolicTensor middle = Add()({x, Dropout(s.dropout)(attended)});
  const SymbolicTensor wide = Dense(4 * s.width, {.activation = "gelu"})(layer_normalized(middle));
  return Add()({middle, Dropout(s.dropout)(Dense(s.width)(wide))});
}

/// Makes a transformer that classifies a text or, if `causal`, predicts the next word at each
/// position.
ModelHandle transformer(const TransformerSizes& s, bool causal, const LayoutMap& layouts) {
  const Input words({s.length}, {.dtype = "int64"});
  SymbolicTensor x = Embedding(s.words, s.width)(words);
  for (int64_t i = 0; i < s.layers; ++i) x = transformer_block(x, s, causal);
  x = layer_normalized(x);
  const SymbolicTensor logits =
      causal ? Dense(s.words)(x) : Dense(step_classes)(GlobalAveragePooling1D()(x));
  const Functional model({words}, {logits});
  model.compile({.optimizer = Adam(1e-4),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .layouts = layouts});
  return model;
}

StepWork transformer_work(const std::string& name, const TransformerSizes& s,
                          const std::string& dtype) {
  const bool causal = name == "decoder";
  const std::string title = str(name, " ", s.layers, " x ", s.width, ", length ", s.length,
                                ", batch ", s.batch, causal ? "" : ", dropout", ", ", dtype);
  return {name,
          name,
          title,
          s.batch,
          dtype,
          {{"batch", s.batch},
           {"layers", s.layers},
           {"width", s.width},
           {"heads", s.heads},
           {"length", s.length},
           {"words", s.words},
           {"dropout", s.dropout},
           {"dtype", dtype}},
          [=] {
            const int64_t rows = step_batches * s.batch;
            const at::Tensor x = random_choices({rows, s.length}, s.words);
            return TensorDataset(x,
                                 causal ? x.roll(-1, 1) : x.select(1, 0).remainder(step_classes));
          },
          [=](const LayoutMap& layouts) { return transformer(s, causal, layouts); }};
}

/// Makes a work on random rows of this shape, in ten classes.
StepWork classification(const std::string& kind, const std::string& title, int64_t batch,
                        const Shape& row, const Json& sizes, std::function<ModelHandle()> network) {
  Json all = {{"batch", batch}, {"row", row}};
  all.update(sizes);
  return {str(kind, "_", batch),
          kind,
          str(title, ", batch ", batch),
          batch,
          "float32",
          std::move(all),
          [=] {
            Shape shape = row;
            shape.insert(shape.begin(), step_batches * batch);
            return TensorDataset(random_numbers(shape), random_choices({shape[0]}, step_classes));
          },
          [=](const LayoutMap& layouts) -> ModelHandle {
            const ModelHandle model = network();
            model.compile({.optimizer = Adam(1e-3),
                           .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                           .layouts = layouts});
            return model;
          }};
}

StepWork recurrent_work(const std::string& kind, const LstmSizes& s) {
  const auto network = [=]() -> ModelHandle {
    const LayerHandle layer = kind == "lstm" ? LayerHandle(LSTM(s.units)) : GRU(s.units);
    return Sequential({layer, Dense(step_classes)});
  };
  const std::string name = kind == "lstm" ? "LSTM" : "GRU";
  return classification(
      kind, str(name, " ", s.units, ", length ", s.length), s.batch, {s.length, s.features},
      {{"length", s.length}, {"features", s.features}, {"units", s.units}}, network);
}

StepWork lstm_work(const LstmSizes& s) {
  StepWork work = recurrent_work("lstm", s);
  work.name = "lstm";
  return work;
}

/// Makes a work on images so large that copying a batch to the GPU takes about as long as a step.
StepWork upload_work(int64_t batch, int64_t pixels) {
  return {"upload",
          "upload",
          str("fit, images of ", pixels, " pixels, batch ", batch),
          batch,
          "float32",
          {{"batch", batch}, {"pixels", pixels}},
          [=] {
            const int64_t rows = step_batches * batch;
            return TensorDataset(random_numbers({rows, pixels, pixels, 3}),
                                 random_choices({rows}, step_classes));
          },
          [](const LayoutMap& layouts) -> ModelHandle {
            Sequential model({Conv2D(64, 7, {.strides = {4}, .activation = "relu"}),
                              Conv2D(64, 3, {.strides = {2}, .activation = "relu"}),
                              GlobalAveragePooling2D(), Dense(step_classes)});
            model.compile({.optimizer = Adam(1e-3),
                           .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                           .layouts = layouts});
            return model;
          }};
}

/// Makes a work on rows of MNIST's shape.
StepWork mnist_work(const std::string& name, const std::string& title,
                    std::function<ModelHandle(const LayoutMap&)> model) {
  return {name,
          name,
          str(title, ", batch ", mlp_batch_size),
          mlp_batch_size,
          "float32",
          {{"batch", mlp_batch_size}},
          mlp_data,
          std::move(model)};
}

/// Makes the work of an encoder block of this length.
StepWork encoder_block(int64_t length) {
  StepWork work = transformer_work("encoder", {16, 1, 256, 4, length, 1000}, "float32");
  work.name = str("encoder_", length);
  work.title = str("encoder block, width 256, length ", length, ", batch 16");
  return work;
}

/// Makes a work on a table of a million rows; with `lazy`, Adam updates the rows that are looked
/// up.
StepWork embedding_work(const std::string& name, const std::string& title, bool lazy) {
  constexpr int64_t batch = 1024, ids = 8, words = 1000000, width = 64;
  return {name,
          "embedding",
          str(title, ", 1,000,000 x 64, 8,192 ids"),
          batch,
          "float32",
          {{"batch", batch}, {"length", ids}, {"words", words}, {"width", width}, {"lazy", lazy}},
          [=] {
            const int64_t rows = step_batches * batch;
            return TensorDataset(random_choices({rows, ids}, words),
                                 random_choices({rows}, step_classes));
          },
          [=](const LayoutMap& layouts) -> ModelHandle {
            const Sequential model({Input({ids}, {.dtype = "int64"}), Embedding(words, width),
                                    GlobalAveragePooling1D(), Dense(step_classes)});
            model.compile({.optimizer = Adam(1e-3, {.lazy_rows = lazy}),
                           .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                           .layouts = layouts});
            return model;
          }};
}

/// Makes a work that trains a model of apps/gpt on random words.
StepWork gpt_work(const std::string& name, const std::string& title, const gpt::ModelSize& size,
                  int64_t batch, const std::vector<RematRule>& remat = {}) {
  return {
      name,
      "gpt",
      title,
      batch,
      "float32",
      gpt::to_json(size),
      [=] {
        const at::Tensor x = random_choices({step_batches * batch, size.length}, size.vocabulary);
        return TensorDataset(x, x.roll(-1, 1));
      },
      [=](const LayoutMap& layouts) -> ModelHandle {
        const Functional model = gpt::gpt_model(size);
        model.compile({.optimizer = Adam(1e-3),
                       .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                       .layouts = layouts,
                       .remat = remat});
        return model;
      }};
}

StepWork mini_gpt() {
  const gpt::ModelSize size{.vocabulary = 2000, .dropout = 0};
  constexpr int64_t batch = 128;
  StepWork work = gpt_work("mini_gpt", "mini GPT, 2,000 words, batch 128", size, batch);
  work.sizes = {{"batch", batch},        {"layers", size.blocks},     {"width", size.width},
                {"heads", size.heads},   {"head_dim", size.head_dim}, {"hidden", size.hidden},
                {"length", size.length}, {"words", size.vocabulary}};
  return work;
}

}  // namespace

std::vector<StepWork> transformer_works() {
  return {encoder_block(128), encoder_block(512), mini_gpt()};
}

std::vector<StepWork> vision_works() {
  constexpr int64_t pixels = 96;
  const Shape row = {pixels, pixels, 3};
  std::vector<StepWork> all;
  for (const int64_t batch : {16, 1}) {
    all.push_back(classification("resnet50", "ResNet-50, 96 x 96", batch, row, Json::object(),
                                 [] { return resnet50(pixels); }));
    all.push_back(classification("mobilenet_v2", "MobileNetV2, 96 x 96", batch, row, Json::object(),
                                 [] { return mobilenet_v2(pixels); }));
  }
  return all;
}

std::vector<StepWork> recurrent_works() {
  std::vector<StepWork> all;
  for (const int64_t batch : {64, 1}) {
    for (const char* kind : {"lstm", "gru"}) {
      all.push_back(recurrent_work(kind, {batch, 100, 64, 256}));
    }
  }
  return all;
}

std::vector<StepWork> embedding_works() {
  return {embedding_work("embedding_rows", "embedding, lazy Adam", true),
          embedding_work("embedding_all", "embedding, Adam", false)};
}

std::vector<StepWork> inference_works() {
  std::vector<StepWork> all;
  for (const int64_t batch : {1, 16}) {
    StepWork work = transformer_work("encoder", {batch, 6, 384, 6, 128, 8192}, "float32");
    work.name = str("bert_", batch);
    work.title = str("BERT-small, 6 x 384, 128 words, batch ", batch);
    all.push_back(work);
  }
  return all;
}

std::vector<StepWork> remat_works() {
  return {gpt_work("gpt_remat", deep_gpt_title, deep_gpt, 16, {{.match = "block_\\d+"}}),
          gpt_work("gpt_saved", deep_gpt_title, deep_gpt, 16)};
}

std::vector<StepWork> logits_works() {
  const std::string title = "mini GPT, 20,000 words, batch 32";
  const StepWork parts = gpt_work("gpt_logits_parts", title, {}, 32);
  StepWork whole = parts;
  whole.name = "gpt_logits_whole";
  whole.model = [parts](const LayoutMap& layouts) {
    // In this process, no logits are large.
    least_large_logits() = std::numeric_limits<int64_t>::max();
    return parts.model(layouts);
  };
  return {parts, whole};
}

std::vector<StepWork> pipeline_works() {
  static constexpr int64_t batch = 16, microbatches = 4;
  gpt::ModelSize size = deep_gpt;
  size.dropout = 0;
  StepWork staged = gpt_work("gpt_stages", deep_gpt_title, size, batch);
  staged.model = [made = staged.model](const LayoutMap&) {
    LayoutMap layouts(create_mesh({{"stage", 4}}, virtual_cpus(4)));
    layouts.set_pipeline({.microbatches = microbatches, .schedule = "1f1b"});
    return made(layouts);
  };
  StepWork accumulated = gpt_work("gpt_accumulated", deep_gpt_title, size, batch / microbatches);
  accumulated.model = [size](const LayoutMap& layouts) -> ModelHandle {
    const Functional model = gpt::gpt_model(size);
    model.compile({.optimizer = Adam(1e-3, {.gradient_accumulation_steps = microbatches}),
                   .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                   .layouts = layouts});
    return model;
  };
  return {staged, accumulated};
}

std::vector<StepWork> step_works(const std::string& device) {
  const bool small = device == "cpu";
  return {mnist_work("mlp", "MLP 784-700-500-10", mlp_model),
          mnist_work("cnn", "two convolutions", cnn_model),
          transformer_work("encoder",
                           small ? TransformerSizes{2, 1, 16, 2, 8, 32, 0.1}
                                 : TransformerSizes{16, 12, 768, 12, 512, 8192, 0.1},
                           "float32"),
          transformer_work("decoder",
                           small ? TransformerSizes{2, 1, 16, 2, 8, 32}
                                 : TransformerSizes{4, 12, 768, 12, 2048, 32768},
                           "mixed_bfloat16"),
          lstm_work(small ? LstmSizes{2, 5, 8, 16} : LstmSizes{128, 100, 64, 256}),
          small ? upload_work(2, 32) : upload_work(64, 224)};
}

StepWork find_step_work(const std::string& name, const std::string& device) {
  std::vector<StepWork> all = step_works(device);
  for (const auto& list :
       {transformer_works(), vision_works(), recurrent_works(), embedding_works(),
        inference_works(), remat_works(), logits_works(), pipeline_works()}) {
    all.insert(all.end(), list.begin(), list.end());
  }
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const StepWork& work) { return work.name == name; });
  if (found != all.end()) return *found;
  throw ConfigError("WORK", "is one of bench compare --device", in_quotes(name),
                    "see apps/bench/README.md");
}

}  // namespace tessera::bench
