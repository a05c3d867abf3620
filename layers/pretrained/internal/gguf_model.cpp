#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/format/gguf_reader.hpp>
#include <tessera/layers/pretrained/internal/pretrained_file.hpp>

namespace tessera::detail {
namespace {

/// Names in GGUF files and in Hugging Face's; those of blocks come after "blk.I." and the like.
struct GgufName {
  const char* gguf;
  const char* name;
};

constexpr std::array<GgufName, 15> gguf_llama_names = {{
    {"token_embd.weight", "embed_tokens.weight"},
    {"output.weight", "lm_head.weight"},
    {"output_norm.weight", "norm.weight"},
    {"attn_norm.weight", "input_layernorm.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"attn_q.", "self_attn.q_proj."},
    {"attn_k.", "self_attn.k_proj."},
    {"attn_v.", "self_attn.v_proj."},
    {"attn_output.", "self_attn.o_proj."},
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
    {"rope_freqs.weight", "rope_freqs.weight"},
}};
constexpr std::array<GgufName, 10> gguf_gpt2_names = {{
    {"token_embd.weight", "wte.weight"},
    {"position_embd.weight", "wpe.weight"},
    {"output.weight", "lm_head.weight"},
    {"output_norm.", "ln_f."},
    {"attn_norm.", "ln_1."},
    {"ffn_norm.", "ln_2."},
    {"attn_qkv.", "attn.c_attn."},
    {"attn_output.", "attn.c_proj."},
    {"ffn_up.", "mlp.c_fc."},
    {"ffn_down.", "mlp.c_proj."},
}};

/// The metadata of an architecture.
class GgufMetadata {
 public:
  explicit GgufMetadata(const GgufReader& file) : file_(file) {
    const std::optional<Json> name = find("general.architecture");
    if (!name || !name->is_string()) fail("general.architecture", "a text", name);
    architecture_ = name->get<std::string>();
  }

  const std::string& architecture() const { return architecture_; }

  std::optional<Json> find(const std::string& key) const {
    const auto found = file_.metadata().find(key);
    if (found == file_.metadata().end()) return std::nullopt;
    return found->second;
  }
  std::string key(const char* end) const { return architecture_ + "." + end; }

  /// Adds a number of the file to a configuration, if the file has it.
  void add(Json& config, const char* name, const char* end) const {
    const std::optional<Json> value = find(key(end));
    if (!value) return;
    if (!value->is_number()) fail(key(end), "a number", value);
    config[name] = *value;
  }
  void add_required(Json& config, const char* name, const char* end) const {
    if (!find(key(end))) fail(key(end), "a number", std::nullopt);
    add(config, name, end);
  }
  /// Throws FileError if the file has a number that is not `expected`, which is implemented.
  void expect(const char* end, double expected) const {
    const std::optional<Json> value = find(key(end));
    if (!value || (value->is_number() && value->get<double>() == expected)) return;
    fail(key(end), str("only ", expected, " is implemented"), value);
  }
  double number_or(const char* end, double other) const {
    const std::optional<Json> value = find(key(end));
    if (!value) return other;
    if (!value->is_number()) fail(key(end), "a number", value);
    return value->get<double>();
  }

  [[noreturn]] void fail(const std::string& key, const std::string& expected,
                         const std::optional<Json>& value) const {
    std::string received = "none";
    if (value) received = value->is_null() ? "an array" : value->type_name();
    if (value && value->is_number()) received = to_json_text(*value, -1);
    if (value && value->is_string()) received = in_quotes(value->get<std::string>());
    throw FileError(str(file_.path(), ", ", key), expected, received, "load another model");
  }

 private:
  const GgufReader& file_;
  std::string architecture_;
};

/// A GGUF file, with Hugging Face's names and order of axes.
class GgufModel final : public PretrainedFile {
 public:
  explicit GgufModel(const std::string& path) : file_(path), metadata_(file_) {
    const std::string& kind = metadata_.architecture();
    const std::vector<std::string> known = {"gemma", "gpt2", "llama", "qwen2", "qwen3"};
    if (std::find(known.begin(), known.end(), kind) == known.end()) {
      metadata_.fail("general.architecture", "one of " + quoted_list(known), Json(kind));
    }
    is_gpt2_ = kind == "gpt2";
    for (const GgufTensor& tensor : file_.tensors()) {
      Shape shape = tensor.shape;
      const std::string name = hugging_face_name(tensor.name);
      if (is_swapped(name, shape)) std::swap(shape[0], shape[1]);
      tensors_.push_back({name, tensor.name, gguf_type(tensor.type).name, shape});
    }
    config_ = kind == "gpt2" ? gpt2_config() : llama_config();
    // Each head has pairs of rows (2i, 2i + 1) where Hugging Face's files have (i, i + half).
    if (kind == "llama") {
      query_heads_ = config_.at("num_attention_heads").get<int64_t>();
      key_heads_ = config_.at("num_key_value_heads").get<int64_t>();
    }
  }

  Json config() const override { return config_; }
  std::string config_path() const override { return file_.path(); }
  std::string path() const override { return file_.path(); }
  double scale_offset() const override { return metadata_.architecture() == "gemma" ? 1 : 0; }
  const std::vector<PretrainedTensor>& tensors() const override { return tensors_; }

  at::Tensor read(size_t tensor, const Rectangle& area) const override {
    const auto& [name, label, dtype, shape, is_floating] = tensors_[tensor];
    if (is_swapped(name, shape)) {
      return read_stored(tensor, {{area.begin[1], area.begin[0]}, {area.end[1], area.end[0]}}).t();
    }
    const int64_t heads = paired_heads(name);
    return heads == 0 ? read_stored(tensor, area) : read_paired(tensor, area, heads);
  }

 private:
  std::string hugging_face_name(const std::string& gguf) const {
    std::string prefix, rest = gguf;
    if (gguf.starts_with("blk.")) {
      const size_t end = std::min(gguf.find('.', 4), gguf.size() - 1) + 1;
      prefix = (is_gpt2_ ? "h." : "layers.") + gguf.substr(4, end - 4);
      rest = gguf.substr(end);
    }
    const auto translated = [&](const auto& names) {
      for (const GgufName& each : names) {
        const std::string start = each.gguf;
        const bool is_prefix = start.ends_with('.') && rest.starts_with(start);
        if (is_prefix || rest == start) return prefix + each.name + rest.substr(start.size());
      }
      return gguf;
    };
    return is_gpt2_ ? translated(gguf_gpt2_names) : translated(gguf_llama_names);
  }

  /// Returns whether Hugging Face's files have the transpose of a tensor: GPT-2's kernels.
  bool is_swapped(const std::string& name, const Shape& shape) const {
    return is_gpt2_ && shape.size() == 2 && name.find(".c_") != std::string::npos;
  }

  int64_t paired_heads(const std::string& name) const {
    if (name.find("self_attn.q_proj.") != std::string::npos) return query_heads_;
    if (name.find("self_attn.k_proj.") != std::string::npos) return key_heads_;
    return 0;
  }

  at::Tensor read_stored(size_t tensor, const Rectangle& area) const {
    at::Tensor block = at::empty(area.shape(), at::kFloat);
    file_.read(file_.tensors()[tensor], area,
               {block.data_ptr<float>(), static_cast<size_t>(block.numel())});
    return block;
  }

  at::Tensor read_paired(size_t tensor, const Rectangle& area, int64_t heads) const {
    const GgufTensor& stored = file_.tensors()[tensor];
    const int64_t rows = stored.shape.front();
    if (heads < 1 || heads > rows || rows % (2 * heads) != 0) {
      throw FileError(file_.path(),
                      str("tensor ", in_quotes(stored.name), " has 2 or more rows for each of ",
                          heads, " heads"),
                      to_string(stored.shape), "get the file again");
    }
    // Reads entire heads.
    const int64_t head = rows / heads, first = area.begin[0] / head * head;
    Rectangle wide = area;
    wide.begin[0] = first;
    wide.end[0] = (area.end[0] + head - 1) / head * head;
    const at::Tensor pairs = read_stored(tensor, wide);
    return pairs.unflatten(0, {-1, head / 2, 2})
        .transpose(1, 2)
        .flatten(0, 2)
        .narrow(0, area.begin[0] - first, area.size(0))
        .contiguous();
  }

  const PretrainedTensor* find(const std::string& name) const {
    const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                    [&](const auto& each) { return each.name == name; });
    return found == tensors_.end() ? nullptr : &*found;
  }

  int64_t vocabulary(const char* name) const {
    const PretrainedTensor* words = find(name);
    if (words && words->shape.size() == 2) return words->shape[0];
    throw FileError(file_.path(), "the matrix \"token_embd.weight\"",
                    words ? to_string(words->shape) : "a file without it", "get the file again");
  }

  Json gpt2_config() const {
    Json config = {{"model_type", "gpt2"},
                   {"vocab_size", vocabulary("wte.weight")},
                   {"tie_word_embeddings", find("lm_head.weight") == nullptr}};
    metadata_.add_required(config, "n_embd", "embedding_length");
    metadata_.add_required(config, "n_layer", "block_count");
    metadata_.add_required(config, "n_head", "attention.head_count");
    metadata_.add_required(config, "n_positions", "context_length");
    metadata_.add_required(config, "n_inner", "feed_forward_length");
    metadata_.add_required(config, "layer_norm_epsilon", "attention.layer_norm_epsilon");
    return config;
  }

  Json llama_config() const {
    Json config = {{"model_type", metadata_.architecture()},
                   {"vocab_size", vocabulary("embed_tokens.weight")},
                   {"tie_word_embeddings", find("lm_head.weight") == nullptr},
                   {"attention_bias", find("layers.0.self_attn.o_proj.bias") != nullptr}};
    metadata_.add_required(config, "hidden_size", "embedding_length");
    metadata_.add_required(config, "num_hidden_layers", "block_count");
    metadata_.add_required(config, "num_attention_heads", "attention.head_count");
    config["num_key_value_heads"] = config["num_attention_heads"];
    metadata_.add(config, "num_key_value_heads", "attention.head_count_kv");
    metadata_.add(config, "head_dim", "attention.key_length");
    metadata_.add_required(config, "intermediate_size", "feed_forward_length");
    metadata_.add_required(config, "rms_norm_eps", "attention.layer_norm_rms_epsilon");
    config["rope_theta"] = metadata_.number_or("rope.freq_base", 10000);
    if (metadata_.architecture() != "gemma") config["hidden_act"] = "silu";
    metadata_.expect("expert_count", 0);
    metadata_.expect("logit_scale", 1);
    const double heads = config["num_attention_heads"].get<double>();
    const double features = config["hidden_size"].get<double>();
    const double head_dim = config.value("head_dim", heads > 0 ? features / heads : 0.0);
    metadata_.expect("attention.value_length", head_dim);
    metadata_.expect("rope.dimension_count", head_dim);
    add_scaling(config);
    return config;
  }

  /// Adds a scaling of rotary positions.
  void add_scaling(Json& config) const {
    double factor = metadata_.number_or("rope.scale_linear", 1);
    const std::string key = metadata_.key("rope.scaling.type");
    const std::optional<Json> kind = metadata_.find(key);
    if (kind && *kind != "none" && *kind != "linear") metadata_.fail(key, "none or linear", kind);
    if (kind && *kind == "linear") factor = metadata_.number_or("rope.scaling.factor", factor);
    if (factor != 1) config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", factor}};
    if (find("rope_freqs.weight")) config["rope_scaling"] = llama3_scaling(config);
  }

  /// Returns the options of Llama 3 that give the factors in the file, which has no options.
  Json llama3_scaling(const Json& config) const {
    const size_t tensor = static_cast<size_t>(find("rope_freqs.weight") - tensors_.data());
    const at::Tensor stored =
        read_stored(tensor, {Shape(tensors_[tensor].shape.size(), 0), tensors_[tensor].shape})
            .flatten()
            .to(at::kDouble);
    // All models of Llama 3 have these options, and factors that differ.
    constexpr double low = 1, high = 4, length = 8192;
    const int64_t count = stored.numel();
    const double factor = count > 0 ? stored.max().item<double>() : 0;
    const at::Tensor wavelength =
        2 * std::numbers::pi *
        at::pow(config.at("rope_theta").get<double>(),
                at::arange(count, at::kDouble) / std::max<double>(1, double(count)));
    const at::Tensor smooth = ((length / wavelength - low) / (high - low)).clamp(0, 1);
    const at::Tensor factors = 1 / ((1 - smooth) / factor + smooth);
    if (factor < 1 || !at::allclose(stored, factors, 1e-4, 1e-4)) {
      throw FileError(file_.path(), "the factors of Llama 3 in the tensor \"rope_freqs.weight\"",
                      "others", "load another model");
    }
    return {{"rope_type", "llama3"},
            {"factor", factor},
            {"low_freq_factor", low},
            {"high_freq_factor", high},
            {"original_max_position_embeddings", static_cast<int64_t>(length)}};
  }

  GgufReader file_;
  GgufMetadata metadata_;
  bool is_gpt2_ = false;
  std::vector<PretrainedTensor> tensors_;
  Json config_;
  int64_t query_heads_ = 0, key_heads_ = 0;
};

}  // namespace

std::unique_ptr<PretrainedFile> open_gguf(const std::string& path) {
  return std::make_unique<GgufModel>(path);
}

}  // namespace tessera::detail
