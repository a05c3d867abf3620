#include "apps/gpt/gpt_model.hpp"

#include <algorithm>

#include <tessera/framework/base/error.hpp>

namespace tessera::gpt {

using namespace detail;

namespace {

/// Adds a learned vector for each position (keras_hub.layers.PositionEmbedding).
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
  DTensor call(const Inputs& inputs, const CallContext& context) override {
    const int64_t steps = inputs[0].size(1);
    const int64_t first = context.cache ? context.cache->first_step(*this, steps) : 0;
    const DTensor all = read(embeddings_);
    return inputs[0] + (steps == length_ ? all : ops::slice(all, 0, first, steps));
  }

  int64_t length_;
  Variable embeddings_;
};

/// Computes logits as products with the token embeddings of another layer
/// (keras.layers.ReversibleEmbedding called with reverse=True).
class TiedLogits final : public Layer {
 public:
  TiedLogits(const LayerHandle& tokens, int64_t words, const std::string& name)
      : Layer({.name = name}), tokens_(tokens.layer()), words_(words) {}
  std::string class_name() const override { return "TiedLogits"; }
  Shape output_shape(const Shapes& inputs) const override {
    Shape shape = inputs[0];
    shape.back() = words_;
    return shape;
  }
  bool can_be_replayed() const override { return true; }

 private:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    const DTensor table = read(tokens_->own_weights().front());
    return ops::deferred_logits(inputs[0], table, {}, ops::ClassAxis::first);
  }

  std::shared_ptr<Layer> tokens_;
  int64_t words_;
};

/// Makes causal attention, multi-head or grouped-query.
LayerHandle attention_of(const ModelSize& size) {
  const std::string name = "attention";
  if (size.kv_heads == 0) {
    return MultiHeadAttention(size.heads, size.head_dim, {.use_causal_mask = true, .name = name});
  }
  return GroupQueryAttention(size.head_dim, size.heads, size.kv_heads,
                             {.use_causal_mask = true, .name = name});
}

/// Makes a transformer block; `name` is the prefix of its layers' paths.
LayerHandle block(const ModelSize& size, const std::string& name) {
  const SymbolicTensor x = Input({-1, size.width});
  const auto norm = [](const char* norm_name) {
    return LayerNormalization({.epsilon = 1e-6, .name = norm_name});
  };
  const LayerHandle norm_1 = norm("norm_1"), norm_2 = norm("norm_2");
  const LayerHandle attention = attention_of(size);
  const Dense up(size.hidden, {.activation = "relu", .name = "up"});
  const Dense down(size.width, {.name = "down"});
  const auto dense = [&](const SymbolicTensor& seen) {
    if (size.experts == 0) return down(up(seen));
    // No words are dropped outside of training, so that no word depends on later ones.
    return MixtureOfExperts({.num_experts = size.experts,
                             .hidden_dim = size.hidden,
                             .capacity_factor = size.capacity_factor,
                             .eval_capacity_factor = double(size.experts),
                             .aux_loss = size.aux_loss,
                             .name = "experts"})(seen);
  };
  const Dropout dropout_1(size.dropout, {.name = "dropout_1"});
  const Dropout dropout_2(size.dropout, {.name = "dropout_2"});

  const SymbolicTensor seen = size.pre_norm ? norm_1(x) : x;
  const SymbolicTensor attended = x + dropout_1(attention({seen, seen}));
  const SymbolicTensor middle = size.pre_norm ? attended : norm_1(attended);
  const SymbolicTensor feed_forward = dropout_2(dense(size.pre_norm ? norm_2(middle) : middle));
  const SymbolicTensor y = size.pre_norm ? middle + feed_forward : norm_2(middle + feed_forward);
  return Functional({x}, {y}, {.name = name});
}

struct NamedSize {
  const char* name;
  ModelSize size;
};

/// Returns the sizes of Keras' example, of GPT-2 (Radford et al., 2019), the one of ZeRO's paper
/// (arXiv 1910.02054), and two of Megatron-LM's (arXiv 2205.05198).
const std::vector<NamedSize>& named_sizes() {
  const auto gpt2 = [](int64_t blocks, int64_t heads, int64_t width) {
    return ModelSize{.blocks = blocks,
                     .heads = heads,
                     .head_dim = width / heads,
                     .width = width,
                     .hidden = 4 * width,
                     .length = 1024,
                     .vocabulary = 50257,
                     .pre_norm = true,
                     .tied = true};
  };
  const auto megatron = [&](int64_t blocks, int64_t heads, int64_t width) {
    ModelSize size = gpt2(blocks, heads, width);
    size.length = 2048;
    size.vocabulary = 51200;
    return size;
  };
  static const std::vector<NamedSize> sizes = {{"mini", {}},
                                               {"small", gpt2(12, 12, 768)},
                                               {"medium", gpt2(24, 16, 1024)},
                                               {"large", gpt2(36, 20, 1280)},
                                               {"xl", gpt2(48, 25, 1600)},
                                               {"7.5b", gpt2(36, 32, 4096)},
                                               {"22b", megatron(48, 64, 6144)},
                                               {"175b", megatron(96, 96, 12288)}};
  return sizes;
}

}  // namespace

void add_model_options(app::AppOptions& options, ModelFlags& flags) {
  const auto add = [&](const char* name, const char* help, std::optional<int64_t>& value,
                       int64_t least) {
    options.add({name, "Model", help, app::integer(value, least)});
  };
  std::vector<std::string> names;
  for (const NamedSize& each : named_sizes()) names.emplace_back(each.name);
  options.add({"size", "Model",
               "defaults of the options below: Keras' example, GPT-2's or Megatron's sizes",
               app::choice(flags.size, names)});
  add("blocks", "blocks of attention and dense layers", flags.blocks, 1);
  add("heads", "heads of each attention", flags.heads, 1);
  add("kv-heads", "heads of keys and values (grouped-query attention); 0: as many as heads",
      flags.kv_heads, 0);
  add("head-dim", "features of a head; 0: width / heads", flags.head_dim, 0);
  add("width", "features of a word", flags.width, 1);
  add("hidden", "features of a block's first dense layer", flags.hidden, 1);
  add("experts", "experts that replace a block's dense layers, 2 or more; 0: none", flags.experts,
      0);
  options.add({"capacity-factor", "Model", "expert slots per word of a row, in training",
               app::positive_number(flags.capacity_factor)});
  options.add(
      {"aux-loss", "Model", "factor of the load-balancing loss", app::fraction(flags.aux_loss)});
  add("length", "context length in words", flags.length, 2);
  add("vocabulary", "vocabulary size, including padding and unknown words", flags.vocabulary, 3);
  options.add({"dropout", "Model", "dropout rate in the blocks", app::fraction(flags.dropout)});
  options.add({"pre-norm", "Model", "normalize before attention and dense layers, not after",
               app::toggle(flags.pre_norm)});
  options.add(
      {"tied", "Model", "compute logits with the token embeddings", app::toggle(flags.tied)});
}

ModelSize model_size(const ModelFlags& flags) {
  const auto named = std::find_if(named_sizes().begin(), named_sizes().end(),
                                  [&](const NamedSize& each) { return each.name == flags.size; });
  ModelSize size = named->size;
  const auto take = [](auto& value, const auto& flag) { value = flag.value_or(value); };
  take(size.blocks, flags.blocks);
  take(size.heads, flags.heads);
  take(size.kv_heads, flags.kv_heads);
  take(size.head_dim, flags.head_dim);
  take(size.width, flags.width);
  take(size.hidden, flags.hidden);
  take(size.experts, flags.experts);
  take(size.length, flags.length);
  take(size.vocabulary, flags.vocabulary);
  take(size.pre_norm, flags.pre_norm);
  take(size.tied, flags.tied);
  size.dropout = flags.dropout;
  size.capacity_factor = flags.capacity_factor;
  size.aux_loss = flags.aux_loss;
  if (size.head_dim == 0 && size.width % size.heads != 0) {
    throw ConfigError("--heads", "the width must be a multiple of the number of heads",
                      str(size.width, " and ", size.heads), "change one, or give --head-dim");
  }
  if (size.head_dim == 0) size.head_dim = size.width / size.heads;
  if (size.experts == 1) {
    throw ConfigError("--experts", "must be 0 or at least 2, as each word uses two experts", "1",
                      "give more, or 0 for dense layers");
  }
  if (size.kv_heads > 0 && size.heads % size.kv_heads != 0) {
    throw ConfigError("--kv-heads", "the number of heads must be a multiple of it",
                      str(size.heads, " and ", size.kv_heads), "change one of them");
  }
  return size;
}

Json to_json(const ModelSize& size) {
  return {{"blocks", size.blocks},
          {"heads", size.heads},
          {"kv_heads", size.kv_heads},
          {"head_dim", size.head_dim},
          {"width", size.width},
          {"hidden", size.hidden},
          {"length", size.length},
          {"vocabulary", size.vocabulary},
          {"dropout", size.dropout},
          {"experts", size.experts},
          {"capacity_factor", size.capacity_factor},
          {"aux_loss", size.aux_loss},
          {"pre_norm", size.pre_norm},
          {"tied", size.tied}};
}

ModelSize model_size_from_json(const Json& json, const std::string& source) {
  JsonObject object(json, JsonPath(source));
  ModelSize size;
  const auto take = [&](const char* name, int64_t& value, int64_t least) {
    value = object.take_or(name, value);
    if (value < least) json_fail(json[name], object.path().key(name), str("at least ", least));
  };
  take("blocks", size.blocks, 1);
  take("heads", size.heads, 1);
  take("kv_heads", size.kv_heads, 0);
  take("head_dim", size.head_dim, 1);
  take("width", size.width, 1);
  take("hidden", size.hidden, 1);
  take("length", size.length, 2);
  take("vocabulary", size.vocabulary, 3);
  take("experts", size.experts, 0);
  size.dropout = object.take_or("dropout", size.dropout);
  size.capacity_factor = object.take_or("capacity_factor", size.capacity_factor);
  size.aux_loss = object.take_or("aux_loss", size.aux_loss);
  size.pre_norm = object.take_or("pre_norm", size.pre_norm);
  size.tied = object.take_or("tied", size.tied);
  object.finish();
  return size;
}

Functional gpt_model(const ModelSize& size) {
  const SymbolicTensor words = Input({-1}, {.dtype = "int64", .name = "words"});
  const Embedding tokens(size.vocabulary, size.width, {.name = "tokens"});
  SymbolicTensor x = tokens(words);
  x = make_layer<Positions>(size.length, "positions")(x);
  for (int64_t b = 1; b <= size.blocks; ++b) x = block(size, str("block_", b))(x);
  if (size.pre_norm) x = LayerNormalization({.epsilon = 1e-6, .name = "norm"})(x);
  const LayerHandle logits = size.tied ? make_layer<TiedLogits>(tokens, size.vocabulary, "logits")
                                       : LayerHandle(Dense(size.vocabulary, {.name = "logits"}));
  return Functional({words}, {logits(x)}, {.name = "gpt"});
}

}  // namespace tessera::gpt
