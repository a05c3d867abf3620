#include "apps/gpt/gpt_model.hpp"

#include <tessera/framework/base/error.hpp>

namespace tessera::gpt {

using namespace detail;

namespace {

/// Adds a learned vector for each place in the sequence (keras_hub.layers.PositionEmbedding).
class Positions final : public Layer {
 public:
  Positions(int64_t length, const std::string& name) : Layer({.name = name}), length_(length) {}
  std::string class_name() const override { return "PositionEmbedding"; }
  Shape output_shape(const Shapes& inputs) const override { return inputs[0]; }
  bool can_be_replayed() const override { return true; }

 private:
  void make_weights(const Shapes& inputs) override {
    embeddings_ = add_weight("embeddings", {length_, inputs[0].back()}, "uniform");
  }
  DTensor call(const Inputs& inputs, const CallContext&) override {
    const int64_t steps = inputs[0].size(1);
    const DTensor all = read(embeddings_);
    return inputs[0] + (steps == length_ ? all : ops::slice(all, 0, 0, steps));
  }

  int64_t length_;
  Variable embeddings_;
};

/// A block of a transformer; `name` begins its layers' paths.
LayerHandle block(const ModelSize& size, const std::string& name) {
  const SymbolicTensor x = Input({-1, size.width});
  const auto norm = [](const char* norm_name) {
    return LayerNormalization({.epsilon = 1e-6, .name = norm_name});
  };
  const LayerHandle norm_1 = norm("norm_1"), norm_2 = norm("norm_2");
  const MultiHeadAttention attention(size.heads, size.head_dim,
                                     {.use_causal_mask = true, .name = "attention"});
  const Dense up(size.hidden, {.activation = "relu", .name = "up"});
  const Dense down(size.width, {.name = "down"});
  const Dropout dropout_1(size.dropout, {.name = "dropout_1"});
  const Dropout dropout_2(size.dropout, {.name = "dropout_2"});

  const SymbolicTensor seen = size.pre_norm ? norm_1(x) : x;
  const SymbolicTensor attended = x + dropout_1(attention({seen, seen}));
  const SymbolicTensor middle = size.pre_norm ? attended : norm_1(attended);
  const SymbolicTensor worked = dropout_2(down(up(size.pre_norm ? norm_2(middle) : middle)));
  const SymbolicTensor y = size.pre_norm ? middle + worked : norm_2(middle + worked);
  return Functional({x}, {y}, {.name = name});
}

void check_sizes(const ModelSize& size) {
  if (size.head_dim == 0 && size.width % size.heads != 0) {
    throw ConfigError("--heads", "the width is a multiple of the heads",
                      str(size.width, " and ", size.heads), "change one, or give --head-dim");
  }
}

}  // namespace

void add_model_options(app::AppOptions& options, ModelSize& size) {
  const auto add = [&](const char* name, const char* help, int64_t& value, int64_t least) {
    options.add({name, "Model", help, app::integer(value, least)});
  };
  add("blocks", "blocks of attention and dense layers", size.blocks, 1);
  add("heads", "heads of each attention", size.heads, 1);
  add("head-dim", "features of a head; 0: width / heads", size.head_dim, 0);
  add("width", "features of a word", size.width, 1);
  add("hidden", "features of a block's first dense layer", size.hidden, 1);
  add("length", "words that the model sees", size.length, 2);
  add("vocabulary", "words it knows, with one for padding and one for all others",
      size.vocabulary, 3);
  options.add({"dropout", "Model", "part of a block's sums that training leaves out",
               app::fraction(size.dropout)});
  options.add({"pre-norm", "Model", "normalize before attention and dense layers, not behind",
               app::toggle(size.pre_norm)});
}

void settle_model_options(ModelSize& size) {
  check_sizes(size);
  if (size.head_dim == 0) size.head_dim = size.width / size.heads;
}

Json to_json(const ModelSize& size) {
  return {{"blocks", size.blocks},         {"heads", size.heads},   {"head_dim", size.head_dim},
          {"width", size.width},           {"hidden", size.hidden}, {"length", size.length},
          {"vocabulary", size.vocabulary}, {"dropout", size.dropout},
          {"pre_norm", size.pre_norm}};
}

ModelSize model_size_from_json(const Json& json, const std::string& source) {
  JsonObject object(json, JsonPath(source));
  ModelSize size;
  const auto take = [&](const char* name, int64_t& value, int64_t least) {
    value = object.take<int64_t>(name);
    if (value < least) json_fail(json[name], object.path().key(name), str("at least ", least));
  };
  take("blocks", size.blocks, 1);
  take("heads", size.heads, 1);
  take("head_dim", size.head_dim, 1);
  take("width", size.width, 1);
  take("hidden", size.hidden, 1);
  take("length", size.length, 2);
  take("vocabulary", size.vocabulary, 3);
  size.dropout = object.take<double>("dropout");
  size.pre_norm = object.take<bool>("pre_norm");
  object.finish();
  return size;
}

Functional gpt_model(const ModelSize& size) {
  const SymbolicTensor words = Input({-1}, {.dtype = "int64", .name = "words"});
  SymbolicTensor x = Embedding(size.vocabulary, size.width, {.name = "tokens"})(words);
  x = make_layer<Positions>(size.length, "positions")(x);
  for (int64_t b = 1; b <= size.blocks; ++b) x = block(size, str("block_", b))(x);
  if (size.pre_norm) x = LayerNormalization({.epsilon = 1e-6, .name = "norm"})(x);
  return Functional({words}, {Dense(size.vocabulary, {.name = "logits"})(x)}, {.name = "gpt"});
}

}  // namespace tessera::gpt
