#include <tessera/layers/pretrained/internal/language_model.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/graph/symbolic_ops.hpp>
#include <tessera/framework/model/functional.hpp>
#include <tessera/framework/nn/dtype_policy.hpp>
#include <tessera/framework/ops/activation.hpp>
#include <tessera/layers/core/dense.hpp>
#include <tessera/layers/core/embedding.hpp>
#include <tessera/layers/core/reversible_embedding.hpp>
#include <tessera/layers/normalization/normalization.hpp>
#include <tessera/layers/transformer/position_embedding.hpp>

namespace tessera::detail {
namespace {

/// Returns a size of a configuration. Throws ConfigError unless it fits in 31 bits.
int64_t take_size(JsonObject& json, const char* key) {
  const auto size = json.take<int64_t>(key);
  if (size >= 1 && size <= std::numeric_limits<int32_t>::max()) return size;
  throw ConfigError(json.path().key(key).text(), "a size is in [1, 2^31)", str(size),
                    "get the file again");
}

/// Throws ConfigError if a key has another value than the one that is implemented.
template <class T>
void expect_value(JsonObject& json, const char* key, const T& expected) {
  const T value = json.take_or<T>(key, expected);
  if (value == expected) return;
  throw ConfigError(json.path().key(key).text(), str("only ", expected, " is implemented"),
                    str(value), "load another model");
}

ActivationHandle activation_named(const std::string& name, const JsonPath& where) {
  if (name == "silu" || name == "relu" || name == "gelu") return name;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return approximate_gelu;
  throw ConfigError(where.text(), "silu, relu, gelu, gelu_new or gelu_pytorch_tanh",
                    in_quotes(name), "load another model");
}

/// Reads the options of YaRN. Throws ConfigError.
void read_yarn(JsonObject& object, int64_t length, ops::RotaryOptions& rotary) {
  if (rotary.original_length >= 1 && !object.take_optional<double>("factor")) {
    rotary.scaling_factor =
        static_cast<double>(length) / static_cast<double>(rotary.original_length);
  }
  expect_value(object, "truncate", true);
  rotary.beta_fast = object.take_or("beta_fast", rotary.beta_fast);
  rotary.beta_slow = object.take_or("beta_slow", rotary.beta_slow);
  rotary.magnitude = object.take_optional<double>("attention_factor");
  const auto scale = object.take_optional<double>("mscale");
  const auto all_scale = object.take_optional<double>("mscale_all_dim");
  if (rotary.magnitude || scale.value_or(0) == 0 || all_scale.value_or(0) == 0) return;
  const double steps = 0.1 * std::log(std::max(rotary.scaling_factor, 1.0));
  rotary.magnitude = (steps * *scale + 1) / (steps * *all_scale + 1);
}

/// Reads the base and the scaling of rotary positions. `length` is the maximum sequence length.
ops::RotaryOptions scaled_rotary(const std::optional<Json>& json, const JsonPath& path, double base,
                                 int64_t length) {
  ops::RotaryOptions rotary;
  rotary.max_wavelength = base;
  if (!json) return rotary;
  JsonObject object(*json, path);
  rotary.max_wavelength = object.take_or("rope_theta", base);
  std::string kind = "default";
  for (const char* key : {"type", "rope_type"}) kind = object.take_or(key, kind);
  const auto kinds = names_of(RotaryScaling::none);
  const auto found = std::find(kinds.begin(), kinds.end(), kind);
  if (found == kinds.end()) {
    throw ConfigError(path.key("rope_type").text(),
                      "one of " + quoted_list(std::vector<std::string>(kinds.begin(), kinds.end())),
                      in_quotes(kind), "load another model");
  }
  rotary.scaling = static_cast<RotaryScaling>(found - kinds.begin());
  rotary.scaling_factor = object.take_or("factor", rotary.scaling_factor);
  rotary.low_freq_factor = object.take_or("low_freq_factor", rotary.low_freq_factor);
  rotary.high_freq_factor = object.take_or("high_freq_factor", rotary.high_freq_factor);
  rotary.original_length = object.take_or("original_max_position_embeddings", length);
  expect_value(object, "partial_rotary_factor", 1.0);
  if (rotary.scaling == RotaryScaling::yarn) read_yarn(object, length, rotary);
  return rotary;
}

/// Reads the rotary positions of all blocks, as transformers 4 or 5 write them, and of Gemma 3's
/// blocks with a window, which have their own.
void read_rotary(JsonObject& json, LanguageModelConfig& config) {
  const bool is_gemma3 = config.model_type == "gemma3_text";
  const double base = json.take_or<double>("rope_theta", is_gemma3 ? 1e6 : 1e4);
  const double local_base = json.take_or<double>("rope_local_base_freq", 1e4);
  const int64_t length = json.take_or<int64_t>("max_position_embeddings", 0);
  const JsonPath path = json.path().key("rope_parameters");
  auto all = json.take_optional<Json>("rope_parameters");
  if (!all) all = json.take_optional<Json>("rope_scaling");
  std::optional<Json> local;
  if (all && all->is_object() && all->contains("full_attention")) {
    JsonObject by_kind(*all, path);
    local = by_kind.take_optional<Json>("sliding_attention");
    all = by_kind.take_optional<Json>("full_attention");
  }
  config.block.rotary = scaled_rotary(all, path, base, length);
  if (is_gemma3) config.local_rotary = scaled_rotary(local, path, local_base, length);
}

/// Reads which blocks have a window: those that the file lists, otherwise those of `is_local`.
template <class IsLocal>
void read_windows(JsonObject& json, LanguageModelConfig& config,
                  const std::optional<int64_t>& window, const IsLocal& is_local) {
  config.block.sliding_window = window;
  const auto kinds = json.take_optional<std::vector<std::string>>("layer_types");
  const JsonPath path = json.path().key("layer_types");
  if (kinds && std::ssize(*kinds) != config.blocks) {
    throw ConfigError(path.text(), str("a kind for each of ", config.blocks, " blocks"),
                      str(kinds->size()), "get the file again");
  }
  for (int64_t i = 0; i < config.blocks; ++i) {
    const std::string kind = kinds
                                 ? (*kinds)[static_cast<size_t>(i)]
                                 : (window && is_local(i) ? "sliding_attention" : "full_attention");
    if (kind != "sliding_attention" && kind != "full_attention") {
      throw ConfigError(path.text(), "sliding_attention or full_attention", in_quotes(kind),
                        "load another model");
    }
    config.is_local.push_back(kind == "sliding_attention");
    if (config.is_local.back() && !window) {
      throw ConfigError(json.path().key("sliding_window").text(),
                        "a number of steps, for the blocks with a window", "none",
                        "get the file again");
    }
  }
}

void read_gpt2(JsonObject& json, LanguageModelConfig& config) {
  config.features = take_size(json, "n_embd");
  config.blocks = take_size(json, "n_layer");
  config.positions = take_size(json, "n_positions");
  TransformerBlockOptions& block = config.block;
  block.num_heads = take_size(json, "n_head");
  block.hidden_dim = json.has("n_inner") && json.take_optional<int64_t>("n_inner")
                         ? take_size(json, "n_inner")
                         : 4 * config.features;
  block.epsilon = json.take_or("layer_norm_epsilon", 1e-5);
  block.activation = activation_named(json.take_or<std::string>("activation_function", "gelu_new"),
                                      json.path().key("activation_function"));
  expect_value(json, "scale_attn_by_inverse_layer_idx", false);
  expect_value(json, "scale_attn_weights", true);
  expect_value(json, "add_cross_attention", false);
}

bool is_gemma_2_or_3(const LanguageModelConfig& config) {
  return config.model_type == "gemma2" || config.model_type == "gemma3_text";
}

/// Returns a number that is `missing` if the file lacks it, and none if it is null there.
std::optional<double> number_or_none(JsonObject& json, const char* key,
                                     const std::optional<double>& missing) {
  return json.has(key) ? json.take_optional<double>(key) : missing;
}

/// Reads what Gemma 2 and 3 have in common.
void read_gemma_2_or_3(JsonObject& json, LanguageModelConfig& config) {
  const bool is_gemma3 = config.model_type == "gemma3_text";
  TransformerBlockOptions& block = config.block;
  block.norm_position = NormPosition::both;
  block.normalize_queries = is_gemma3;
  const auto scalar = json.take_or<double>("query_pre_attn_scalar", 256);
  if (!(scalar > 0)) {
    throw ConfigError(json.path().key("query_pre_attn_scalar").text(), "a positive number",
                      str(scalar), "get the file again");
  }
  block.attention_scale = 1 / std::sqrt(scalar);
  const std::optional<double> none;
  config.logit_soft_cap =
      number_or_none(json, "final_logit_softcapping", is_gemma3 ? none : std::optional(30.0));
  // Gemma 3 names one, and its program does not use it.
  if (!is_gemma3) {
    block.attention_soft_cap = number_or_none(json, "attn_logit_softcapping", 50.0);
  }
  if (json.take_or("use_bidirectional_attention", false)) {
    throw ConfigError(json.path().key("use_bidirectional_attention").text(),
                      "only false is implemented", "true", "load another model");
  }
  const auto pattern = json.take_or<int64_t>("sliding_window_pattern", is_gemma3 ? 6 : 2);
  if (pattern < 1) {
    throw ConfigError(json.path().key("sliding_window_pattern").text(), "at least 1", str(pattern),
                      "get the file again");
  }
  read_windows(json, config, json.take_optional<int64_t>("sliding_window"),
               [&](int64_t i) { return (i + 1) % pattern != 0; });
}

/// Reads the windows of Mistral's and Qwen's blocks.
void read_llama_windows(JsonObject& json, LanguageModelConfig& config) {
  const std::string& type = config.model_type;
  if (type == "mistral") {
    // Absent is the default of transformers, null no window.
    const bool is_given = json.has("sliding_window");
    const auto window = json.take_optional<int64_t>("sliding_window");
    config.block.sliding_window = is_given ? window : 4096;
  }
  if (type != "qwen2" && type != "qwen3") return;
  // Qwen names a window that use_sliding_window turns on, for the last blocks.
  const auto window = json.take_optional<int64_t>("sliding_window");
  const auto first = json.take_or<int64_t>("max_window_layers", 28);
  if (!json.take_or("use_sliding_window", false)) return;
  read_windows(json, config, window, [&](int64_t i) { return i >= first; });
}

/// Reads what Llama and the models like it have in common.
void read_llama(JsonObject& json, LanguageModelConfig& config) {
  const std::string& type = config.model_type;
  config.features = take_size(json, "hidden_size");
  config.blocks = take_size(json, "num_hidden_layers");
  TransformerBlockOptions& block = config.block;
  block.num_heads = take_size(json, "num_attention_heads");
  block.num_key_value_heads = json.take_or("num_key_value_heads", block.num_heads);
  block.head_dim = json.take_optional<int64_t>("head_dim");
  block.hidden_dim = take_size(json, "intermediate_size");
  block.norm = BlockNorm::rms;
  block.epsilon = json.take_or("rms_norm_eps", 1e-6);
  block.gated = true;
  block.use_bias = false;
  read_rotary(json, config);
  const bool is_gemma = type.starts_with("gemma");
  // Gemma's first files name the exact function, while the model was trained with the other one.
  const auto activation = json.take_optional<std::string>("hidden_activation");
  const auto older = json.take_optional<std::string>("hidden_act");
  block.activation = activation_named(
      activation ? *activation : (is_gemma ? "gelu_pytorch_tanh" : older.value_or("silu")),
      json.path().key("hidden_act"));
  if (is_gemma) {
    config.embedding_scale = std::sqrt(static_cast<double>(config.features));
    block.norm = BlockNorm::rms_unit_offset;
  }
  const bool has_biases = json.take_or("attention_bias", false);
  block.use_query_bias = has_biases || type == "qwen2";
  block.use_output_bias = has_biases;
  block.normalize_queries = type == "qwen3";
  expect_value(json, "mlp_bias", false);
  if (is_gemma_2_or_3(config)) {
    read_gemma_2_or_3(json, config);
  } else {
    read_llama_windows(json, config);
  }
}

void read_bert(JsonObject& json, LanguageModelConfig& config) {
  config.features = take_size(json, "hidden_size");
  config.blocks = take_size(json, "num_hidden_layers");
  config.positions = take_size(json, "max_position_embeddings");
  config.token_types = take_size(json, "type_vocab_size");
  TransformerBlockOptions& block = config.block;
  block.num_heads = take_size(json, "num_attention_heads");
  block.hidden_dim = take_size(json, "intermediate_size");
  block.norm_position = NormPosition::post;
  block.epsilon = json.take_or("layer_norm_eps", 1e-12);
  block.activation = activation_named(json.take_or<std::string>("hidden_act", "gelu"),
                                      json.path().key("hidden_act"));
  block.use_causal_mask = false;
  expect_value<std::string>(json, "position_embedding_type", "absolute");
  expect_value(json, "is_decoder", false);
}

/// A rule of the names in Hugging Face's files: the end of a weight's path, and of its name there.
struct NameRule {
  const char* path;
  const char* name;
  bool transpose = false;
  int64_t part = 0, parts = 1;
  bool is_scale = false;  ///< whether it is a scale of a norm, with scale_offset
};

constexpr std::array<NameRule, 17> gpt2_names = {{
    {"words/embeddings", "wte.weight"},
    {"positions/embeddings", "wpe.weight"},
    {"words/reverse_embeddings", "lm_head.weight", true},
    {"norm_1/gamma", "ln_1.weight"},
    {"norm_1/beta", "ln_1.bias"},
    {"attention/query/kernel", "attn.c_attn.weight", false, 0, 3},
    {"attention/query/bias", "attn.c_attn.bias", false, 0, 3},
    {"attention/key/kernel", "attn.c_attn.weight", false, 1, 3},
    {"attention/key/bias", "attn.c_attn.bias", false, 1, 3},
    {"attention/value/kernel", "attn.c_attn.weight", false, 2, 3},
    {"attention/value/bias", "attn.c_attn.bias", false, 2, 3},
    {"attention/attention_output/kernel", "attn.c_proj.weight"},
    {"attention/attention_output/bias", "attn.c_proj.bias"},
    {"norm_2/gamma", "ln_2.weight"},
    {"norm_2/beta", "ln_2.bias"},
    {"norm/gamma", "ln_f.weight"},
    {"norm/beta", "ln_f.bias"},
}};
constexpr std::array<NameRule, 4> gpt2_dense_names = {{
    {"up/kernel", "mlp.c_fc.weight"},
    {"up/bias", "mlp.c_fc.bias"},
    {"down/kernel", "mlp.c_proj.weight"},
    {"down/bias", "mlp.c_proj.bias"},
}};
constexpr std::array<NameRule, 18> llama_names = {{
    {"words/embeddings", "embed_tokens.weight"},
    {"words/reverse_embeddings", "lm_head.weight", true},
    {"norm_1/scale", "input_layernorm.weight", false, 0, 1, true},
    {"norm_2/scale", "post_attention_layernorm.weight", false, 0, 1, true},
    {"attention/query/kernel", "self_attn.q_proj.weight", true},
    {"attention/query/bias", "self_attn.q_proj.bias"},
    {"attention/query_norm/scale", "self_attn.q_norm.weight", false, 0, 1, true},
    {"attention/key/kernel", "self_attn.k_proj.weight", true},
    {"attention/key/bias", "self_attn.k_proj.bias"},
    {"attention/key_norm/scale", "self_attn.k_norm.weight", false, 0, 1, true},
    {"attention/value/kernel", "self_attn.v_proj.weight", true},
    {"attention/value/bias", "self_attn.v_proj.bias"},
    {"attention/attention_output/kernel", "self_attn.o_proj.weight", true},
    {"attention/attention_output/bias", "self_attn.o_proj.bias"},
    {"gate/kernel", "mlp.gate_proj.weight", true},
    {"up/kernel", "mlp.up_proj.weight", true},
    {"down/kernel", "mlp.down_proj.weight", true},
    {"norm/scale", "norm.weight", false, 0, 1, true},
}};

/// The norms of Gemma 2 and 3; all else is as in llama_names.
constexpr std::array<NameRule, 4> gemma_2_norm_names = {{
    {"norm_1/scale", "input_layernorm.weight", false, 0, 1, true},
    {"norm_1_after/scale", "post_attention_layernorm.weight", false, 0, 1, true},
    {"norm_2/scale", "pre_feedforward_layernorm.weight", false, 0, 1, true},
    {"norm_2_after/scale", "post_feedforward_layernorm.weight", false, 0, 1, true},
}};

constexpr std::array<NameRule, 23> bert_names = {{
    {"words/embeddings", "embeddings.word_embeddings.weight"},
    {"token_types/embeddings", "embeddings.token_type_embeddings.weight"},
    {"positions/embeddings", "embeddings.position_embeddings.weight"},
    {"norm/gamma", "embeddings.LayerNorm.weight"},
    {"norm/beta", "embeddings.LayerNorm.bias"},
    {"attention/query/kernel", "attention.self.query.weight", true},
    {"attention/query/bias", "attention.self.query.bias"},
    {"attention/key/kernel", "attention.self.key.weight", true},
    {"attention/key/bias", "attention.self.key.bias"},
    {"attention/value/kernel", "attention.self.value.weight", true},
    {"attention/value/bias", "attention.self.value.bias"},
    {"attention/attention_output/kernel", "attention.output.dense.weight", true},
    {"attention/attention_output/bias", "attention.output.dense.bias"},
    {"norm_1/gamma", "attention.output.LayerNorm.weight"},
    {"norm_1/beta", "attention.output.LayerNorm.bias"},
    {"up/kernel", "intermediate.dense.weight", true},
    {"up/bias", "intermediate.dense.bias"},
    {"down/kernel", "output.dense.weight", true},
    {"down/bias", "output.dense.bias"},
    {"norm_2/gamma", "output.LayerNorm.weight"},
    {"norm_2/beta", "output.LayerNorm.bias"},
    {"pooler/kernel", "pooler.dense.weight", true},
    {"pooler/bias", "pooler.dense.bias"},
}};

const NameRule* rule_of(const LanguageModelConfig& config, const std::string& path) {
  const auto in = [&](const auto& rules) -> const NameRule* {
    for (const NameRule& rule : rules) {
      if (path == rule.path) return &rule;
    }
    return nullptr;
  };
  if (config.model_type == "bert") return in(bert_names);
  if (config.model_type == "gpt2") {
    const NameRule* rule = in(gpt2_names);
    return rule ? rule : in(gpt2_dense_names);
  }
  const NameRule* rule = is_gemma_2_or_3(config) ? in(gemma_2_norm_names) : nullptr;
  return rule ? rule : in(llama_names);
}

/// Returns the options of a block.
TransformerBlockOptions block_options(const LanguageModelConfig& config, int64_t i) {
  TransformerBlockOptions block = config.block;
  block.name = str("block_", i);
  if (config.is_local.empty()) return block;
  if (!config.is_local[static_cast<size_t>(i)]) {
    block.sliding_window.reset();
  } else if (config.local_rotary) {
    block.rotary = config.local_rotary;
  }
  return block;
}

/// Returns a number as the computations of a dtype policy have it, as transformers rounds Gemma's
/// scale of the embeddings.
double rounded(double number, const std::string& dtype) {
  return at::scalar_tensor(number, at::TensorOptions(dtype_policy(dtype).compute)).item<double>();
}

/// Makes BERT, of token ids, their mask and their types.
ModelHandle make_bert(const LanguageModelConfig& config, const std::string& dtype) {
  const SymbolicTensor ids = Input({-1}, {.dtype = "int64", .name = "ids"});
  const SymbolicTensor mask = Input({-1}, {.dtype = "int64", .name = "attention_mask"});
  const SymbolicTensor types = Input({-1}, {.dtype = "int64", .name = "token_type_ids"});
  const auto table = [&](int64_t rows, const char* name) {
    return Embedding(rows, config.features, {.name = name, .dtype = dtype});
  };
  SymbolicTensor x =
      table(config.vocabulary, "words")(ids) + table(config.token_types, "token_types")(types);
  x = PositionEmbedding(config.positions, {.add = true, .name = "positions", .dtype = dtype})(x);
  x = LayerNormalization({.epsilon = config.block.epsilon, .name = "norm", .dtype = dtype})(x);
  // All steps, also those of padding, attend to the tokens: (batch, 1, T) for each of T steps.
  const SymbolicTensor tokens = ops::expand_dims(ops::not_equal(mask, 0), 1);
  const SymbolicTensor visible =
      ops::logical_and(tokens, ops::expand_dims(ops::equal(mask, mask), 2));
  TransformerBlockOptions block = config.block;
  block.dtype = dtype;
  for (int64_t i = 0; i < config.blocks; ++i) {
    block.name = str("block_", i);
    x = TransformerBlock(block)({x, visible});
  }
  std::vector<SymbolicTensor> outputs = {x};
  if (config.has_pooler) {
    const Dense pooler(config.features, {.activation = "tanh", .name = "pooler", .dtype = dtype});
    outputs.push_back(pooler(ops::squeeze(ops::slice(x, 1, 0, 1), {1})));
  }
  return Functional({ids, mask, types}, outputs, {.name = config.model_type});
}

}  // namespace

LanguageModelConfig language_model_config(const Json& json, const std::string& where) {
  JsonObject object(json, JsonPath(where).from_python());
  LanguageModelConfig config;
  config.model_type = object.take<std::string>("model_type");
  const std::vector<std::string> known = {"bert",  "gemma",   "gemma2", "gemma3_text", "gpt2",
                                          "llama", "mistral", "qwen2",  "qwen3"};
  if (std::find(known.begin(), known.end(), config.model_type) == known.end()) {
    throw ConfigError(object.path().key("model_type").text(), "one of " + quoted_list(known),
                      in_quotes(config.model_type), suggestion(config.model_type, known));
  }
  config.vocabulary = take_size(object, "vocab_size");
  const bool is_tied = config.model_type == "gpt2" || config.model_type.starts_with("gemma");
  config.tie_weights = object.take_or("tie_word_embeddings", is_tied);
  config.block.use_causal_mask = true;
  if (config.model_type == "gpt2") {
    read_gpt2(object, config);
  } else if (config.model_type == "bert") {
    read_bert(object, config);
  } else {
    read_llama(object, config);
  }
  return config;
}

std::string name_prefix(const LanguageModelConfig& config) {
  if (config.model_type == "bert") return "";
  return config.model_type == "gpt2" ? "transformer." : "model.";
}

ModelHandle make_language_model(const LanguageModelConfig& config, const std::string& dtype,
                                bool has_documents) {
  if (config.model_type == "bert") {
    if (!has_documents) return make_bert(config, dtype);
    throw ConfigError("bert", "document ids are for models that predict the next token",
                      "documents = true", "leave it out");
  }
  std::vector<SymbolicTensor> inputs = {Input({-1}, {.dtype = "int64", .name = "ids"})};
  if (has_documents) inputs.push_back(Input({-1}, {.dtype = "int64", .name = "documents"}));
  // Calls a layer on x, with the document ids if there are any.
  const auto with_documents = [&](const LayerHandle& layer, const SymbolicTensor& x) {
    std::vector<SymbolicTensor> all = inputs;
    all[0] = x;
    return layer(all);
  };
  const ReversibleEmbedding words(config.vocabulary, config.features,
                                  {.tie_weights = config.tie_weights,
                                   .logit_soft_cap = config.logit_soft_cap,
                                   .name = "words",
                                   .dtype = dtype});
  SymbolicTensor x = words(inputs[0]);
  if (config.embedding_scale != 1) x = x * rounded(config.embedding_scale, dtype);
  if (config.positions > 0) {
    const PositionEmbeddingOptions options{.add = true, .name = "positions", .dtype = dtype};
    x = with_documents(PositionEmbedding(config.positions, options), x);
  }
  for (int64_t i = 0; i < config.blocks; ++i) {
    TransformerBlockOptions block = block_options(config, i);
    block.dtype = dtype;
    x = with_documents(TransformerBlock(block), x);
  }
  const double epsilon = config.block.epsilon;
  const BlockNorm norm = config.block.norm;
  x = norm == BlockNorm::layer
          ? LayerNormalization({.epsilon = epsilon, .name = "norm", .dtype = dtype})(x)
          : RMSNormalization({.epsilon = epsilon,
                              .add_unit_offset = norm == BlockNorm::rms_unit_offset,
                              .name = "norm",
                              .dtype = dtype})(x);
  return Functional(inputs, {words.reversed("logits")(x)}, {.name = config.model_type});
}

WeightSource weight_source(const LanguageModelConfig& config, const std::string& path) {
  std::string inner = path, prefix;
  if (path.starts_with("block_")) {
    const size_t slash = path.find('/');
    const std::string number = path.substr(6, slash - 6);
    const std::string& type = config.model_type;
    prefix = type == "gpt2" ? "h." : type == "bert" ? "encoder.layer." : "layers.";
    prefix += number + ".";
    inner = path.substr(std::min(path.size(), slash + 1));
  }
  const NameRule* rule = rule_of(config, inner);
  if (!rule) {
    throw ConfigError(in_quotes(path), "a weight of " + config.model_type, "none of its weights",
                      "pass a model of load_pretrained()");
  }
  return {prefix + rule->name, rule->transpose, rule->part, rule->parts,
          rule->is_scale ? config.scale_offset : 0};
}

}  // namespace tessera::detail
