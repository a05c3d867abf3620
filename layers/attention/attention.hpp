#pragma once

#include <array>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// How Attention compares a query with a key.
enum class ScoreMode : uint8_t { dot, concat };
/// Keras' names, in the order of the enumerators.
inline std::array<const char*, 2> names_of(ScoreMode) { return {"dot", "concat"}; }

struct AttentionOptions {
  bool use_scale = false;
  ScoreMode score_mode = ScoreMode::dot;
  double dropout = 0;  ///< of the attention scores
  std::optional<int64_t> seed = std::nullopt;
  bool use_causal_mask = false;          ///< no step attends to a later one; Keras: of the call
  bool return_attention_scores = false;  ///< as a second output; Keras: of the call
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

struct AdditiveAttentionOptions {
  bool use_scale = true;
  double dropout = 0;
  std::optional<int64_t> seed = std::nullopt;
  bool use_causal_mask = false;
  bool return_attention_scores = false;
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// softmax(scores of query and key) · value (keras.layers.Attention and AdditiveAttention). Inputs:
/// query (batch, T, features), value (batch, S, …) and key, by default value, (batch, S, features).
/// Outputs: (batch, T, …), and with return_attention_scores those (batch, T, S). Scores are q · k,
/// times the weight scale if there is one; with "concat" the weight concat_score_weight times the
/// sum of tanh(scale · (q + k)); additive ones the sum of scale · tanh(q + k). A mask of value
/// leaves steps out, the query's goes on with the output, where masked steps are 0.
/// Layouts: batch and T keep their sharding; cut features or S cost all-reduces of scores.
class AttentionLayer final : public Layer {
 public:
  AttentionLayer(bool additive, const AttentionOptions& options);
  std::string class_name() const override { return additive_ ? "AdditiveAttention" : "Attention"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override { return output_shapes(inputs)[0]; }
  /// Throws ShapeError for inputs that do not fit each other.
  Shapes output_shapes(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  void make_weights(const Shapes& inputs) override;
  std::vector<DTensor> call_all(const Inputs& inputs, const CallContext& context) override;
  std::vector<DTensor> masks(const Inputs& inputs, size_t outputs) override;

 private:
  DTensor scores(const DTensor& query, const DTensor& key) const;
  DTensor masked(const DTensor& scores, const DTensor& mask) const;

  bool additive_;
  AttentionOptions options_;
  Variable scale_, concat_score_weight_;
};

/// Dot-product attention, Luong's (arXiv 1508.04025).
class Attention : public LayerHandle {
 public:
  /// Throws ConfigError for a dropout outside [0, 1).
  explicit Attention(const AttentionOptions& options = {})
      : LayerHandle(std::make_shared<AttentionLayer>(false, options)) {}
  static Attention from_config(JsonObject& config);
};

/// Additive attention, Bahdanau's (arXiv 1409.0473).
class AdditiveAttention : public LayerHandle {
 public:
  /// Throws ConfigError for a dropout outside [0, 1).
  explicit AdditiveAttention(const AdditiveAttentionOptions& options = {});
  static AdditiveAttention from_config(JsonObject& config);
};

}  // namespace tessera
