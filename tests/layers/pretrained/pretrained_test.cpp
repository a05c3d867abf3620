// Folders as Hugging Face's programs write them, against the same models written with ATen alone.
#include <tessera/layers/pretrained/pretrained.hpp>

#include <tessera/tessera.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numbers>
#include <string>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/write_file.hpp>
#include <tessera/framework/io/format/safetensors.hpp>

#include "tests/apps/small_llama.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"
#include "tests/support/gguf_file.hpp"

namespace pretrained_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

using State = std::map<std::string, at::Tensor>;

constexpr int64_t features = 8, hidden = 12, vocabulary = 11, steps = 5;

/// Returns values in (-1, 1) that depend on the name, exact in float32.
at::Tensor values(const std::string& name, const Shape& shape) {
  int64_t seed = 7, count = 1;
  for (const char c : name) seed = (seed * 31 + c) % 1009;
  for (const int64_t extent : shape) count *= extent;
  const at::Tensor numbers = (at::arange(count, at::kLong) * 137 + seed * 53).remainder(127);
  return numbers.sub(63).to(at::kFloat).div(128).reshape(shape);
}

void add(State& state, const std::string& name, const Shape& shape) {
  state[name] = values(name, shape);
}

void write_state(const std::string& path, const State& state) {
  std::vector<SafeTensor> tensors;
  for (const auto& [name, tensor] : state) {
    tensors.push_back({name,
                       tensor.scalar_type() == at::kBFloat16 ? "BF16" : "F32",
                       tensor.sizes().vec(),
                       {static_cast<const std::byte*>(tensor.const_data_ptr()),
                        static_cast<size_t>(tensor.nbytes())}});
  }
  write_safetensors(path, tensors, {{"format", "pt"}});
}

/// A kind of Llama: what its configuration and its weights have.
struct Kind {
  std::string type;
  int64_t key_heads = 2, head_dim = 2;
  bool biases = false, norms = false, tied = true;
  int64_t window = 0;    ///< 0: none
  bool is_yarn = false;  ///< whether positions are scaled by YaRN
};

bool is_gemma_kind(const Kind& kind) { return kind.type.starts_with("gemma"); }

/// Whether it is Gemma 2 or 3, which have more norms and options.
bool is_later_gemma(const Kind& kind) { return is_gemma_kind(kind) && kind.type != "gemma"; }

/// Whether a block of two has the window.
bool has_window(const Kind& kind, const std::string& block) {
  if (kind.window == 0) return false;
  if (is_later_gemma(kind)) return block == "0";
  return kind.type != "qwen2" || block == "1";
}

/// The configuration of Gemma 2 and 3 here: a divisor of the scores, and soft caps.
constexpr double score_scalar = 5, score_cap = 0.7, logit_cap = 0.9;
/// The base of the positions of all blocks, and of those of Gemma 3 with a window.
constexpr double base = 100, local_base = 30;
/// YaRN's options.
constexpr double yarn_factor = 4, yarn_length = 16, yarn_magnitude = 1.25;

constexpr int64_t llama_heads = 4;

Json config_of_kind(const Kind& kind) {
  Json json = {{"model_type", kind.type},
               {"vocab_size", vocabulary},
               {"hidden_size", features},
               {"num_hidden_layers", 2},
               {"num_attention_heads", llama_heads},
               {"num_key_value_heads", kind.key_heads},
               {"head_dim", kind.head_dim},
               {"intermediate_size", hidden},
               {"rms_norm_eps", 1e-5},
               {"rope_theta", base},
               {"tie_word_embeddings", kind.tied}};
  json["hidden_act"] = is_gemma_kind(kind) ? "gelu" : "silu";
  if (kind.window > 0) json["sliding_window"] = kind.window;
  if (kind.type == "qwen2" && kind.window > 0) {
    json["use_sliding_window"] = true;
    json["max_window_layers"] = 1;
  }
  if (is_later_gemma(kind)) json["query_pre_attn_scalar"] = score_scalar;
  if (kind.type == "gemma2") {
    json["attn_logit_softcapping"] = score_cap;
    json["final_logit_softcapping"] = logit_cap;
  }
  if (kind.type == "gemma3_text") {
    json["sliding_window_pattern"] = 2;
    json["rope_local_base_freq"] = local_base;
  }
  if (kind.is_yarn) {
    json["rope_scaling"] = {{"rope_type", "yarn"},
                            {"factor", yarn_factor},
                            {"original_max_position_embeddings", int64_t(yarn_length)},
                            {"beta_fast", 2.0},
                            {"beta_slow", 0.5},
                            {"attention_factor", yarn_magnitude}};
  }
  return json;
}

State state_of_kind(const Kind& kind) {
  State state;
  add(state, "model.embed_tokens.weight", {vocabulary, features});
  add(state, "model.norm.weight", {features});
  if (!kind.tied) add(state, "lm_head.weight", {vocabulary, features});
  for (const std::string i : {"0", "1"}) {
    const std::string block = "model.layers." + i + ".", attention = block + "self_attn.";
    for (const char* name : {"input_layernorm", "post_attention_layernorm"}) {
      add(state, block + name + ".weight", {features});
    }
    if (is_later_gemma(kind)) {
      for (const char* name : {"pre_feedforward_layernorm", "post_feedforward_layernorm"}) {
        add(state, block + name + ".weight", {features});
      }
    }
    for (const std::string name : {"q", "k", "v"}) {
      const int64_t out = (name == "q" ? llama_heads : kind.key_heads) * kind.head_dim;
      add(state, attention + name + "_proj.weight", {out, features});
      if (kind.biases) add(state, attention + name + "_proj.bias", {out});
    }
    if (kind.norms) {
      for (const char* name : {"q_norm", "k_norm"}) {
        add(state, attention + name + ".weight", {kind.head_dim});
      }
    }
    add(state, attention + "o_proj.weight", {features, llama_heads * kind.head_dim});
    add(state, block + "mlp.gate_proj.weight", {hidden, features});
    add(state, block + "mlp.up_proj.weight", {hidden, features});
    add(state, block + "mlp.down_proj.weight", {features, hidden});
  }
  return state;
}

at::Tensor token_ids() {
  return at::tensor({1, 4, 9, 2, 7, 3, 3, 10, 0, 5}, at::kLong).view({2, -1});
}

at::Tensor attended(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t window,
                    double scalar, double cap) {
  const auto heads = [](const at::Tensor& x) { return x.transpose(1, 2); };
  at::Tensor scores = at::matmul(heads(q), heads(k).transpose(-1, -2)) / std::sqrt(scalar);
  if (cap > 0) scores = at::tanh(scores / cap) * cap;
  const at::Tensor at = at::arange(steps);
  at::Tensor visible = at.unsqueeze(0) <= at.unsqueeze(1);
  if (window > 0) visible = visible & (at.unsqueeze(1) - at.unsqueeze(0) < window);
  scores = scores.masked_fill(~visible, -INFINITY).softmax(-1);
  return heads(at::matmul(scores, heads(v))).flatten(2);
}

/// Returns the angle per step of each pair of features, and the factor of rotated ones, by
/// transformers' modeling_rope_utils.py.
std::pair<at::Tensor, double> rotary_rates(const Kind& kind, bool is_local) {
  const int64_t dim = kind.head_dim;
  const double theta = is_local && kind.type == "gemma3_text" ? local_base : base;
  const at::Tensor rate = at::pow(theta, at::arange(0, dim, 2, at::kDouble) / -double(dim));
  if (!kind.is_yarn) return {rate, 1};
  const auto pair_of = [&](double turns) {
    return double(dim) * std::log(yarn_length / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(theta));
  };
  const double low = std::max(std::floor(pair_of(2.0)), 0.0);
  double high = std::min(std::ceil(pair_of(0.5)), double(dim - 1));
  if (low == high) high += 0.001;
  const at::Tensor ramp = ((at::arange(dim / 2, at::kDouble) - low) / (high - low)).clamp(0, 1);
  return {rate / yarn_factor * ramp + rate * (1 - ramp), yarn_magnitude};
}

/// Returns the logits in float64, by the formulas of transformers' modeling_llama.py and the like.
at::Tensor llama_logits(const State& state, const Kind& kind) {
  const auto w = [&](const std::string& name) { return state.at(name).to(at::kDouble); };
  const bool is_gemma = is_gemma_kind(kind), is_later = is_later_gemma(kind);
  const auto norm = [&](const at::Tensor& x, const std::string& name) {
    const at::Tensor scale = w(name + ".weight") + (is_gemma ? 1 : 0);
    return x / (x.square().mean(-1, true) + 1e-5).sqrt() * scale;
  };
  const auto linear = [&](const at::Tensor& x, const std::string& name) {
    const at::Tensor y = at::matmul(x, w(name + ".weight").t());
    return state.count(name + ".bias") ? y + w(name + ".bias") : y;
  };
  const int64_t dim = kind.head_dim;
  const auto rotated = [&](const at::Tensor& x, bool is_local) {
    const auto [rate, magnitude] = rotary_rates(kind, is_local);
    const at::Tensor angle =
        at::outer(at::arange(steps, at::kDouble), rate).repeat({1, 2}).unsqueeze(1);
    const at::Tensor half =
        at::cat({-x.narrow(-1, dim / 2, dim / 2), x.narrow(-1, 0, dim / 2)}, -1);
    return (x * angle.cos() + half * angle.sin()) * magnitude;
  };
  at::Tensor x = w("model.embed_tokens.weight").index({token_ids()});
  if (is_gemma) x = x * std::sqrt(double(features));
  for (const std::string i : {"0", "1"}) {
    const std::string block = "model.layers." + i + ".", attention = block + "self_attn.";
    const at::Tensor y = norm(x, block + "input_layernorm");
    const auto heads = [&](const char* name) {
      return linear(y, attention + name + "_proj").view({2, steps, -1, dim});
    };
    at::Tensor q = heads("q"), k = heads("k"), v = heads("v");
    if (kind.norms) q = norm(q, attention + "q_norm"), k = norm(k, attention + "k_norm");
    const int64_t shared = llama_heads / kind.key_heads;
    const bool is_local = has_window(kind, i);
    k = rotated(k, is_local).repeat_interleave(shared, 2), v = v.repeat_interleave(shared, 2);
    const at::Tensor heads_of_all =
        attended(rotated(q, is_local), k, v, is_local ? kind.window : 0,
                 is_later ? score_scalar : double(dim), kind.type == "gemma2" ? score_cap : 0);
    const at::Tensor seen = linear(heads_of_all, attention + "o_proj");
    x = x + (is_later ? norm(seen, block + "post_attention_layernorm") : seen);
    const at::Tensor z =
        norm(x, block + (is_later ? "pre_feedforward_layernorm" : "post_attention_layernorm"));
    const at::Tensor gate = linear(z, block + "mlp.gate_proj");
    const at::Tensor fed = linear(
        (is_gemma ? at::gelu(gate, "tanh") : at::silu(gate)) * linear(z, block + "mlp.up_proj"),
        block + "mlp.down_proj");
    x = x + (is_later ? norm(fed, block + "post_feedforward_layernorm") : fed);
  }
  const std::string head = kind.tied ? "model.embed_tokens" : "lm_head";
  const at::Tensor logits = at::matmul(norm(x, "model.norm"), w(head + ".weight").t());
  return kind.type == "gemma2" ? at::tanh(logits / logit_cap) * logit_cap : logits;
}

Json gpt2_config() {
  return {{"model_type", "gpt2"}, {"vocab_size", vocabulary}, {"n_embd", features}, {"n_layer", 1},
          {"n_head", 2},          {"n_positions", 6}};
}

State gpt2_state() {
  State state;
  add(state, "wte.weight", {vocabulary, features});
  add(state, "wpe.weight", {6, features});
  for (const std::string norm : {"ln_f", "h.0.ln_1", "h.0.ln_2"}) {
    add(state, norm + ".weight", {features});
    add(state, norm + ".bias", {features});
  }
  const auto conv = [&](const std::string& name, int64_t in, int64_t out) {
    add(state, "h.0." + name + ".weight", {in, out});
    add(state, "h.0." + name + ".bias", {out});
  };
  conv("attn.c_attn", features, 3 * features);
  conv("attn.c_proj", features, features);
  conv("mlp.c_fc", features, 4 * features);
  conv("mlp.c_proj", 4 * features, features);
  return state;
}

at::Tensor gpt2_logits(const State& state) {
  const auto w = [&](const std::string& name) { return state.at(name).to(at::kDouble); };
  const auto norm = [&](const at::Tensor& x, const std::string& name) {
    return at::layer_norm(x, {features}, w(name + ".weight"), w(name + ".bias"), 1e-5);
  };
  const auto conv = [&](const at::Tensor& x, const std::string& name) {
    return at::matmul(x, w("h.0." + name + ".weight")) + w("h.0." + name + ".bias");
  };
  at::Tensor x = w("wte.weight").index({token_ids()}) + w("wpe.weight").narrow(0, 0, steps);
  const std::vector<at::Tensor> heads = conv(norm(x, "h.0.ln_1"), "attn.c_attn").chunk(3, -1);
  const auto split = [&](size_t i) { return heads[i].reshape({2, steps, 2, features / 2}); };
  x = x + conv(attended(split(0), split(1), split(2), 0, features / 2.0, 0), "attn.c_proj");
  x = x + conv(at::gelu(conv(norm(x, "h.0.ln_2"), "mlp.c_fc"), "tanh"), "mlp.c_proj");
  return at::matmul(norm(x, "ln_f"), w("wte.weight").t());
}

Json bert_config() {
  return {{"model_type", "bert"},         {"vocab_size", vocabulary}, {"hidden_size", features},
          {"num_hidden_layers", 2},       {"num_attention_heads", 2}, {"intermediate_size", hidden},
          {"max_position_embeddings", 6}, {"type_vocab_size", 2},     {"hidden_act", "gelu"},
          {"layer_norm_eps", 1e-5}};
}

State bert_state(bool has_pooler) {
  State state;
  const auto linear = [&](const std::string& name, int64_t in, int64_t out) {
    add(state, name + ".weight", {out, in});
    add(state, name + ".bias", {out});
  };
  const auto norm = [&](const std::string& name) {
    add(state, name + ".weight", {features});
    add(state, name + ".bias", {features});
  };
  add(state, "embeddings.word_embeddings.weight", {vocabulary, features});
  add(state, "embeddings.position_embeddings.weight", {6, features});
  add(state, "embeddings.token_type_embeddings.weight", {2, features});
  norm("embeddings.LayerNorm");
  for (const std::string i : {"0", "1"}) {
    const std::string block = "encoder.layer." + i + ".";
    for (const char* name : {"self.query", "self.key", "self.value", "output.dense"}) {
      linear(block + "attention." + name, features, features);
    }
    norm(block + "attention.output.LayerNorm");
    linear(block + "intermediate.dense", features, hidden);
    linear(block + "output.dense", hidden, features);
    norm(block + "output.LayerNorm");
  }
  if (has_pooler) linear("pooler.dense", features, features);
  return state;
}

/// Returns hidden states and the pooler's output in float64, by transformers' modeling_bert.py.
std::vector<at::Tensor> bert_outputs(const State& state, const at::Tensor& mask,
                                     const at::Tensor& types) {
  const auto w = [&](const std::string& name) { return state.at(name).to(at::kDouble); };
  const auto norm = [&](const at::Tensor& x, const std::string& name) {
    return at::layer_norm(x, {features}, w(name + ".weight"), w(name + ".bias"), 1e-5);
  };
  const auto linear = [&](const at::Tensor& x, const std::string& name) {
    return at::matmul(x, w(name + ".weight").t()) + w(name + ".bias");
  };
  at::Tensor x = w("embeddings.word_embeddings.weight").index({token_ids()}) +
                 w("embeddings.token_type_embeddings.weight").index({types}) +
                 w("embeddings.position_embeddings.weight").narrow(0, 0, steps);
  x = norm(x, "embeddings.LayerNorm");
  const at::Tensor hidden_keys = (mask == 0).view({2, 1, 1, steps});
  for (const std::string i : {"0", "1"}) {
    const std::string block = "encoder.layer." + i + ".", attention = block + "attention.";
    const auto heads = [&](const char* name) {
      return linear(x, attention + name).view({2, steps, 2, features / 2}).transpose(1, 2);
    };
    const at::Tensor scores = at::matmul(heads("self.query"), heads("self.key").transpose(-1, -2)) /
                              std::sqrt(features / 2.0);
    const at::Tensor weights = scores.masked_fill(hidden_keys, -INFINITY).softmax(-1);
    const at::Tensor context = at::matmul(weights, heads("self.value")).transpose(1, 2).flatten(2);
    x = norm(x + linear(context, attention + "output.dense"), attention + "output.LayerNorm");
    const at::Tensor inner = at::gelu(linear(x, block + "intermediate.dense"));
    x = norm(x + linear(inner, block + "output.dense"), block + "output.LayerNorm");
  }
  if (!state.count("pooler.dense.weight")) return {x};
  return {x, linear(x.select(1, 0), "pooler.dense").tanh()};
}

/// A folder with a configuration and weights in one file.
struct Folder {
  Folder(const Json& json, const State& state) {
    write_file(path("config.json"), to_json_text(json));
    write_state(path("model.safetensors"), state);
  }
  std::string path(const std::string& name) const { return folder.path() / name; }
  test::TempFolder folder;
};

double difference(const Folder& folder, const at::Tensor& expected, const LayoutMap& layouts = {}) {
  const ModelHandle model =
      load_pretrained(folder.folder.path().string(), {.layouts = layouts, .dtype = "float64"});
  return (model.predict(token_ids()) - expected).abs().max().item<double>();
}

std::vector<Kind> kinds() {
  return {{.type = "llama"},
          {.type = "llama", .tied = false},
          {.type = "mistral", .window = 2},
          {.type = "qwen2", .biases = true},
          {.type = "qwen3", .head_dim = 4, .norms = true},
          {.type = "gemma", .key_heads = 1, .head_dim = 4}};
}

/// Kinds that llama.cpp's files describe otherwise.
std::vector<Kind> kinds_of_folders() {
  return {{.type = "llama", .head_dim = 8, .is_yarn = true},
          {.type = "qwen2", .biases = true, .window = 2},
          {.type = "gemma2", .head_dim = 4, .window = 2},
          {.type = "gemma3_text", .head_dim = 4, .norms = true, .window = 3}};
}

/// Checks that saving gives the tensors that were read.
void check_saved(const Folder& folder, const State& state) {
  const ModelHandle model = load_pretrained(folder.folder.path().string(), {.dtype = "float32"});
  save_pretrained(model, folder.folder.path().string());
  const SafetensorsFile saved(folder.path("model.safetensors"));
  REQUIRE(saved.tensors().size() == state.size());
  for (const auto& [name, tensor] : state) {
    INFO(name);
    const bool is_prefixed = saved.find(name) != nullptr;
    const SafeTensor& found = saved.at(is_prefixed ? name : "transformer." + name);
    REQUIRE(found.shape == tensor.sizes().vec());
    const at::Tensor read = at::from_blob(const_cast<std::byte*>(found.data.data()), found.shape,
                                          at::TensorOptions().dtype(at::kFloat));
    REQUIRE(read.equal(tensor));
  }
}

/// Returns llama.cpp's name of a tensor (its table in gguf-py/gguf/tensor_mapping.py).
std::string gguf_name(std::string name) {
  const std::vector<std::pair<std::string, std::string>> replacements = {
      {"model.layers.", "blk."},
      {"model.embed_tokens", "token_embd"},
      {"model.norm", "output_norm"},
      {"lm_head", "output"},
      {"input_layernorm", "attn_norm"},
      {"post_attention_layernorm", "ffn_norm"},
      {"self_attn.q_norm", "attn_q_norm"},
      {"self_attn.k_norm", "attn_k_norm"},
      {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},
      {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"},
      {"mlp.gate_proj", "ffn_gate"},
      {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"},
      {"h.", "blk."},
      {"wte", "token_embd"},
      {"wpe", "position_embd"},
      {"ln_1", "attn_norm"},
      {"ln_2", "ffn_norm"},
      {"ln_f", "output_norm"},
      {"attn.c_attn", "attn_qkv"},
      {"attn.c_proj", "attn_output"},
      {"mlp.c_fc", "ffn_up"},
      {"mlp.c_proj", "ffn_down"}};
  for (const auto& [from, to] : replacements) {
    const size_t at = name.find(from);
    if (at != std::string::npos && (at == 0 || name[at - 1] == '.')) {
      name.replace(at, from.size(), to);
    }
  }
  return name;
}

/// Orders the rows of each head as llama.cpp's conversion does (LlamaModel.permute).
at::Tensor with_paired_rows(const at::Tensor& rows, int64_t heads) {
  const int64_t half = rows.size(0) / heads / 2;
  return rows.unflatten(0, {heads, 2, half}).transpose(1, 2).flatten(0, 2);
}

void add_state(test::GgufFile& file, const State& state, const std::string& type,
               int64_t key_heads = 1) {
  for (const auto& [name, tensor] : state) {
    at::Tensor value = tensor;
    if (type == "llama" && name.find("q_proj") != std::string::npos) {
      value = with_paired_rows(value, llama_heads);
    }
    if (type == "llama" && name.find("k_proj") != std::string::npos) {
      value = with_paired_rows(value, key_heads);
    }
    if (type == "gemma" && name.find("norm") != std::string::npos) value = value + 1;
    if (name.find(".c_") != std::string::npos && value.dim() == 2) value = value.t();
    // Halves of bfloat16 in all rows, to read more than one type.
    const bool is_half = value.dim() == 2 && name.find("mlp") != std::string::npos;
    value = value.to(is_half ? at::kBFloat16 : at::kFloat).contiguous();
    std::vector<uint64_t> extents(value.sizes().rbegin(), value.sizes().rend());
    file.add_tensor(
        gguf_name(name), extents, is_half ? 30 : 0,
        {static_cast<const char*>(value.const_data_ptr()), static_cast<size_t>(value.nbytes())});
  }
}

test::GgufFile gguf_of_kind(const Kind& kind, const State& state) {
  const std::string type = kind.type == "mistral" ? "llama" : kind.type, start = type + ".";
  test::GgufFile file;
  file.add_text("general.architecture", type);
  file.add_u32(start + "block_count", 2);
  file.add_u32(start + "embedding_length", features);
  file.add_u32(start + "feed_forward_length", hidden);
  file.add_u32(start + "attention.head_count", llama_heads);
  file.add_u32(start + "attention.head_count_kv", kind.key_heads);
  file.add_u32(start + "attention.key_length", kind.head_dim);
  file.add_u32(start + "attention.value_length", kind.head_dim);
  file.add_u32(start + "rope.dimension_count", kind.head_dim);
  file.add_f32(start + "attention.layer_norm_rms_epsilon", 1e-5F);
  file.add_f32(start + "rope.freq_base", 100);
  add_state(file, state, type, kind.key_heads);
  return file;
}

test::GgufFile gguf_of_gpt2(const State& state) {
  test::GgufFile file;
  file.add_text("general.architecture", "gpt2");
  file.add_u32("gpt2.block_count", 1);
  file.add_u32("gpt2.embedding_length", features);
  file.add_u32("gpt2.feed_forward_length", 4 * features);
  file.add_u32("gpt2.attention.head_count", 2);
  file.add_u32("gpt2.context_length", 6);
  file.add_f32("gpt2.attention.layer_norm_epsilon", 1e-5F);
  add_state(file, state, "gpt2");
  return file;
}

/// Returns the largest difference of a GGUF file's logits; the file's epsilon is a float32.
double gguf_difference(const test::GgufFile& file, const at::Tensor& expected,
                       const LayoutMap& layouts = {}) {
  const test::TempFolder folder;
  const std::string path = folder / "a.gguf";
  test::write_file(path, file.bytes());
  const ModelHandle model = load_pretrained(path, {.layouts = layouts, .dtype = "float64"});
  return (model.predict(token_ids()) - expected).abs().max().item<double>();
}

/// Returns the layouts of tensor parallelism on two devices.
LayoutMap sharded_layouts() {
  LayoutMap layouts(create_mesh({{"model", 2}}, virtual_cpus(2)));
  layouts[".*(gate|up)/kernel"] = {unsharded, "model"};
  layouts[".*down/kernel"] = {"model", unsharded};
  layouts[".*(query|key|value)/kernel"] = {unsharded, "model", unsharded};
  layouts["words/embeddings"] = {"model", unsharded};
  return layouts;
}

}  // namespace

TEST_CASE("with document ids, logits are those of each document alone") {
  std::vector<std::pair<Json, State>> models = {{gpt2_config(), gpt2_state()}};
  for (const Kind& kind : kinds()) models.emplace_back(config_of_kind(kind), state_of_kind(kind));
  const at::Tensor documents = at::tensor({1, 1, 2, 2, 2, 1, 1, 2, 2, 2}, at::kLong).view({2, -1});
  for (const auto& [config, state] : models) {
    CAPTURE(config.at("model_type"));
    const Folder folder(config, state);
    const std::string path = folder.folder.path().string();
    const ModelHandle alone = load_pretrained(path, {.dtype = "float64"});
    const ModelHandle packed = load_pretrained(path, {.dtype = "float64", .documents = true});
    const at::Tensor logits = packed.predict_on_batch({.x = {token_ids(), documents}})[0];
    for (const auto& [first, count] : {std::pair(0, 2), std::pair(2, 3)}) {
      const at::Tensor expected = alone.predict(token_ids().narrow(1, first, count).contiguous());
      CHECK((logits.narrow(1, first, count) - expected).abs().max().item<double>() < 1e-12);
    }
  }
  const Folder bert(bert_config(), bert_state(false));
  CHECK_THAT(
      test::error_line([&] { load_pretrained(bert.folder.path().string(), {.documents = true}); }),
      Contains("models that predict the next token"));
}

TEST_CASE("the tokens that end a text are those of generation_config.json, or of config.json") {
  const test::TempFolder folder;
  const auto write = [&](const std::string& name, const Json& json) {
    write_file((folder / name).string(), to_json_text(json));
  };
  const auto stop_tokens = [&] { return pretrained_stop_tokens(folder.path().string()); };
  CHECK(stop_tokens().empty());
  write("config.json", {{"model_type", "llama"}, {"eos_token_id", 2}});
  CHECK(stop_tokens() == std::vector<int64_t>{2});
  write("generation_config.json", {{"eos_token_id", nullptr}});
  CHECK(stop_tokens() == std::vector<int64_t>{2});
  write("generation_config.json", {{"eos_token_id", {5, 7}}});
  CHECK(stop_tokens() == std::vector<int64_t>{5, 7});
  write("generation_config.json", {{"eos_token_id", "</s>"}});
  CHECK_THAT(test::error_line(stop_tokens), Contains("generation_config.json: eos_token_id"));
}

TEST_CASE("models of the Llama family give the logits of their formulas, and save their tensors") {
  std::vector<Kind> all = kinds();
  for (const Kind& kind : kinds_of_folders()) all.push_back(kind);
  for (const Kind& kind : all) {
    INFO(kind.type);
    const State state = state_of_kind(kind);
    const Folder folder(config_of_kind(kind), state);
    REQUIRE(difference(folder, llama_logits(state, kind)) < 1e-12);
    check_saved(folder, state);
  }
}

TEST_CASE("layer_types and rope_parameters of transformers 5 say the same as the older keys") {
  const Kind kind{.type = "gemma3_text", .head_dim = 4, .norms = true, .window = 3};
  const State state = state_of_kind(kind);
  Json json = config_of_kind(kind);
  for (const char* key : {"sliding_window_pattern", "rope_local_base_freq", "rope_theta"}) {
    json.erase(key);
  }
  json["layer_types"] = {"sliding_attention", "full_attention"};
  json["rope_parameters"] = {
      {"full_attention", {{"rope_type", "default"}, {"rope_theta", base}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", local_base}}}};
  REQUIRE(difference(Folder(json, state), llama_logits(state, kind)) < 1e-12);
}

TEST_CASE("the scales of Gemma's norms stay what the file has, also in bfloat16") {
  const Kind kind{.type = "gemma2", .head_dim = 4, .window = 2};
  State state = state_of_kind(kind);
  // 1 + 2^-12 is 1 in bfloat16.
  state["model.norm.weight"] = at::full({features}, std::exp2(-12));
  const Folder folder(config_of_kind(kind), state);
  const ModelHandle model = load_pretrained(folder.folder.path().string(), {.dtype = "bfloat16"});
  for (const Variable& weight : model.weights()) {
    if (weight.path() != "norm/scale") continue;
    CHECK(weight.value().full().to(at::kFloat).equal(state.at("model.norm.weight")));
  }
}

TEST_CASE("GPT-2 gives the logits of its formulas, and saves its tensors") {
  const State state = gpt2_state();
  const Folder folder(gpt2_config(), state);
  REQUIRE(difference(folder, gpt2_logits(state)) < 1e-12);
  check_saved(folder, state);
}

TEST_CASE("BERT gives the states of its formulas, with padding, and saves its tensors") {
  for (const bool has_pooler : {true, false}) {
    INFO(has_pooler);
    const State state = bert_state(has_pooler);
    const Folder folder(bert_config(), state);
    const ModelHandle model = load_pretrained(folder.folder.path().string(), {.dtype = "float64"});
    const at::Tensor mask = at::tensor({1, 1, 1, 1, 1, 1, 1, 1, 0, 0}, at::kLong).view({2, -1});
    const at::Tensor types = at::tensor({0, 0, 1, 1, 1, 0, 1, 1, 0, 0}, at::kLong).view({2, -1});
    const std::vector<at::Tensor> outputs =
        model.predict_all(TensorDataset(Examples{.x = {token_ids(), mask, types}}));
    const std::vector<at::Tensor> expected = bert_outputs(state, mask, types);
    REQUIRE(outputs.size() == (has_pooler ? 2 : 1));
    for (size_t i = 0; i < outputs.size(); ++i) {
      REQUIRE((outputs[i] - expected[i]).abs().max().item<double>() < 1e-12);
    }
    check_saved(folder, state);
  }
}

TEST_CASE("BERT's first names of norms and its prefix are read") {
  State older;
  for (const auto& [name, tensor] : bert_state(true)) {
    std::string old = "bert." + name;
    if (name.ends_with("LayerNorm.weight")) old.replace(old.size() - 6, 6, "gamma");
    if (name.ends_with("LayerNorm.bias")) old.replace(old.size() - 4, 4, "beta");
    older[old] = tensor;
  }
  const Folder folder(bert_config(), bert_state(true)), old_folder(bert_config(), older);
  const auto weights = [](const Folder& each) {
    return load_pretrained(each.folder.path().string())->weights();
  };
  const std::vector<Variable> expected = weights(folder), found = weights(old_folder);
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    REQUIRE(found[i].value().full().equal(expected[i].value().full()));
  }
}

TEST_CASE("a pretrained model is read from several files in bfloat16") {
  const Kind kind{.type = "llama"};
  const State state = state_of_kind(kind);
  State halves[2];
  Json map = Json::object();
  for (const auto& [name, tensor] : state) {
    const size_t half = map.size() % 2;
    halves[half][name] = tensor.to(at::kBFloat16);  // exact, as all values are
    map[name] = half == 0 ? "a.safetensors" : "b.safetensors";
  }
  const Folder folder(config_of_kind(kind), halves[0]);
  std::filesystem::remove(folder.path("model.safetensors"));
  write_state(folder.path("a.safetensors"), halves[0]);
  write_state(folder.path("b.safetensors"), halves[1]);
  test::write_file(folder.path("model.safetensors.index.json"),
                   to_json_text(Json{{"weight_map", map}}));
  REQUIRE(difference(folder, llama_logits(state, kind)) < 1e-12);
}

TEST_CASE("a pretrained model is read into shards") {
  const LayoutMap layouts = sharded_layouts();
  const Kind kind{.type = "llama"};
  const State state = state_of_kind(kind);
  REQUIRE(difference(Folder(config_of_kind(kind), state), llama_logits(state, kind), layouts) <
          1e-12);
  const State gpt2 = gpt2_state();
  REQUIRE(difference(Folder(gpt2_config(), gpt2), gpt2_logits(gpt2), layouts) < 1e-12);
  for (const Kind& each : kinds_of_folders()) {
    INFO(each.type);
    const State all = state_of_kind(each);
    REQUIRE(difference(Folder(config_of_kind(each), all), llama_logits(all, each), layouts) <
            1e-12);
  }
}

TEST_CASE("predictions of a pretrained model leave its weights where the layouts placed them") {
  const Kind kind{.type = "llama"};
  const Folder folder(config_of_kind(kind), state_of_kind(kind));
  const LayoutMap layouts = sharded_layouts();
  const ModelHandle model = load_pretrained(folder.folder.path().string(), {.layouts = layouts});
  model.predict(token_ids());
  for (const Variable& weight : model.weights()) {
    INFO(weight.path());
    CHECK(weight.layout().mesh() == layouts.mesh());
    if (weight.path() == "words/embeddings") CHECK(weight.layout().num_shards(0) == 2);
  }
  LayoutMap wrong = sharded_layouts();
  wrong["block_7/up/kernel"] = {unsharded, "model"};
  const std::string path = folder.folder.path().string();
  CHECK_THROWS_WITH(load_pretrained(path, {.layouts = wrong}), Contains("block_7/up/kernel"));
}

TEST_CASE("GGUF files give the logits of the folders that they were converted from") {
  std::vector<Kind> all = kinds();
  all.push_back({.type = "llama", .head_dim = 4, .tied = false});
  all.push_back({.type = "mistral", .head_dim = 6});
  for (const Kind& kind : all) {
    if (kind.window > 0) continue;  // llama.cpp's files of Mistral's models have no windows.
    INFO(kind.type << ", head_dim " << kind.head_dim);
    const State state = state_of_kind(kind);
    REQUIRE(gguf_difference(gguf_of_kind(kind, state), llama_logits(state, kind)) < 1e-6);
  }
  const State gpt2 = gpt2_state();
  REQUIRE(gguf_difference(gguf_of_gpt2(gpt2), gpt2_logits(gpt2)) < 1e-6);
}

TEST_CASE("GGUF files are read into shards") {
  const LayoutMap layouts = sharded_layouts();
  const Kind kind{.type = "llama", .head_dim = 4};
  const State state = state_of_kind(kind), gpt2 = gpt2_state();
  REQUIRE(gguf_difference(gguf_of_kind(kind, state), llama_logits(state, kind), layouts) < 1e-6);
  REQUIRE(gguf_difference(gguf_of_gpt2(gpt2), gpt2_logits(gpt2), layouts) < 1e-6);
}

TEST_CASE("a GGUF file is saved as a folder with its configuration") {
  for (const Kind& kind :
       {Kind{.type = "llama", .head_dim = 4}, Kind{.type = "qwen2", .biases = true},
        Kind{.type = "gemma", .key_heads = 1, .head_dim = 4}}) {
    INFO(kind.type);
    const State state = state_of_kind(kind);
    const test::TempFolder folder;
    const std::string path = folder / "a.gguf", saved = folder / "saved";
    test::write_file(path, gguf_of_kind(kind, state).bytes());
    const ModelHandle model = load_pretrained(path, {.dtype = "float64"});
    save_pretrained(model, saved, {.like = path});
    const ModelHandle again = load_pretrained(saved, {.dtype = "float64"});
    const at::Tensor first = model.predict(token_ids()), second = again.predict(token_ids());
    REQUIRE((first - second).abs().max().item<double>() < 1e-14);
    const SafetensorsFile file(saved + "/model.safetensors");
    REQUIRE(file.tensors().size() == state.size());
    const std::string name = "model.layers.1.self_attn.k_proj.weight";
    const at::Tensor key = at::from_blob(const_cast<std::byte*>(file.at(name).data.data()),
                                         file.at(name).shape, at::TensorOptions(at::kDouble));
    REQUIRE(key.equal(state.at(name).to(at::kDouble)));
  }
}

TEST_CASE("the scaled positions of Llama 3 are found by their factors in a GGUF file") {
  const Kind kind{.type = "llama", .head_dim = 4};
  const State state = state_of_kind(kind);
  const auto loaded = [&](const at::Tensor& factors) {
    const test::TempFolder folder;
    test::GgufFile file = gguf_of_kind(kind, state);
    file.add_tensor("rope_freqs.weight", {2}, 0,
                    {static_cast<const char*>(factors.const_data_ptr()), 8});
    test::write_file(folder / "a.gguf", file.bytes());
    const ModelHandle model = load_pretrained((folder / "a.gguf").string(), {.dtype = "float64"});
    return model.predict(token_ids());
  };
  // Wavelengths of 6.3 and 63 steps are short beside 8192, so no frequency is divided.
  REQUIRE((loaded(at::ones({2})) - llama_logits(state, kind)).abs().max().item<double>() < 1e-6);
  REQUIRE_THAT(test::error_line([&] {
                 loaded(at::tensor({1.0F, 3.0F}));
               }),
               Contains("rope_freqs.weight"));
}

TEST_CASE("damaged GGUF files of models are refused by name") {
  const Kind kind{.type = "llama"};
  const State state = state_of_kind(kind);
  const auto error = [&](const test::GgufFile& file) {
    return test::error_line([&] { gguf_difference(file, at::zeros({})); });
  };
  State damaged = state;
  damaged.erase("model.layers.1.mlp.up_proj.weight");
  REQUIRE_THAT(error(gguf_of_kind(kind, damaged)),
               Contains("a.gguf") && Contains("layers.1.mlp.up_proj.weight"));
  damaged = state;
  damaged.erase("model.embed_tokens.weight");
  REQUIRE_THAT(error(gguf_of_kind(kind, damaged)), Contains("token_embd.weight"));
  damaged = state;
  damaged["model.layers.0.self_attn.q_proj.weight"] = at::zeros({llama_heads * 4, features});
  REQUIRE_THAT(error(gguf_of_kind(kind, damaged)), Contains("blk.0.attn_q.weight"));
  test::GgufFile file;
  file.add_text("general.architecture", "rwkv7");
  REQUIRE_THAT(error(file), Contains("general.architecture") && Contains("rwkv7"));
  file = {};
  file.add_text("general.architecture", "gemma2");
  REQUIRE_THAT(error(file), Contains("general.architecture") && Contains("gemma2"));
  file = {};
  file.add_text("general.architecture", "llama");
  REQUIRE_THAT(error(file), Contains("a.gguf") && Contains("token_embd.weight"));
  file = gguf_of_kind(kind, state);
  file.add_u32("llama.expert_count", 8);
  REQUIRE_THAT(error(file), Contains("llama.expert_count") && Contains("8"));
  file = gguf_of_kind(kind, state);
  file.add_text("llama.rope.scaling.type", "yarn");
  REQUIRE_THAT(error(file), Contains("llama.rope.scaling.type") && Contains("yarn"));
}

TEST_CASE("damaged folders of pretrained models are refused by name") {
  const Kind kind{.type = "llama"};
  const State state = state_of_kind(kind);
  const auto error = [&](const Json& json, const State& weights) {
    const Folder folder(json, weights);
    try {
      load_pretrained(folder.folder.path().string());
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  State damaged = state;
  damaged.erase("model.layers.1.mlp.up_proj.weight");
  REQUIRE_THAT(error(config_of_kind(kind), damaged),
               Contains("model.safetensors") && Contains("layers.1.mlp.up_proj.weight"));
  damaged = state;
  damaged["model.norm.weight"] = at::zeros({features + 1});
  REQUIRE_THAT(error(config_of_kind(kind), damaged), Contains("model.norm.weight"));
  damaged = state;
  damaged["norm.weight"] = at::zeros({features});
  REQUIRE_THAT(error(config_of_kind(kind), damaged), Contains("one tensor"));
  const std::vector<std::pair<std::string, Json>> changes = {
      {"model_type", "lama"},
      {"hidden_act", "swishy"},
      {"vocab_size", 0},
      {"mlp_bias", true},
      {"hidden_size", Json("8x")},
      {"rope_scaling", Json{{"rope_type", "dynamic"}, {"factor", 2.0}}}};
  const std::vector<std::pair<std::string, Json>> later = {
      {"layer_types", Json::array({"sliding_attention"})},
      {"layer_types", Json::array({"sliding_attention", "chunked_attention"})},
      {"query_pre_attn_scalar", 0},
      {"use_bidirectional_attention", true},
      {"sliding_window_pattern", 0}};
  for (const auto& [key, value] : changes) {
    INFO(key);
    Json json = config_of_kind(kind);
    json[key] = value;
    const std::string named = key == "rope_scaling" ? "rope_type" : key;
    REQUIRE_THAT(error(json, state), Contains("config.json") && Contains(named));
  }
  for (const auto& [key, value] : later) {
    INFO(key);
    Json json = config_of_kind({.type = "gemma2", .window = 2});
    json[key] = value;
    REQUIRE_THAT(error(json, state), Contains("config.json") && Contains(key));
  }
  Json json = config_of_kind(kind);
  json["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 2.0}, {"truncate", false}};
  REQUIRE_THAT(error(json, state), Contains("config.json") && Contains("truncate"));
}

TEST_CASE("a pretrained model is exported with its tokenizer, and computes texts on a mesh") {
  const test::TempFolder folder;
  const std::string base = folder / "base", path = folder / "export";
  std::filesystem::create_directory(base);
  test::write_small_llama(base);
  const ModelHandle model = load_pretrained(base);
  const PretrainedTokenizer tokenize(load_tokenizer(base), {.length = 12, .name = "words"});
  export_model(model, path, {.text = tokenize, .sample = {"abc", "one, two"}});
  const std::vector<std::string> texts = {"Hello", "abcabcabc"};
  const at::Tensor ids = tokenize.encode({"Hello", "abcabcabc"}).ids;
  const at::Tensor expected = model.predict(ids);
  CHECK(at::allclose(load_export(path).predict(texts), expected, 1e-5, 1e-5));
  LayoutMap layouts(create_mesh({{"batch", 1}, {"model", 2}}, virtual_cpus(2)));
  layouts["words/embeddings"] = {"model", unsharded};
  layouts[".*(query|key|value)/kernel"] = {unsharded, "model", unsharded};
  const ExportedModel cut = load_export(path, {.layouts = layouts});
  CHECK(at::allclose(cut.predict(texts), expected, 1e-5, 1e-5));
}

}  // namespace pretrained_test
