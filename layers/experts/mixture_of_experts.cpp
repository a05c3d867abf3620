#include <tessera/layers/experts/mixture_of_experts.hpp>

#include <cmath>
#include <limits>
#include <map>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/metric.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/grouped_matmul.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/experts/internal/expert_initializer.hpp>
#include <tessera/layers/experts/internal/expert_metrics.hpp>
#include <tessera/layers/experts/internal/expert_routing.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/internal/noise.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(MixtureOfExpertsOptions& o, const Visit& visit) {
  visit("num_experts", o.num_experts);
  visit("hidden_dim", o.hidden_dim);
  visit("top_k", o.top_k);
  visit("capacity_factor", o.capacity_factor);
  visit("eval_capacity_factor", o.eval_capacity_factor);
  visit("aux_loss", o.aux_loss);
  visit("z_loss", o.z_loss);
  visit("activation", o.activation);
  visit("second_expert_policy", o.second_expert_policy);
  visit("second_expert_threshold", o.second_expert_threshold);
  visit("legacy_mtf_behavior", o.legacy_mtf_behavior);
  visit("dispatch", o.dispatch);
  visit("use_bias", o.use_bias);
  visit("router_initializer", o.router_initializer);
  kernel_fields(o, visit);
  visit("seed", o.seed);
}

namespace {

const std::map<std::string, SecondExpert> second_experts = {{"all", SecondExpert::all},
                                                            {"sampling", SecondExpert::sampling},
                                                            {"random", SecondExpert::random}};

class MixtureOfExpertsLayer final : public LayerOf<MixtureOfExpertsLayer, MixtureOfExpertsOptions> {
 public:
  static constexpr const char* keras_name = "MixtureOfExperts";
  explicit MixtureOfExpertsLayer(const MixtureOfExpertsOptions& options);
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }
  std::map<std::string, int64_t> value_names() const override {
    if (is_dropless()) return {{"router", 3}};
    return {{"router", 3}, {"dispatched", 4}, {"combined", 4}};
  }
  std::vector<MetricHandle> trackers() const override {
    return {MetricHandle(load_), MetricHandle(dropped_)};
  }

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  /// One of the two dense layers, of all experts.
  struct DenseWeights {
    Variable kernel, bias;
  };
  bool is_dropless() const { return arguments_.dispatch == "dropless"; }
  DenseWeights dense_weights(const std::string& name, int64_t in, int64_t out);
  RoutingOptions routing_options(const DTensor& x, const CallContext& context) const;
  void report(const Routing& routing);
  DTensor dense(const DTensor& x, const DenseWeights& weights) const;
  DTensor apply_experts(const DTensor& slots) const;
  DTensor by_einsum(const DTensor& x, const Routing& routing, int64_t capacity) const;
  DTensor by_sort(const DTensor& x, const Routing& routing, int64_t capacity) const;
  DTensor grouped_dense(const DTensor& x, const DenseWeights& weights,
                        const DTensor& experts) const;
  DTensor dropless(const DTensor& x, const Routing& routing) const;

  SecondExpert second_ = SecondExpert::all;
  std::shared_ptr<RoutingMetric> load_, dropped_;
  Variable router_;
  DenseWeights expert_1_, expert_2_;
};

const RegisteredLayerOf<MixtureOfExpertsLayer> registered_mixture_of_experts;

MixtureOfExpertsLayer::MixtureOfExpertsLayer(const MixtureOfExpertsOptions& options)
    : LayerOf(options) {
  const auto check = [&](bool fits, const std::string& expected, const auto& received,
                         const char* fix) {
    if (!fits) throw ConfigError(where(), expected, str(received), fix);
  };
  constexpr int64_t max_size = std::numeric_limits<int32_t>::max();
  for (const int64_t size : {options.num_experts, options.hidden_dim}) {
    check(size >= 1 && size <= max_size,
          str("num_experts and hidden_dim lie in [1, ", max_size, "]"), size,
          "give the number of experts and the features between an expert's layers");
  }
  check(options.top_k >= 1, "top_k is at least 1", options.top_k,
        "choose the number of experts per token");
  check(options.top_k <= options.num_experts, "a token has top_k different experts",
        options.num_experts, "set top_k = 1, or give more experts");
  for (const double factor : {options.capacity_factor, options.eval_capacity_factor}) {
    check(std::isfinite(factor) && factor > 0, "capacity factors are positive", factor,
          "give the slots per token, such as 1.25");
  }
  for (const double factor : {options.aux_loss, options.z_loss, options.second_expert_threshold}) {
    check(std::isfinite(factor) && factor >= 0,
          "aux_loss, z_loss and second_expert_threshold are not negative", factor,
          "use 0 for none");
  }
  check(options.dispatch == "einsum" || options.dispatch == "sort" || is_dropless(),
        "dispatch is \"einsum\", \"sort\" or \"dropless\"", in_quotes(options.dispatch),
        "choose one");
  const auto second = second_experts.find(options.second_expert_policy);
  check(second != second_experts.end(),
        "second_expert_policy is \"all\", \"sampling\" or \"random\"",
        in_quotes(options.second_expert_policy), "choose one");
  second_ = second->second;
  check(options.top_k <= 2 || second_ == SecondExpert::all,
        "second_expert_policy is \"all\" for a top_k of more than 2",
        in_quotes(options.second_expert_policy), "leave it out");
  load_ = std::make_shared<LoadEntropy>(options.num_experts);
  dropped_ = std::make_shared<DroppedShare>();
  if (options.activation.layer()) track("activation", options.activation.layer());
}

Shape MixtureOfExpertsLayer::output_shape(const Shapes& inputs) const {
  const Shape& shape = single_input(inputs);
  if (shape.size() != 3 || shape.back() < 1) {
    throw ShapeError(where(), "the input is (batch, tokens, features), of known features",
                     to_string(shape), "reshape it to one group of tokens per row");
  }
  if (built() && shape.back() != router_.shape()[0]) {
    throw ShapeError(where(), str("tokens have ", router_.shape()[0], " features, as when built"),
                     to_string(shape), "pass inputs of that size");
  }
  return shape;
}

MixtureOfExpertsLayer::DenseWeights MixtureOfExpertsLayer::dense_weights(const std::string& name,
                                                                         int64_t in, int64_t out) {
  const int64_t experts = arguments_.num_experts;
  DenseWeights weights;
  weights.kernel = add_weight(
      name + "/kernel", {experts, in, out},
      per_expert_initializer(arguments_.kernel_initializer, experts),
      {.regularizer = arguments_.kernel_regularizer, .constraint = arguments_.kernel_constraint});
  if (!arguments_.use_bias) return weights;
  weights.bias = add_weight(
      name + "/bias", {experts, out}, arguments_.bias_initializer,
      {.regularizer = arguments_.bias_regularizer, .constraint = arguments_.bias_constraint});
  return weights;
}

void MixtureOfExpertsLayer::make_weights(const Shapes& inputs) {
  const int64_t features = inputs[0].back();
  router_ = add_weight("router/kernel", {features, arguments_.num_experts},
                       arguments_.router_initializer);
  expert_1_ = dense_weights("expert_1", features, arguments_.hidden_dim);
  expert_2_ = dense_weights("expert_2", arguments_.hidden_dim, features);
}

RoutingOptions MixtureOfExpertsLayer::routing_options(const DTensor& x,
                                                      const CallContext& context) const {
  const double factor =
      context.training ? arguments_.capacity_factor : arguments_.eval_capacity_factor;
  const int64_t tokens = x.size(1);
  // An expert is chosen by each token once at most.
  return {.top_k = arguments_.top_k,
          .capacity = is_dropless() ? tokens
                                    : expert_capacity(tokens, arguments_.num_experts,
                                                      arguments_.top_k, factor),
          .legacy = arguments_.legacy_mtf_behavior,
          .second = context.training ? second_ : SecondExpert::all,
          .threshold = arguments_.second_expert_threshold,
          .seed = [&context, mesh = x.mesh(), this] {
            return draw_seed(context, path(), mesh, arguments_.seed);
          }};
}

void MixtureOfExpertsLayer::report(const Routing& routing) {
  if (arguments_.aux_loss > 0) add_loss(routing.aux_loss * arguments_.aux_loss);
  if (arguments_.z_loss > 0) add_loss(routing.z_loss * arguments_.z_loss);
  load_->add_routing(routing);
  dropped_->add_routing(routing);
}

/// Applies a dense layer of each expert: (E, G, C, in) -> (E, G, C, out).
DTensor MixtureOfExpertsLayer::dense(const DTensor& x, const DenseWeights& weights) const {
  const DTensor y = ops::einsum("egci,eio->egco", {x, read(weights.kernel)});
  if (!weights.bias.defined()) return y;
  return y + ops::reshape(read(weights.bias), {x.size(0), 1, 1, y.size(3)});
}

/// Applies the experts to the tokens in their slots, (E, G, C, d) -> (E, G, C, d).
DTensor MixtureOfExpertsLayer::apply_experts(const DTensor& slots) const {
  const DTensor hidden = arguments_.activation(dense(place("dispatched", slots), expert_1_));
  return place("combined", dense(hidden, expert_2_));
}

DTensor MixtureOfExpertsLayer::by_einsum(const DTensor& x, const Routing& routing,
                                         int64_t capacity) const {
  const DTensor dispatch = ops::cast(dispatch_tensor(routing, capacity), x.dtype());
  const DTensor combine = ops::cast(combine_tensor(routing, capacity), x.dtype());
  const DTensor expert_outputs = apply_experts(ops::einsum("gsec,gsd->egcd", {dispatch, x}));
  return ops::einsum("gsec,egcd->gsd", {combine, expert_outputs});
}

DTensor MixtureOfExpertsLayer::by_sort(const DTensor& x, const Routing& routing,
                                       int64_t capacity) const {
  const int64_t groups = x.size(0), experts = arguments_.num_experts, slots = experts * capacity;
  const auto [tokens, filled] = slot_tokens(routing, capacity);
  const auto row = [&](const DTensor& numbers) { return ops::reshape(numbers, {groups, -1, 1}); };
  DTensor rows = ops::take_along_axis(x, row(tokens), 1) * ops::cast(row(filled), x.dtype());
  rows = ops::transpose(ops::reshape(rows, {groups, experts, capacity, x.size(2)}), {1, 0, 2, 3});
  const DTensor expert_outputs =
      ops::reshape(ops::transpose(apply_experts(rows), {1, 0, 2, 3}), {groups, slots, x.size(2)});
  DTensor y;
  for (const ExpertChoice& choice : routing.choices) {
    const DTensor weighted =
        ops::take_along_axis(expert_outputs, row(token_slots(choice, capacity)), 1) *
        ops::cast(ops::expand_dims(choice.gate, -1), x.dtype());
    y = y.defined() ? y + weighted : weighted;
  }
  return y;
}

/// Applies the dense layer of each token's expert: (G, S, in) -> (G, S, out).
DTensor MixtureOfExpertsLayer::grouped_dense(const DTensor& x, const DenseWeights& weights,
                                             const DTensor& experts) const {
  const DTensor y = ops::grouped_matmul(x, read(weights.kernel), experts);
  return weights.bias.defined() ? y + ops::gather(read(weights.bias), experts) : y;
}

DTensor MixtureOfExpertsLayer::dropless(const DTensor& x, const Routing& routing) const {
  DTensor y;
  for (const ExpertChoice& choice : routing.choices) {
    const DTensor hidden = arguments_.activation(grouped_dense(x, expert_1_, choice.expert));
    const DTensor weighted = grouped_dense(hidden, expert_2_, choice.expert) *
                             ops::cast(ops::expand_dims(choice.gate, -1), x.dtype());
    y = y.defined() ? y + weighted : weighted;
  }
  return y;
}

DTensor MixtureOfExpertsLayer::call(const Inputs& inputs, const CallContext& context) {
  const DTensor x = inputs[0].with_mask({});
  const at::ScalarType precise = c10::promoteTypes(x.dtype(), at::kFloat);
  const DTensor logits =
      place("router", ops::matmul(ops::cast(x, precise), read(router_, precise)));
  const RoutingOptions options = routing_options(x, context);
  const Routing routing = route_tokens(logits, inputs[0].mask(), options);
  report(routing);
  const DTensor y = is_dropless()                   ? dropless(x, routing)
                    : arguments_.dispatch == "sort" ? by_sort(x, routing, options.capacity)
                                                    : by_einsum(x, routing, options.capacity);
  penalize(arguments_.activity_regularizer, y);
  return y;
}

}  // namespace

MixtureOfExperts::MixtureOfExperts(const MixtureOfExpertsOptions& options)
    : LayerHandle(make_layer<MixtureOfExpertsLayer>(options)) {}

}  // namespace tessera
