#include "apps/gpt/gpt_model.hpp"

#include <algorithm>

#include <tessera/framework/base/error.hpp>

namespace tessera::gpt {

using namespace detail;

namespace {

/// Makes a transformer block; `name` is the prefix of its layers' paths.
LayerHandle block(const ModelSize& size, const std::string& name) {
  TransformerBlockOptions options{
      .num_heads = size.heads,
      .hidden_dim = size.hidden,
      .head_dim = size.head_dim,
      .norm = size.rms_norm ? BlockNorm::rms : BlockNorm::layer,
      .norm_position = size.pre_norm ? NormPosition::pre : NormPosition::post,
      .epsilon = 1e-6,
      .activation = size.gated ? "silu" : "relu",
      .gated = size.gated && size.experts == 0,
      .use_bias = size.biases,
      .use_causal_mask = true,
      .dropout = size.dropout,
      .name = name};
  if (size.kv_heads > 0) options.num_key_value_heads = size.kv_heads;
  if (size.rotary) options.rotary.emplace();
  if (size.experts > 0) {
    // No words are dropped outside of training, so that no word depends on later ones.
    options.feed_forward = MixtureOfExperts({.num_experts = size.experts,
                                             .hidden_dim = size.hidden,
                                             .capacity_factor = size.capacity_factor,
                                             .eval_capacity_factor = double(size.experts),
                                             .aux_loss = size.aux_loss,
                                             .name = "experts"});
  }
  return TransformerBlock(options);
}

/// Makes the norm behind the last block.
LayerHandle last_norm(const ModelSize& size) {
  if (size.rms_norm) return RMSNormalization({.epsilon = 1e-6, .name = "norm"});
  return LayerNormalization({.epsilon = 1e-6, .name = "norm"});
}

struct NamedSize {
  const char* name;
  ModelSize size;
};

/// Returns the sizes of Keras' example, of GPT-2 (Radford et al., 2019), the one of ZeRO's paper
/// (arXiv 1910.02054), two of Megatron-LM's (arXiv 2205.05198), and SmolLM2-135M's, a Llama.
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
  const ModelSize smol{.blocks = 30,
                       .heads = 9,
                       .kv_heads = 3,
                       .head_dim = 64,
                       .width = 576,
                       .hidden = 1536,
                       .length = 8192,
                       .vocabulary = 49152,
                       .pre_norm = true,
                       .tied = true,
                       .rotary = true,
                       .rms_norm = true,
                       .gated = true,
                       .biases = false};
  static const std::vector<NamedSize> sizes = {{"mini", {}},
                                               {"small", gpt2(12, 12, 768)},
                                               {"medium", gpt2(24, 16, 1024)},
                                               {"large", gpt2(36, 20, 1280)},
                                               {"xl", gpt2(48, 25, 1600)},
                                               {"7.5b", gpt2(36, 32, 4096)},
                                               {"22b", megatron(48, 64, 6144)},
                                               {"175b", megatron(96, 96, 12288)},
                                               {"smol", smol}};
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
  options.add(
      {"size", "Model",
       "defaults of the options below: Keras' example, GPT-2's, Megatron's or SmolLM2's sizes",
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
  options.add({"rotary", "Model", "rotate queries and keys instead of adding position embeddings",
               app::toggle(flags.rotary)});
  options.add({"rms-norm", "Model", "normalize by root mean squares, without means and offsets",
               app::toggle(flags.rms_norm)});
  options.add({"gated", "Model", "gate the units of the dense layers (SwiGLU), without --experts",
               app::toggle(flags.gated)});
  options.add(
      {"biases", "Model", "biases of attention and dense layers", app::toggle(flags.biases)});
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
  take(size.rotary, flags.rotary);
  take(size.rms_norm, flags.rms_norm);
  take(size.gated, flags.gated);
  take(size.biases, flags.biases);
  size.dropout = flags.dropout;
  size.capacity_factor = flags.capacity_factor;
  size.aux_loss = flags.aux_loss;
  if (size.head_dim == 0 && size.width % size.heads != 0) {
    throw ConfigError("--heads", "the width must be a multiple of the number of heads",
                      str(size.width, " and ", size.heads), "change one, or give --head-dim");
  }
  if (size.head_dim == 0) size.head_dim = size.width / size.heads;
  if (size.rotary && size.head_dim % 2 != 0) {
    throw ConfigError("--rotary", "a head has an even number of features", str(size.head_dim),
                      "change --head-dim");
  }
  if (size.gated && size.experts > 0) {
    throw ConfigError("--gated", "experts have no gated units", str(size.experts, " experts"),
                      "leave out --gated or --experts");
  }
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
          {"tied", size.tied},
          {"rotary", size.rotary},
          {"rms_norm", size.rms_norm},
          {"gated", size.gated},
          {"biases", size.biases}};
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
  size.rotary = object.take_or("rotary", size.rotary);
  size.rms_norm = object.take_or("rms_norm", size.rms_norm);
  size.gated = object.take_or("gated", size.gated);
  size.biases = object.take_or("biases", size.biases);
  object.finish();
  return size;
}

Functional gpt_model(const ModelSize& size) {
  const SymbolicTensor words = Input({-1}, {.dtype = "int64", .name = "words"});
  const ReversibleEmbedding tokens(size.vocabulary, size.width, {.name = "tokens"});
  SymbolicTensor x = tokens(words);
  if (!size.rotary) {
    x = PositionEmbedding(size.length,
                          {.initializer = "uniform", .add = true, .name = "positions"})(x);
  }
  for (int64_t b = 1; b <= size.blocks; ++b) x = block(size, str("block_", b))(x);
  if (size.pre_norm) x = last_norm(size)(x);
  const LayerHandle logits =
      size.tied ? tokens.reversed("logits")
                : LayerHandle(Dense(size.vocabulary, {.use_bias = size.biases, .name = "logits"}));
  return Functional({words}, {logits(x)}, {.name = "gpt"});
}

}  // namespace tessera::gpt
