#include <tessera/layers/attention/group_query_attention.hpp>

#include <limits>

#include <tessera/framework/base/error.hpp>
#include <tessera/layers/internal/attention_heads.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/internal/noise.hpp>

namespace tessera {

using namespace detail;

namespace {

struct GroupQueryAttentionArguments : GroupQueryAttentionOptions {
  int64_t head_dim = 0, num_query_heads = 0, num_key_value_heads = 0;
};

template <class Visit>
void fields(GroupQueryAttentionArguments& a, const Visit& visit) {
  ExtentOption head_dim{a.head_dim}, num_query_heads{a.num_query_heads},
      num_key_value_heads{a.num_key_value_heads};
  CallOption use_causal_mask{a.use_causal_mask}, scores{a.return_attention_scores};
  visit("head_dim", head_dim);
  visit("num_query_heads", num_query_heads);
  visit("num_key_value_heads", num_key_value_heads);
  visit("use_bias", a.use_bias);
  visit("use_gate", a.use_gate);
  visit("sliding_window", a.sliding_window);
  visit("dropout", a.dropout);
  kernel_fields(a, visit);
  visit("seed", a.seed);
  visit("use_causal_mask", use_causal_mask);
  visit("return_attention_scores", scores);
}

class GroupQueryAttentionLayer final
    : public LayerOf<GroupQueryAttentionLayer, GroupQueryAttentionArguments, HeadAttention> {
 public:
  static constexpr const char* keras_name = "GroupQueryAttention";
  explicit GroupQueryAttentionLayer(const GroupQueryAttentionArguments& arguments);
  Shapes output_shapes(const Shapes& inputs) const override;

 protected:
  void make_weights(const Shapes& inputs) override;
  std::vector<DTensor> call_all(const Inputs& inputs, const CallContext& context) override;

 private:
  DTensor repeated(const DTensor& x) const override {
    return repeated_heads(x, arguments_.num_query_heads);
  }
};

const RegisteredLayerOf<GroupQueryAttentionLayer> registered_group_query_attention(
    {"flash_attention"});

GroupQueryAttentionLayer::GroupQueryAttentionLayer(const GroupQueryAttentionArguments& arguments)
    : LayerOf(arguments, head_options(arguments, arguments.head_dim)) {
  const int64_t head_dim = arguments.head_dim, num_query_heads = arguments.num_query_heads;
  const int64_t num_key_value_heads = arguments.num_key_value_heads;
  const int64_t window = arguments.sliding_window.value_or(1);
  for (const int64_t size : {head_dim, num_query_heads, num_key_value_heads, window}) {
    if (size > 0) continue;
    throw ConfigError(where(), "head_dim, numbers of heads and sliding_window are at least 1",
                      str(size), "give positive numbers");
  }
  if (num_query_heads % num_key_value_heads != 0) {
    throw ConfigError(where(), "num_query_heads is a multiple of num_key_value_heads",
                      str(num_query_heads, " and ", num_key_value_heads), "change one of them");
  }
  constexpr int64_t max_features = std::numeric_limits<int32_t>::max();
  if (num_query_heads > max_features / head_dim) {
    throw ConfigError(where(), str("all heads have at most ", max_features, " features"),
                      str(num_query_heads, " of ", head_dim), "give smaller numbers");
  }
  check_rate(where() + ", dropout", arguments.dropout);
}

Shapes GroupQueryAttentionLayer::output_shapes(const Shapes& inputs) const {
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
  const bool shapes_match = query.size() == 3 && value.size() == 3 && key.size() == 3 &&
                            query[2] == value[2] && value[1] == key[1];
  if (!shapes_match) {
    fail(
        "query, value and key are (batch, steps, features); query and value have equal features, "
        "value and key equal steps",
        to_string(query) + ", " + to_string(value) + " and " + to_string(key));
  }
  for (const Shape& shape : {query, key}) {
    if (shape[2] < 0) fail("features have a known extent", to_string(shape));
  }
  if (!arguments_.return_attention_scores) return {query};
  return {query, {query[0], arguments_.num_query_heads, query[1], value[1]}};
}

void GroupQueryAttentionLayer::make_weights(const Shapes& inputs) {
  const Shape query = {arguments_.num_query_heads, arguments_.head_dim};
  const Shape key = {arguments_.num_key_value_heads, arguments_.head_dim};
  add_projections(
      inputs, "_",
      {.query = query, .key = key, .gate = query, .value = key, .output = {inputs[0][2]}});
}

std::vector<DTensor> GroupQueryAttentionLayer::call_all(const Inputs& inputs,
                                                        const CallContext& context) {
  std::vector<DTensor> outputs = HeadAttention::call_all(inputs, context);
  // Keras applies activity_regularizer to the layer's outputs too.
  for (const DTensor& output : outputs) penalize(arguments_.activity_regularizer, output);
  return outputs;
}

}  // namespace

GroupQueryAttention::GroupQueryAttention(int64_t head_dim, int64_t num_query_heads,
                                         int64_t num_key_value_heads,
                                         const GroupQueryAttentionOptions& options)
    : LayerHandle(make_layer<GroupQueryAttentionLayer>(
          GroupQueryAttentionArguments{options, head_dim, num_query_heads, num_key_value_heads})) {}

}  // namespace tessera
