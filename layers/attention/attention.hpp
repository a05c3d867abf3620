#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// How Attention scores a query against a key.
enum class ScoreMode : uint8_t { dot, concat };
/// Returns Keras' names in the order of the enumerators.
inline std::array<const char*, 2> names_of(ScoreMode) { return {"dot", "concat"}; }

/// Options of Attention.
struct AttentionOptions {
  bool use_scale = false;                 ///< whether to multiply the scores by the weight `scale`
  ScoreMode score_mode = ScoreMode::dot;  ///< how a query is scored against a key
  double dropout = 0;                     ///< dropout rate of the attention weights
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  bool use_causal_mask = false;                ///< whether to mask later steps (Keras: in call())
  bool return_attention_scores = false;        ///< whether to return the scores (Keras: in call())
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Options of AdditiveAttention.
struct AdditiveAttentionOptions {
  bool use_scale = true;                       ///< whether to weight the features by `scale`
  double dropout = 0;                          ///< dropout rate of the attention weights
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's random stream
  bool use_causal_mask = false;                ///< whether to mask later steps (Keras: in call())
  bool return_attention_scores = false;        ///< whether to return the scores (Keras: in call())
  std::string name = "";                       ///< first component of the weights' paths
  std::string dtype = "";                      ///< dtype policy (default: the global policy)
  bool trainable = true;                       ///< whether training changes the weights
};

/// Dot-product attention, softmax(scores) · value (keras.layers.Attention; Luong,
/// arXiv 1508.04025). Scores are query · key, times `scale` with use_scale; in mode "concat",
/// concat_score_weight · sum(tanh(scale · (query + key))) over the features.
///
/// Shape: query (batch, T, features), value (batch, S, width) and optionally key (batch, S,
/// features), by default the value -> (batch, T, width); with return_attention_scores also the
/// scores after softmax, (batch, T, S). Steps that the value's mask excludes are not attended to;
/// the query's mask passes through, and masked output steps are 0.
/// Weights: scale () with use_scale, concat_score_weight () in mode "concat".
/// Communication: none if the batch or T is sharded; sharded features or a sharded S cost
/// all-reduces of the scores.
///
///     Attention({.use_causal_mask = true})({query, value})
class Attention : public LayerHandle {
 public:
  /// Throws ConfigError for a dropout outside [0, 1).
  explicit Attention(const AttentionOptions& options = {});
};

/// Additive attention, softmax(scores) · value (keras.layers.AdditiveAttention; Bahdanau, arXiv
/// 1409.0473). Scores are sum(scale · tanh(query + key)) over the features.
///
/// Shape: query (batch, T, features), value (batch, S, width) and optionally key (batch, S,
/// features), by default the value -> (batch, T, width); with return_attention_scores also the
/// scores after softmax, (batch, T, S). Steps that the value's mask excludes are not attended to;
/// the query's mask passes through, and masked output steps are 0.
/// Weights: scale (features) with use_scale.
/// Communication: none if the batch or T is sharded; sharded features or a sharded S cost
/// all-reduces of the scores.
class AdditiveAttention : public LayerHandle {
 public:
  /// Throws ConfigError for a dropout outside [0, 1).
  explicit AdditiveAttention(const AdditiveAttentionOptions& options = {});
};

}  // namespace tessera
