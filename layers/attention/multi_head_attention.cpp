#include <tessera/layers/attention/multi_head_attention.hpp>

#include <algorithm>
#include <limits>

#include <tessera/framework/base/error.hpp>
#include <tessera/layers/internal/attention_heads.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/internal/noise.hpp>

namespace tessera {

using namespace detail;

namespace {

struct MultiHeadAttentionArguments : MultiHeadAttentionOptions {
  int64_t num_heads = 0, key_dim = 0;
};

template <class Visit>
void fields(MultiHeadAttentionArguments& a, const Visit& visit) {
  ExtentOption num_heads{a.num_heads}, key_dim{a.key_dim};
  CallOption use_causal_mask{a.use_causal_mask}, scores{a.return_attention_scores};
  visit("num_heads", num_heads);
  visit("key_dim", key_dim);
  visit("value_dim", a.value_dim);
  visit("dropout", a.dropout);
  visit("use_bias", a.use_bias);
  visit("use_gate", a.use_gate);
  visit("output_shape", a.output_shape);
  visit("attention_axes", a.attention_axes);
  visit("sliding_window", a.sliding_window);
  visit("seed", a.seed);
  kernel_fields(a, visit);
  visit("use_causal_mask", use_causal_mask);
  visit("return_attention_scores", scores);
}

class MultiHeadAttentionLayer final
    : public LayerOf<MultiHeadAttentionLayer, MultiHeadAttentionArguments, HeadAttention> {
 public:
  static constexpr const char* keras_name = "MultiHeadAttention";
  explicit MultiHeadAttentionLayer(const MultiHeadAttentionArguments& arguments);
  Shapes output_shapes(const Shapes& inputs) const override;

 protected:
  void make_weights(const Shapes& inputs) override;

 private:
  void check_order(const std::vector<int64_t>& attended) const;
};

const RegisteredLayerOf<MultiHeadAttentionLayer> registered_multi_head_attention(
    {"flash_attention"});

MultiHeadAttentionLayer::MultiHeadAttentionLayer(const MultiHeadAttentionArguments& arguments)
    : LayerOf(arguments, head_options(arguments, arguments.key_dim)) {
  const int64_t num_heads = arguments.num_heads, key_dim = arguments.key_dim;
  const int64_t value_dim = arguments.value_dim.value_or(key_dim);
  const int64_t window = arguments.sliding_window.value_or(1);
  arguments_.value_dim = value_dim;
  for (const int64_t size : {num_heads, key_dim, value_dim, window}) {
    if (size > 0) continue;
    throw ConfigError(where(), "num_heads, key_dim, value_dim and sliding_window are at least 1",
                      str(size), "give positive numbers");
  }
  constexpr int64_t max_features = std::numeric_limits<int32_t>::max();
  if (num_heads > max_features / std::max(key_dim, value_dim)) {
    throw ConfigError(where(), str("all heads have at most ", max_features, " features"),
                      str(num_heads, " of ", key_dim, " and ", value_dim), "give smaller numbers");
  }
  check_rate(where() + ", dropout", arguments.dropout);
}

/// Checks that a causal mask and a window know the order of the steps.
void MultiHeadAttentionLayer::check_order(const std::vector<int64_t>& attended) const {
  if (attended.size() == 1 || !(arguments_.use_causal_mask || arguments_.sliding_window)) return;
  throw ConfigError(where(),
                    "use_causal_mask and sliding_window order the steps of one attended axis",
                    "the axes " + to_string(attended), "name one of them in attention_axes");
}

Shapes MultiHeadAttentionLayer::output_shapes(const Shapes& inputs) const {
  const auto fail = [&](const std::string& expected, const std::string& received) {
    throw ShapeError(where(), expected, received, "correct the inputs");
  };
  if (inputs.size() < 2 || inputs.size() > 4) {
    fail("inputs are query and value, then optionally key and attention_mask",
         str(inputs.size(), " inputs"));
  }
  const Shape& query = inputs[0];
  const Shape& value = inputs[1];
  const Shape& key = inputs.size() > 2 ? inputs[2] : value;
  const bool shapes_match = value.size() == query.size() && key.size() == value.size() &&
                            query.size() > 2 &&
                            std::equal(value.begin() + 1, value.end() - 1, key.begin() + 1);
  if (!shapes_match) {
    fail("query, value and key have axes batch, steps and features; value and key have equal steps",
         to_string(query) + ", " + to_string(value) + " and " + to_string(key));
  }
  for (size_t i = 0; i < std::min<size_t>(inputs.size(), 3); ++i) {
    if (inputs[i].back() < 0) fail("features have a known extent", to_string(inputs[i]));
  }
  const std::vector<int64_t> attended = axes(static_cast<int64_t>(query.size()));
  check_order(attended);
  Shape output = query;
  if (!arguments_.output_shape.empty()) {
    output.pop_back();
    output.insert(output.end(), arguments_.output_shape.begin(), arguments_.output_shape.end());
  }
  if (!arguments_.return_attention_scores) return {output};
  const EinsumTerms terms = einsum_terms(static_cast<int64_t>(query.size()));
  Shape scores;
  for (const char letter : terms.scores) {
    const size_t in_query = terms.query.find(letter), in_key = terms.key.find(letter);
    const bool heads = in_query == query.size() - 1;
    scores.push_back(heads                           ? arguments_.num_heads
                     : in_query != std::string::npos ? query[in_query]
                                                     : value[in_key]);
  }
  return {output, scores};
}

void MultiHeadAttentionLayer::make_weights(const Shapes& inputs) {
  const int64_t num_heads = arguments_.num_heads;
  const Shape query = {num_heads, arguments_.key_dim}, value = {num_heads, *arguments_.value_dim};
  const Shape& output = arguments_.output_shape;
  add_projections(inputs, "",
                  {.query = query,
                   .key = query,
                   .gate = value,
                   .value = value,
                   .output = output.empty() ? Shape{inputs[0].back()} : output});
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(int64_t num_heads, int64_t key_dim,
                                       const MultiHeadAttentionOptions& options)
    : LayerHandle(make_layer<MultiHeadAttentionLayer>(
          MultiHeadAttentionArguments{options, num_heads, key_dim})) {}

}  // namespace tessera
