#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// How Attention compares a query with a key.
enum class ScoreMode : uint8_t { dot, concat };
/// Keras' names, in the order of the enumerators.
inline std::array<const char*, 2> names_of(ScoreMode) { return {"dot", "concat"}; }

/// Options of Attention.
struct AttentionOptions {
  bool use_scale = false;                      ///< adds `scale`, which multiplies the scores
  ScoreMode score_mode = ScoreMode::dot;       ///< how a query is compared with a key
  double dropout = 0;                          ///< share of the attention scores dropped
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the stream of random numbers
  bool use_causal_mask = false;          ///< no step attends to a later one; Keras: of the call
  bool return_attention_scores = false;  ///< scores as a second output; Keras: of the call
  std::string name = "";                 ///< first part of the weights' paths
  std::string dtype = "";                ///< policy; the default one if empty
  bool trainable = true;                 ///< whether training changes the weights
};

/// Options of AdditiveAttention.
struct AdditiveAttentionOptions {
  bool use_scale = true;                       ///< adds `scale`, which weighs the features
  double dropout = 0;                          ///< share of the attention scores dropped
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the stream of random numbers
  bool use_causal_mask = false;          ///< no step attends to a later one; Keras: of the call
  bool return_attention_scores = false;  ///< scores as a second output; Keras: of the call
  std::string name = "";                 ///< first part of the weights' paths
  std::string dtype = "";                ///< policy; the default one if empty
  bool trainable = true;                 ///< whether training changes the weights
};

/// Dot-product attention, softmax(scores) · value (keras.layers.Attention, Luong's,
/// arXiv 1508.04025). The scores are query · key, times `scale` with use_scale; in mode "concat"
/// they are concat_score_weight · sum(tanh(scale · (query + key))) over the features.
///
/// Shape: query (batch, T, features), value (batch, S, width) and, unless it is the value, key
/// (batch, S, features) -> (batch, T, width), and with return_attention_scores the scores after
/// softmax, (batch, T, S). The value's mask leaves steps out; the query's goes on with the output,
/// where masked steps are 0.
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

/// Additive attention, softmax(scores) · value (keras.layers.AdditiveAttention, Bahdanau's,
/// arXiv 1409.0473). The scores are sum(scale · tanh(query + key)) over the features.
///
/// Shape: query (batch, T, features), value (batch, S, width) and, unless it is the value, key
/// (batch, S, features) -> (batch, T, width), and with return_attention_scores the scores after
/// softmax, (batch, T, S). The value's mask leaves steps out; the query's goes on with the output,
/// where masked steps are 0.
/// Weights: scale (features) with use_scale.
/// Communication: none if the batch or T is sharded; sharded features or a sharded S cost
/// all-reduces of the scores.
class AdditiveAttention : public LayerHandle {
 public:
  /// Throws ConfigError for a dropout outside [0, 1).
  explicit AdditiveAttention(const AdditiveAttentionOptions& options = {});
};

}  // namespace tessera
