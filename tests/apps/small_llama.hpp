#pragma once

#include <map>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/framework/io/format/safetensors.hpp>

#include "tests/support/files.hpp"
#include "tests/support/small_tokenizer.hpp"

namespace tessera::test {

/// The token that ends a text of write_small_llama(), and the number of its tokens.
constexpr int64_t small_llama_end = 256, small_llama_tokens = 260;

/// The sizes of write_small_llama().
struct SmallLlama {
  int64_t features = 16, hidden = 24, heads = 4, key_heads = 2, head_dim = 4, blocks = 2;
};

/// Writes a random Llama to a folder, as Hugging Face's programs do, with a tokenizer of bytes and
/// the special tokens of ChatML.
inline void write_small_llama(const std::string& folder, const SmallLlama& size = {}) {
  const auto& [features, hidden, heads, key_heads, head_dim, blocks] = size;
  std::map<std::string, at::Tensor> state;
  const auto add = [&](const std::string& name, const std::vector<int64_t>& shape) {
    int64_t seed = 7, count = 1;
    for (const char c : name) seed = (seed * 31 + c) % 1009;
    for (const int64_t extent : shape) count *= extent;
    const at::Tensor numbers = (at::arange(count, at::kLong) * 137 + seed * 53).remainder(127);
    const at::Tensor values = numbers.sub(63).to(at::kFloat).div(250).reshape(shape);
    state[name] = shape.size() == 1 ? at::ones(shape) : values;
  };
  add("model.embed_tokens.weight", {small_llama_tokens, features});
  // Only printable characters have logits that are not 0.
  state["model.embed_tokens.weight"].narrow(0, 0, 32).zero_();
  state["model.embed_tokens.weight"].narrow(0, 127, small_llama_tokens - 127).zero_();
  add("model.norm.weight", {features});
  for (int64_t i = 0; i < blocks; ++i) {
    const std::string block = detail::str("model.layers.", i, "."),
                      attention = block + "self_attn.";
    add(block + "input_layernorm.weight", {features});
    add(block + "post_attention_layernorm.weight", {features});
    add(attention + "q_proj.weight", {heads * head_dim, features});
    add(attention + "k_proj.weight", {key_heads * head_dim, features});
    add(attention + "v_proj.weight", {key_heads * head_dim, features});
    add(attention + "o_proj.weight", {features, heads * head_dim});
    add(block + "mlp.gate_proj.weight", {hidden, features});
    add(block + "mlp.up_proj.weight", {hidden, features});
    add(block + "mlp.down_proj.weight", {features, hidden});
  }
  std::vector<detail::SafeTensor> tensors;
  for (const auto& [name, tensor] : state) {
    tensors.push_back({name,
                       "F32",
                       tensor.sizes().vec(),
                       {static_cast<const std::byte*>(tensor.const_data_ptr()),
                        static_cast<size_t>(tensor.nbytes())}});
  }
  detail::write_safetensors(folder + "/model.safetensors", std::move(tensors), {{"format", "pt"}});
  write_file(folder + "/config.json", to_json_text({{"model_type", "llama"},
                                                    {"vocab_size", small_llama_tokens},
                                                    {"hidden_size", features},
                                                    {"num_hidden_layers", blocks},
                                                    {"num_attention_heads", heads},
                                                    {"num_key_value_heads", key_heads},
                                                    {"head_dim", head_dim},
                                                    {"intermediate_size", hidden},
                                                    {"rms_norm_eps", 1e-5},
                                                    {"rope_theta", 10000.0},
                                                    {"tie_word_embeddings", true},
                                                    {"eos_token_id", small_llama_end},
                                                    {"hidden_act", "silu"}}));
  write_file(folder + "/tokenizer.json",
             small_tokenizer_json({"<|endoftext|>", "<|im_start|>", "<|im_end|>"}));
}

}  // namespace tessera::test
