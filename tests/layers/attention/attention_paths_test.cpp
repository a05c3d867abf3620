// The fused and the composed computation of attention layers, in every form, against ATen.
#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/nn/internal/random_stream.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/attention/group_query_attention.hpp>
#include <tessera/layers/attention/multi_head_attention.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/op_names.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace attention_paths_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

/// The masks of the inputs: none, of the first axis after the batch, or of all but the features.
enum class Padding : uint8_t { none, first_axis, all_axes };

/// A way to call an attention layer.
struct Form {
  int64_t rank = 3;
  std::vector<int64_t> axes = {};  ///< attended axes; empty: all
  bool causal = false;
  std::optional<int64_t> window = std::nullopt;
  bool has_mask = false;  ///< whether an attention mask is passed
  Padding padding = Padding::none;

  bool has_two_axes() const { return rank == 4 && axes.empty(); }
  std::string text() const {
    return str("rank ", rank, ", axes ", to_string(axes), causal ? ", causal" : "", ", window ",
               window.value_or(0), has_mask ? ", mask" : "", ", padding ", int(padding));
  }
};

std::vector<Form> forms() {
  std::vector<Form> all;
  const std::vector<Form> places = {{3, {}}, {4, {1}}, {4, {2}}, {4, {}}};
  for (const Form& place : places) {
    for (int choice = 0; choice < 24; ++choice) {
      Form form = place;
      form.causal = (choice & 1) != 0;
      if ((choice & 2) != 0) form.window = 2;
      form.has_mask = (choice & 4) != 0;
      form.padding = static_cast<Padding>(choice / 8);
      if (form.has_two_axes() && (form.causal || form.window)) continue;
      if (form.rank == 3 && form.padding == Padding::all_axes) continue;
      all.push_back(form);
    }
  }
  return all;
}

/// The inputs of a call; masks are undefined if there are none.
struct Call {
  at::Tensor query, value, query_mask, value_mask, attention_mask;
};

/// Returns values of (batch, N, steps, features), where N is the axis that is not attended over.
at::Tensor in_order(const Form& form, const at::Tensor& x) {
  if (form.rank == 3) return x.unsqueeze(1);
  if (form.has_two_axes()) return x.flatten(1, 2).unsqueeze(1);
  return form.axes[0] == 1 ? x.transpose(1, 2) : x;
}

at::Tensor as_before(const Form& form, const at::Tensor& y, const at::Tensor& like) {
  if (form.rank == 3 || form.has_two_axes()) return y.reshape(like.sizes());
  return form.axes[0] == 1 ? y.transpose(1, 2).contiguous() : y;
}

/// Returns a mask of which row 1 allows nothing, and the others not the first index of axis 1.
at::Tensor padding_of(const Form& form, const at::Tensor& x, uint64_t seed) {
  if (form.padding == Padding::none) return {};
  Shape shape = x.sizes().vec();
  shape.resize(form.padding == Padding::first_axis ? 2 : shape.size() - 1);
  at::Tensor mask = test::random_values({shape}, seed).gt(-0.3);
  mask.select(1, 0).fill_(false);
  mask.select(1, 1).fill_(true);
  mask[1].fill_(false);
  return mask;
}

Call call_of(const Form& form) {
  const bool flat = form.rank == 3;
  // Equal extents would hide that a mask is of the wrong axis, if they were not masked differently.
  const Shape query = flat ? Shape{3, 4, 5} : Shape{3, 4, 4, 5};
  Shape value = query;
  value[form.axes.empty() ? 1 : size_t(form.axes[0])] = 6;
  Call call;
  call.query = test::random_values({query}, 1);
  call.value = test::random_values({value}, 2);
  call.query_mask = padding_of(form, call.query, 3);
  call.value_mask = padding_of(form, call.value, 4);
  if (!form.has_mask) return call;
  const int64_t t = in_order(form, call.query).size(2), s = in_order(form, call.value).size(2);
  call.attention_mask = test::random_values({{3, t, s}}, 5).gt(0);
  call.attention_mask[0][1].fill_(false);
  call.attention_mask[0][2].fill_(true);
  return call;
}

/// Returns which steps each step may attend to: (batch, N, 1, T, S).
at::Tensor allowed_steps(const Form& form, const Call& call) {
  const int64_t t = in_order(form, call.query).size(2), s = in_order(form, call.value).size(2);
  at::Tensor allowed = at::ones({3, in_order(form, call.query).size(1), 1, t, s}, at::kBool);
  const auto of_steps = [&](at::Tensor mask, const at::Tensor& x) {
    while (mask.dim() < x.dim()) mask = mask.unsqueeze(-1);
    Shape shape = x.sizes().vec();
    shape.back() = 1;
    return in_order(form, mask.expand(shape)).unsqueeze(2);
  };
  if (call.query_mask.defined()) {
    allowed = allowed.logical_and(of_steps(call.query_mask, call.query));
    allowed = allowed.logical_and(of_steps(call.value_mask, call.value).transpose(-1, -2));
  }
  if (call.attention_mask.defined()) {
    allowed = allowed.logical_and(call.attention_mask.unsqueeze(1).unsqueeze(1));
  }
  const at::Tensor ahead = at::arange(t).unsqueeze(-1) - at::arange(s);
  if (form.causal) allowed = allowed.logical_and(ahead.ge(0));
  if (form.window) allowed = allowed.logical_and(ahead.abs().lt(*form.window));
  return allowed;
}

/// Computes the layer by its formula from kernels and biases of query, key, value and output.
at::Tensor by_hand(const Form& form, const Call& call, const std::vector<at::Tensor>& weights) {
  const at::Tensor x = in_order(form, call.query), y = in_order(form, call.value);
  const int64_t heads = weights[0].size(1);
  const auto projected = [&](const at::Tensor& values, size_t i) {
    const at::Tensor each = at::tensordot(values, weights[i], {3}, {0}) + weights[i + 1];
    return each.repeat_interleave(heads / each.size(3), 3).transpose(2, 3);
  };
  const at::Tensor q = projected(x, 0), k = projected(y, 2), v = projected(y, 4);
  const at::Tensor allowed = allowed_steps(form, call);
  const at::Tensor scores = q.matmul(k.transpose(-1, -2)) / std::sqrt(double(q.size(-1)));
  const at::Tensor shares = scores.masked_fill(allowed.logical_not(), -INFINITY).softmax(-1);
  const at::Tensor outputs = at::where(allowed, shares, at::zeros({}, at::kDouble)).matmul(v);
  const at::Tensor last =
      at::tensordot(outputs.transpose(2, 3), weights[6], {3, 4}, {0, 1}) + weights[7];
  return as_before(form, last, call.query);
}

/// How a layer is made to compute: fused, or composed for its scores or its dropout.
enum class Path : uint8_t { fused, scores, dropout };

/// Makes the layer of a form.
template <class Options>
Options options_of(const Form& form, Path path) {
  Options options;
  options.sliding_window = form.window;
  options.use_causal_mask = form.causal;
  options.return_attention_scores = path == Path::scores;
  options.dropout = path == Path::dropout ? 1e-14 : 0;
  options.name = "a";
  options.dtype = "float64";
  return options;
}

LayerHandle multi_head(const Form& form, Path path) {
  auto options = options_of<MultiHeadAttentionOptions>(form, path);
  options.attention_axes = form.axes;
  return MultiHeadAttention(4, 3, options);
}

LayerHandle group_query(const Form& form, Path path) {
  return GroupQueryAttention(3, 4, 2, options_of<GroupQueryAttentionOptions>(form, path));
}

/// Kernels and biases with heads on "model", everything else replicated.
LayoutMap layouts_on(const Mesh& mesh) {
  LayoutMap layouts(mesh);
  if (mesh.size() == 1) return layouts;
  for (const char* name : {"query", "key", "value"}) {
    layouts[str("a/", name, "/kernel")] = {unsharded, "model", unsharded};
  }
  layouts["a/attention_output/kernel"] = {"model", unsharded, unsharded};
  return layouts;
}

DTensor by_rows(const at::Tensor& full, const Mesh& mesh) {
  return pack(full, Layout::batch_sharded(mesh, "batch", full.dim()));
}

/// The weights of a layer, its output and the gradients of the inputs.
struct Result {
  std::vector<at::Tensor> weights, values;
  bool fused = false;
};

Result run(const LayerHandle& layer, const Call& call, Path path, const Mesh& mesh) {
  Inputs inputs = {by_rows(call.query, mesh), by_rows(call.value, mesh)};
  layer->build({inputs[0].shape(), inputs[1].shape()});
  layer->place_weights(layouts_on(mesh));
  Result result;
  uint64_t seed = 10;
  for (Variable weight : layer->weights()) {
    result.weights.push_back(test::random_values({weight.shape()}, ++seed));
    weight.assign(
        pack(result.weights.back(), Layout::replicated(mesh, std::ssize(weight.shape()))));
  }
  GradientTape tape;
  for (const DTensor& input : inputs) tape.watch(input);
  const Inputs sources = inputs;
  if (call.query_mask.defined()) {
    inputs[0] = inputs[0].with_mask(by_rows(call.query_mask, mesh));
    inputs[1] = inputs[1].with_mask(by_rows(call.value_mask, mesh));
  }
  if (call.attention_mask.defined()) {
    inputs.push_back(sources[1]);
    const Shape& query = sources[0].shape();
    const bool two_axes = call.query.dim() == 4 && call.attention_mask.size(1) != 4;
    const at::Tensor mask =
        two_axes ? call.attention_mask.reshape(
                       {3, query[1], query[2], call.value.size(1), call.value.size(2)})
                 : call.attention_mask;
    inputs.push_back(by_rows(mask, mesh));
  }
  const test::OpNames names;
  const auto random = std::make_shared<RandomStream>(3, 1);
  const DTensor y =
      layer->outputs(inputs, {.training = path == Path::dropout, .random = random})[0];
  result.fused = names.has("attention");
  result.values.push_back(y.full().clone());
  for (const DTensor& gradient : tape.gradient(ops::sum(y * y), sources)) {
    result.values.push_back(gradient.full().clone());
  }
  return result;
}

std::vector<Mesh> meshes() {
  return {create_mesh({{"batch", 1}, {"model", 1}}, virtual_cpus(1)),
          create_mesh({{"batch", 3}, {"model", 1}}, virtual_cpus(3)),
          create_mesh({{"batch", 2}, {"model", 2}}, virtual_cpus(4))};
}

template <class Make>
void check_form(const Form& form, const Make& make) {
  CAPTURE(form.text());
  const Call call = call_of(form);
  std::vector<at::Tensor> first;
  for (const Mesh& mesh : meshes()) {
    for (const Path path : {Path::fused, Path::scores, Path::dropout}) {
      CAPTURE(mesh.describe(), int(path));
      const Result actual = run(make(form, path), call, path, mesh);
      CHECK(actual.fused == (path == Path::fused && !form.has_two_axes()));
      const at::Tensor expected = by_hand(form, call, actual.weights);
      CHECK(difference(actual.values[0], expected, 1e-10, 1e-11) == "");
      if (first.empty()) first = actual.values;
      for (size_t i = 1; i < first.size(); ++i) {
        CHECK(difference(actual.values[i], first[i], 1e-10, 1e-11) == "");
      }
    }
  }
}

}  // namespace

TEST_CASE("MultiHeadAttention is the same with and without scores and dropout, in every form") {
  for (const Form& form : forms()) check_form(form, multi_head);
}

TEST_CASE("GroupQueryAttention is the same with and without scores and dropout, in every form") {
  for (const Form& form : forms()) {
    if (form.rank == 3) check_form(form, group_query);
  }
}

TEST_CASE("a causal mask and a window of attention over several axes are refused") {
  for (const bool causal : {true, false}) {
    const Form form{
        .rank = 4, .causal = causal, .window = causal ? std::nullopt : std::optional(2)};
    const LayerHandle layer = multi_head(form, Path::fused);
    CHECK_THAT(test::error_line([&] {
                 layer->build({{3, 4, 4, 5}, {3, 4, 4, 5}});
               }),
               Contains("one attended axis") && Contains("(1, 2)"));
  }
}

}  // namespace attention_paths_test
