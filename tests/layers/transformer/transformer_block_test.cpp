#include <tessera/layers/transformer/transformer_block.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <map>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/key_value_cache.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/experts/mixture_of_experts.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/layer_check.hpp"

namespace transformer_block_test {

using namespace tessera;
using at::Tensor;
using Catch::Matchers::Contains;
using test::difference;

namespace {

using Options = TransformerBlockOptions;

constexpr int64_t features = 12, max_steps = 5;

Options gpt2() {
  return {.num_heads = 3, .hidden_dim = 8, .activation = "gelu", .use_causal_mask = true};
}
Options bert() {
  return {.num_heads = 2, .hidden_dim = 8, .norm_position = NormPosition::post, .epsilon = 1e-3};
}
Options llama() {
  return {.num_heads = 4,
          .hidden_dim = 8,
          .num_key_value_heads = 2,
          .head_dim = 4,
          .norm = BlockNorm::rms,
          .activation = "silu",
          .gated = true,
          .use_bias = false,
          .rotary = ops::RotaryOptions{.max_wavelength = 100},
          .use_causal_mask = true};
}
Options qwen2() {
  Options options = llama();
  options.use_query_bias = true;
  options.sliding_window = 2;
  return options;
}
Options qwen3() {
  Options options = llama();
  options.normalize_queries = true;
  options.rotary->interleaved = true;
  return options;
}
Options gemma2() {
  Options options = llama();
  options.norm_position = NormPosition::both;
  options.activation = "gelu";
  options.attention_scale = 0.4;
  options.attention_soft_cap = 1.5;
  return options;
}
Options gemma3() {
  Options options = gemma2();
  options.norm = BlockNorm::rms_unit_offset;
  options.normalize_queries = true;
  options.attention_soft_cap.reset();
  options.sliding_window = 2;
  return options;
}

const std::map<std::string, Options (*)()> families = {
    {"GPT-2", gpt2},   {"BERT", bert},      {"Llama", llama},   {"Qwen 2", qwen2},
    {"Qwen 3", qwen3}, {"Gemma 2", gemma2}, {"Gemma 3", gemma3}};

DTensor on_one_device(const Tensor& x) {
  return pack(x, Layout::replicated(default_mesh(), x.dim()));
}

/// Builds the block and gives all weights, biases too, numbers other than 0 and 1.
void give_weights(const LayerHandle& block) {
  block->build({{-1, max_steps, features}});
  for (Variable weight : block->weights()) {
    weight.assign(on_one_device(at::randn(weight.shape(), at::kDouble) * 0.5 + 0.1));
  }
}

/// The formulas of a block in ATen's functions, on the weights of the block.
class Reference {
 public:
  Reference(const LayerHandle& block, const Options& options) : options_(options) {
    const size_t prefix = block->path().size() + 1;
    for (const Variable& weight : block->weights()) {
      weights_[weight.path().substr(prefix)] = weight.value().full();
    }
  }

  Tensor operator()(const Tensor& x) const {
    if (options_.norm_position == NormPosition::post) {
      const Tensor y = norm(x + attention(x), "norm_1");
      return norm(y + feed_forward(y), "norm_2");
    }
    const Tensor y = x + after(attention(norm(x, "norm_1")), "norm_1_after");
    return y + after(feed_forward(norm(y, "norm_2")), "norm_2_after");
  }

 private:
  bool has(const std::string& name) const { return weights_.count(name) > 0; }
  const Tensor& weight(const std::string& name) const { return weights_.at(name); }

  Tensor rms(const Tensor& x, const std::string& name) const {
    const double offset = options_.norm == BlockNorm::rms_unit_offset ? 1 : 0;
    return x / (x.square().mean(-1, true) + options_.epsilon).sqrt() *
           (weight(name + "/scale") + offset);
  }
  Tensor norm(const Tensor& x, const std::string& name) const {
    if (options_.norm != BlockNorm::layer) return rms(x, name);
    return at::layer_norm(x, {features}, weight(name + "/gamma"), weight(name + "/beta"),
                          options_.epsilon);
  }
  Tensor after(const Tensor& x, const std::string& name) const {
    return options_.norm_position == NormPosition::both ? norm(x, name) : x;
  }
  Tensor activation(const Tensor& x) const {
    const std::string& name = options_.activation.name();
    return name == "silu" ? at::silu(x) : name == "gelu" ? at::gelu(x) : at::relu(x);
  }
  Tensor dense(const Tensor& x, const std::string& name) const {
    const Tensor y = at::matmul(x, weight(name + "/kernel"));
    return has(name + "/bias") ? y + weight(name + "/bias") : y;
  }
  Tensor feed_forward(const Tensor& x) const {
    if (!options_.gated) return dense(activation(dense(x, "up")), "down");
    return dense(activation(dense(x, "gate")) * dense(x, "up"), "down");
  }

  Tensor projected(const Tensor& x, const std::string& which) const {
    const std::string name = "attention/" + which;
    Tensor y = at::einsum("btf,fhd->bthd", {x, weight(name + "/kernel")});
    if (has(name + "/bias")) y = y + weight(name + "/bias");
    if (which == "value") return y;
    if (options_.normalize_queries) y = rms(y, name + "_norm");
    return options_.rotary ? rotated(y) : y;
  }
  Tensor rotated(const Tensor& x) const {
    const int64_t pairs = x.size(-1) / 2;
    const Tensor rates =
        at::pow(options_.rotary->max_wavelength, at::arange(pairs, at::kDouble) / -double(pairs));
    const Tensor angles = at::outer(at::arange(x.size(1), at::kDouble), rates).unsqueeze(1);
    const bool neighbors = options_.rotary->interleaved;
    const Tensor a = neighbors ? x.slice(-1, 0, std::nullopt, 2) : x.narrow(-1, 0, pairs);
    const Tensor b = neighbors ? x.slice(-1, 1, std::nullopt, 2) : x.narrow(-1, pairs, pairs);
    const Tensor first = a * angles.cos() - b * angles.sin();
    const Tensor second = b * angles.cos() + a * angles.sin();
    return neighbors ? at::stack({first, second}, -1).flatten(-2) : at::cat({first, second}, -1);
  }
  Tensor attention(const Tensor& x) const {
    const Tensor q = projected(x, "query");
    const auto shared = [&](const std::string& name) {
      const Tensor y = projected(x, name);
      return y.repeat_interleave(q.size(2) / y.size(2), 2);
    };
    Tensor scores = at::einsum("bthd,bshd->bhts", {q, shared("key")}) *
                    options_.attention_scale.value_or(1 / std::sqrt(double(q.size(-1))));
    if (options_.attention_soft_cap) {
      scores = at::tanh(scores / *options_.attention_soft_cap) * *options_.attention_soft_cap;
    }
    const int64_t t = x.size(1);
    Tensor allowed = at::ones({t, t}, at::kBool);
    if (options_.use_causal_mask) allowed = allowed.tril();
    if (options_.sliding_window) {
      allowed = allowed.triu(1 - *options_.sliding_window).tril(*options_.sliding_window - 1);
    }
    scores = scores.masked_fill(allowed.logical_not(), -std::numeric_limits<double>::infinity());
    const Tensor heads = at::einsum("bhts,bshd->bthd", {at::softmax(scores, -1), shared("value")});
    const std::string name = "attention/attention_output";
    const Tensor y = at::einsum("bthd,hdf->btf", {heads, weight(name + "/kernel")});
    return has(name + "/bias") ? y + weight(name + "/bias") : y;
  }

  Options options_;
  std::map<std::string, Tensor> weights_;
};

}  // namespace

TEST_CASE("TransformerBlock computes the blocks of known models") {
  const test::DTypeScope doubles("float64");
  const Tensor x = at::randn({2, max_steps, features}, at::kDouble);
  for (const auto& [name, options] : families) {
    CAPTURE(name);
    Options named = options();
    named.name = "block";
    const TransformerBlock block(named);
    give_weights(block);
    const Tensor y = block(on_one_device(x)).full();
    CHECK(difference(y, Reference(block, named)(x), 1e-11, 1e-11) == "");
  }
}

TEST_CASE("TransformerBlock names its weights for layout maps") {
  const auto paths = [](const Options& options) {
    const TransformerBlock block(options);
    block->build({{-1, max_steps, features}});
    std::string all;
    for (const Variable& weight : block->weights()) all += weight.path() + "\n";
    return all;
  };
  Options options = gpt2();
  options.name = "b";
  CHECK(paths(options) ==
        "b/norm_1/gamma\nb/norm_1/beta\nb/attention/query/kernel\nb/attention/query/bias\n"
        "b/attention/key/kernel\nb/attention/key/bias\nb/attention/value/kernel\n"
        "b/attention/value/bias\nb/attention/attention_output/kernel\n"
        "b/attention/attention_output/bias\nb/norm_2/gamma\nb/norm_2/beta\nb/up/kernel\nb/up/bias\n"
        "b/down/kernel\nb/down/bias\n");
  options = qwen3();
  options.name = "b";
  options.norm_position = NormPosition::both;
  CHECK(paths(options) ==
        "b/norm_1/scale\nb/attention/query/kernel\nb/attention/key/kernel\n"
        "b/attention/value/kernel\nb/attention/attention_output/kernel\n"
        "b/attention/query_norm/scale\nb/attention/key_norm/scale\nb/norm_1_after/scale\n"
        "b/norm_2/scale\nb/gate/kernel\nb/up/kernel\nb/down/kernel\nb/norm_2_after/scale\n");
}

TEST_CASE("TransformerBlock under every layout") {
  const Options options{.num_heads = 2,
                        .hidden_dim = 6,
                        .num_key_value_heads = 1,
                        .head_dim = 6,
                        .norm = BlockNorm::rms,
                        .activation = "silu",
                        .gated = true,
                        .use_bias = false,
                        .normalize_queries = true,
                        .rotary = ops::RotaryOptions{},
                        .use_causal_mask = true};
  test::run_golden_layer_test({.make = [options] { return TransformerBlock(options); },
                               .input = {{2, 3, 8}},
                               .output = {2, 3, 8},
                               .weights = {{"norm_1/scale", {8}},
                                           {"attention/query/kernel", {8, 2, 6}},
                                           {"attention/key/kernel", {8, 1, 6}},
                                           {"attention/value/kernel", {8, 1, 6}},
                                           {"attention/attention_output/kernel", {2, 6, 8}},
                                           {"attention/query_norm/scale", {6}},
                                           {"attention/key_norm/scale", {6}},
                                           {"norm_2/scale", {8}},
                                           {"gate/kernel", {8, 6}},
                                           {"up/kernel", {8, 6}},
                                           {"down/kernel", {6, 8}}}});
}

TEST_CASE("TransformerBlock called on new steps with a cache equals a call on all steps") {
  const test::DTypeScope doubles("float64");
  const Tensor x = at::randn({2, max_steps, features}, at::kDouble);
  for (const auto& [name, options] : families) {
    if (!options().use_causal_mask) continue;
    CAPTURE(name);
    const TransformerBlock block(options());
    give_weights(block);
    const Tensor all = block(on_one_device(x)).full();
    const auto cache = std::make_shared<KeyValueCache>(8);
    int64_t first = 0;
    for (const int64_t count : {2, 1, 2}) {
      const Tensor part = x.narrow(1, first, count).contiguous();
      const Tensor y = block(on_one_device(part), {.cache = cache}).full();
      CHECK(difference(y, all.narrow(1, first, count), 1e-11, 1e-11) == "");
      first += count;
    }
  }
}

TEST_CASE("TransformerBlock heeds masks of steps and of pairs of steps, and passes the former on") {
  const test::DTypeScope doubles("float64");
  const Tensor x = at::randn({1, 4, features}, at::kDouble);
  const Tensor keep = at::tensor({1, 1, 0, 1}).to(at::kBool).view({1, 4});
  const TransformerBlock block(llama());
  give_weights(block);
  const DTensor y = block(on_one_device(x).with_mask(on_one_device(keep)));
  REQUIRE(y.mask().defined());
  CHECK(at::equal(y.mask().full(), keep));
  const DTensor pairs = on_one_device(keep.unsqueeze(1).expand({1, 4, 4}).contiguous());
  const Tensor by_pairs = block(Inputs{on_one_device(x), pairs}).full();
  // The masked step itself is a query that the mask of steps excludes, too.
  for (const int64_t step : {0, 1, 3}) {
    CHECK(difference(y.full().select(1, step), by_pairs.select(1, step), 1e-12, 1e-12) == "");
  }
  CHECK_FALSE(at::allclose(by_pairs.select(1, 3), block(on_one_device(x)).full().select(1, 3)));
}

/// Returns the outputs for x, and the gradients of the sum of their squares with respect to the
/// weights, added to `gradients`. `documents` may be undefined.
Tensor trained(const LayerHandle& block, const DTensor& x, const DTensor& documents,
               std::vector<Tensor>& gradients) {
  std::vector<Variable> weights = block->weights();
  GradientTape tape;
  const DTensor y = documents.defined() ? block(Inputs{x, documents}) : block(x);
  const std::vector<DTensor> all = tape.gradient(ops::sum(y * y), weights);
  gradients.resize(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const Tensor own = all[i].full();
    gradients[i] = gradients[i].defined() ? gradients[i] + own : own;
  }
  return y.full();
}

TEST_CASE("TransformerBlock treats packed documents as it does each alone, on every mesh") {
  const test::DTypeScope doubles("float64");
  const Tensor x = at::randn({2, 6, features}, at::kDouble);
  // Ids need not be in order, and may be used again in another row.
  const Tensor ids = at::tensor({7, 7, 7, 2, 2, 0, 2, 7, 7, 7, 7, 7}, at::kInt).view({2, 6});
  const std::vector<std::array<int64_t, 3>> documents = {
      {0, 0, 3}, {0, 3, 2}, {0, 5, 1}, {1, 0, 1}, {1, 1, 5}};  // row, first step, steps
  const std::vector<LayoutSpec> layouts = {{unsharded, unsharded, unsharded},
                                           {"a", unsharded, unsharded},
                                           {unsharded, "b", unsharded},
                                           {"a", "b", unsharded}};
  const DefaultMeshScope mesh(create_mesh({{"a", 2}, {"b", 2}}, virtual_cpus(4)));
  for (const auto& [name, options] : families) {
    CAPTURE(name);
    const TransformerBlock block(options());
    give_weights(block);
    std::vector<Tensor> expected_gradients;
    Tensor expected = at::zeros_like(x);
    for (const auto& [row, first, steps] : documents) {
      const Tensor own = x.narrow(0, row, 1).narrow(1, first, steps).contiguous();
      expected.narrow(0, row, 1).narrow(1, first, steps) =
          trained(block, on_one_device(own), {}, expected_gradients);
    }
    for (const LayoutSpec& layout : layouts) {
      const DTensor rows = pack(x, Layout(layout, default_mesh()));
      const DTensor packed = pack(ids, Layout({layout[0], layout[1]}, default_mesh()));
      std::vector<Tensor> gradients;
      const Tensor y = trained(block, rows, packed, gradients);
      CHECK(difference(y, expected, 1e-12, 1e-12) == "");
      for (size_t i = 0; i < gradients.size(); ++i) {
        CAPTURE(block->weights()[i].path());
        CHECK(difference(gradients[i], expected_gradients[i], 1e-11, 1e-11) == "");
      }
    }
  }
}

// Rotary positions are relative, so that only documents whose steps are no neighbors show them.
TEST_CASE("TransformerBlock rotates by positions in the document") {
  const test::DTypeScope doubles("float64");
  const TransformerBlock block(llama());
  give_weights(block);
  const Tensor x = at::randn({1, 6, features}, at::kDouble);
  const Tensor ids = at::tensor({5, 3, 5, 3, 5, 3}, at::kInt).view({1, 6});
  const Tensor y = block(Inputs{on_one_device(x), on_one_device(ids)}).full();
  for (const int64_t first : {0, 1}) {
    const Tensor own = x.slice(1, first, std::nullopt, 2).contiguous();
    CHECK(difference(y.slice(1, first, std::nullopt, 2), block(on_one_device(own)).full(), 1e-12,
                     1e-12) == "");
  }
}

TEST_CASE("TransformerBlock refuses document ids that do not fit, and those with a cache") {
  const TransformerBlock block(llama());
  const DTensor x = on_one_device(at::zeros({1, 4, features}));
  const auto ids = [](const Shape& shape, at::ScalarType dtype) {
    return on_one_device(at::zeros(shape, dtype));
  };
  CHECK_THROWS_WITH(block(Inputs{x, ids({1, 3}, at::kInt)}),
                    Contains("document ids are integers") && Contains("3"));
  CHECK_THROWS_WITH(block(Inputs{x, ids({1, 4}, at::kFloat)}), Contains("Float"));
  CHECK_THROWS_WITH(
      block(Inputs{x, ids({1, 4}, at::kInt)}, {.cache = std::make_shared<KeyValueCache>(8)}),
      Contains("a row holds one document"));
}

TEST_CASE("TransformerBlock is made again from its configuration, with nested options") {
  Options options = llama();
  options.rotary->scaling = RotaryScaling::yarn;
  options.rotary->scaling_factor = 4;
  options.rotary->original_length = 64;
  options.gated = false;
  options.name = "b";
  options.feed_forward = MixtureOfExperts({.num_experts = 2, .hidden_dim = 3, .name = "experts"});
  const TransformerBlock block(options);
  const Json config = block->config();
  CHECK(config.at("rotary").at("scaling") == "yarn");
  CHECK(config.at("norm") == "rms");
  CHECK(config.at("feed_forward").at("class_name") == "MixtureOfExperts");
  const LayerHandle copy =
      layer_from_config(tessera::detail::layer_json(*block.layer()), JsonPath("block"));
  CHECK(copy->config() == config);
  copy->build({{-1, max_steps, features}});
  CHECK(copy->weights().back().path() == "b/experts/expert_2/bias");
}

TEST_CASE("TransformerBlock refuses invalid options by name") {
  const auto refuses = [](const Options& options, const char* rule) {
    CHECK_THROWS_WITH(TransformerBlock(options), Contains("[TransformerBlock b") && Contains(rule));
  };
  refuses({.hidden_dim = 4, .name = "b"}, "num_heads");
  refuses({.num_heads = 2, .name = "b"}, "hidden_dim");
  refuses({.num_heads = 4, .hidden_dim = 4, .num_key_value_heads = 3, .name = "b"},
          "a multiple of num_key_value_heads");
  refuses({.num_heads = 2, .hidden_dim = 4, .dropout = 1, .name = "b"}, "dropout");
  refuses({.num_heads = 2, .hidden_dim = 4, .attention_soft_cap = 0, .name = "b"}, "soft_cap");
  Options both = gemma2();
  both.feed_forward = MixtureOfExperts({.num_experts = 2, .hidden_dim = 3});
  both.name = "b";
  refuses(both, "gated");
  CHECK_THROWS_WITH(TransformerBlock({.num_heads = 5, .hidden_dim = 4})->build({{-1, 3, 12}}),
                    Contains("a multiple of num_heads"));
}

}  // namespace transformer_block_test
