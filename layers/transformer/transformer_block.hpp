#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/ops/attention/rotary.hpp>

namespace tessera {

/// Which normalization a TransformerBlock uses: LayerNormalization, RMSNormalization, or the latter
/// with add_unit_offset (Gemma).
enum class BlockNorm : uint8_t { layer, rms, rms_unit_offset };
/// Returns the names in the order of the enumerators.
inline std::array<const char*, 3> names_of(BlockNorm) {
  return {"layer", "rms", "rms_unit_offset"};
}

/// The position of a TransformerBlock's norms: before attention and feed-forward layers (GPT-2,
/// Llama), after their residual sums (BERT), or before and after the layers (Gemma 2).
enum class NormPosition : uint8_t { pre, post, both };
/// Returns the names in the order of the enumerators.
inline std::array<const char*, 3> names_of(NormPosition) { return {"pre", "post", "both"}; }

/// The options of TransformerBlock.
struct TransformerBlockOptions {
  int64_t num_heads = 0;   ///< heads of queries (required)
  int64_t hidden_dim = 0;  ///< units between the dense layers (required without feed_forward)
  std::optional<int64_t> num_key_value_heads =
      std::nullopt;  ///< heads of keys and values, a divisor of num_heads (default: num_heads)
  std::optional<int64_t> head_dim = std::nullopt;  ///< default: features / num_heads
  BlockNorm norm = BlockNorm::layer;               ///< which normalization
  NormPosition norm_position = NormPosition::pre;  ///< where it is
  double epsilon = 1e-6;                           ///< epsilon of all normalizations
  ActivationHandle activation = "relu";            ///< activation between the dense layers
  /// Whether the dense layers are down(activation(gate(x)) · up(x)) (SwiGLU with "silu", GeGLU with
  /// "gelu"), otherwise down(activation(up(x))).
  bool gated = false;
  bool use_bias = true;  ///< whether dense layers and projections have a bias
  std::optional<bool> use_query_bias =
      std::nullopt;  ///< whether those of query, key and value have one (default: use_bias)
  std::optional<bool> use_output_bias =
      std::nullopt;  ///< whether that of attention's output has one (default: use_bias)
  bool normalize_queries = false;  ///< whether RMS norms of each head's query and key follow
  /// How queries and keys are rotated by their positions (default: not); `axis` is not read.
  std::optional<ops::RotaryOptions> rotary = std::nullopt;
  std::optional<int64_t> sliding_window = std::nullopt;  ///< attends only to steps closer than this
  std::optional<double> attention_scale =
      std::nullopt;  ///< scale of the scores (default: 1 / sqrt(head_dim))
  std::optional<double> attention_soft_cap = std::nullopt;  ///< c of scores c · tanh(scores / c)
  bool use_causal_mask = false;                             ///< whether to mask later steps
  double dropout = 0;            ///< dropout rate before each residual sum
  double attention_dropout = 0;  ///< dropout rate of the attention weights
  std::optional<LayerHandle> feed_forward = std::nullopt;   ///< replaces the dense layers
  InitializerHandle kernel_initializer = "glorot_uniform";  ///< initializer of the kernels
  InitializerHandle bias_initializer = "zeros";             ///< initializer of the biases
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// A transformer block: attention and feed-forward layers, each with a residual sum. With options,
/// it is the block of GPT-2, BERT, Llama, Mistral, Qwen 2 and 3, and Gemma 1 to 3:
///
///     TransformerBlock({.num_heads = 9, .hidden_dim = 1536, .num_key_value_heads = 3,
///                       .norm = BlockNorm::rms, .epsilon = 1e-5, .activation = "silu",
///                       .gated = true, .use_bias = false,
///                       .rotary = ops::RotaryOptions{.max_wavelength = 1e5},
///                       .use_causal_mask = true, .name = "block_1"})  // SmolLM2's
///
/// With norm_position "pre": y = x + attention(norm_1(x)), then y + down(up(norm_2(y))); "post":
/// y = norm_1(x + attention(x)), then norm_2(y + …); "both": y = x + norm_1_after(attention(
/// norm_1(x))), and likewise with norm_2_after.
///
/// Shape: (batch, T, features), then optionally an attention mask, bool (batch, T, T), true where a
/// step may attend, or document ids, integers (batch, T) -> (batch, T, features). Steps of a row
/// with the same document id are one document: they attend to each other only, and their rotary
/// positions begin at 0. The mask of the input excludes steps and passes through. With
/// use_causal_mask and a KeyValueCache, the input holds the new steps only. Weights:
/// attention/{query,key,value,attention_output}/{kernel,bias} as in MultiHeadAttention and
/// GroupQueryAttention; attention/{query_norm,key_norm}/scale (head_dim); norm_1 and norm_2, and
/// norm_1_after and norm_2_after; up, gate and down, or those of feed_forward under its name.
/// Communication: that of its layers. Heads and hidden units sharded over the same mesh dimension
/// cost two all-reduces forward and two backward (Megatron). A soft cap computes the scores of all
/// steps in memory, and gathers keys and values of a sharded sequence.
class TransformerBlock : public LayerHandle {
 public:
  /// Throws ConfigError for an invalid option.
  explicit TransformerBlock(const TransformerBlockOptions& options);
};

}  // namespace tessera
