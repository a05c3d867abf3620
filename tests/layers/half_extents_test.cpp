#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/internal/random_stream.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/layers.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/virtual_meshes.hpp"

/// Layers that add up 10^4 elements of float16 and bfloat16.
namespace half_extents_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using at::Tensor;
using Names = std::vector<std::string>;
using Make = std::function<LayerHandle()>;

constexpr int64_t extent = 10000;

struct Case {
  Make make;
  std::vector<SampleInput> inputs;
  /// Whether gradients are compared. Those of attention's scores cancel each other.
  bool gradients = true;
};

SampleInput numbers(const Shape& shape, double lo = 0, double hi = 1) {
  return {shape, at::kDouble, lo, hi};
}

const std::map<std::string, Case>& pooling_and_normalization() {
  static const std::map<std::string, Case> cases = {
      {"AveragePooling1D",
       {[] { return AveragePooling1D(extent); }, {numbers({1, extent, 2}, 0, 20)}}},
      {"AveragePooling2D",
       {[] { return AveragePooling2D(100); }, {numbers({1, 100, 100, 2}, 0, 20)}}},
      {"AveragePooling3D",
       {[] {
          return AveragePooling3D({10, 10, 100});
        },
        {numbers({1, 10, 10, 100, 2}, 0, 20)}}},
      {"AdaptiveAveragePooling1D",
       {[] { return AdaptiveAveragePooling1D(3); }, {numbers({1, extent, 2}, 0, 20)}}},
      {"AdaptiveAveragePooling2D",
       {[] {
          return AdaptiveAveragePooling2D({1, 3});
        },
        {numbers({1, 100, 100, 2}, 0, 20)}}},
      {"AdaptiveAveragePooling3D",
       {[] { return AdaptiveAveragePooling3D(1); }, {numbers({1, 10, 10, 100, 2}, 0, 20)}}},
      {"GlobalAveragePooling1D",
       {[] { return GlobalAveragePooling1D(); }, {numbers({2, extent, 3}, 0, 20)}}},
      {"GlobalAveragePooling2D",
       {[] { return GlobalAveragePooling2D(); }, {numbers({2, 100, 100, 3}, 0, 20)}}},
      {"GlobalAveragePooling3D",
       {[] { return GlobalAveragePooling3D(); }, {numbers({2, 10, 10, 100, 3}, 0, 20)}}},
      {"BatchNormalization", {[] { return BatchNormalization(); }, {numbers({extent, 3}, 0, 20)}}},
      {"GroupNormalization",
       {[] { return GroupNormalization({.groups = 1}); }, {numbers({2, extent / 2, 2}, 0, 20)}}},
      {"LayerNormalization", {[] { return LayerNormalization(); }, {numbers({2, extent}, 0, 20)}}},
      {"RMSNormalization", {[] { return RMSNormalization(); }, {numbers({2, extent}, 0, 20)}}},
      {"UnitNormalization", {[] { return UnitNormalization(); }, {numbers({2, extent}, 0, 20)}}},
      {"Softmax",
       {[] {
          return Softmax({.axis = {1, 2}});
        },
        {numbers({2, extent / 2, 2}, -2, 2)}}},
      {"ActivityRegularization",
       {[] { return ActivityRegularization({.l1 = 0.1, .l2 = 0.2}); },
        {numbers({2, extent}, 0, 20)}}},
      {"Average",
       {[] { return Average(); }, {numbers({2, 3}, 4e4, 5e4), numbers({2, 3}, 4e4, 5e4)}}},
      {"RandomContrast",
       {[] { return RandomContrast(0.001); }, {numbers({2, 100, 100, 3}, 10, 200)}}},
      {"CategoryEncoding",
       {[] { return CategoryEncoding(4, {.output_mode = "count"}); },
        {{{2, extent}, at::kLong, 0, 4}}}},
  };
  return cases;
}

const std::map<std::string, Case>& products() {
  const auto wide = numbers({2, 2, extent});
  static const std::map<std::string, Case> cases = {
      {"Dense", {[] { return Dense(2); }, {numbers({3, extent})}}},
      {"EinsumDense",
       {[] {
          return EinsumDense("abc,cd->abd", {-1, 2});
        },
        {wide}}},
      {"Embedding", {[] { return Embedding(4, 2); }, {{{2, extent}, at::kLong, 0, 4}}}},
      {"ReversibleEmbedding",
       {[] { return ReversibleEmbedding(4, 2); }, {{{2, extent}, at::kLong, 0, 4}}}},
      {"Dot",
       {[] { return Dot(1, {.normalize = true}); },
        {numbers({2, extent}, 0, 20), numbers({2, extent}, 0, 20)}}},
      {"Conv1D", {[] { return Conv1D(2, 1); }, {wide}}},
      {"Conv2D", {[] { return Conv2D(2, 1); }, {numbers({1, 2, 1, extent})}}},
      {"Conv3D", {[] { return Conv3D(2, 1); }, {numbers({1, 2, 1, 1, extent})}}},
      {"Conv1DTranspose", {[] { return Conv1DTranspose(2, 1); }, {wide}}},
      {"Conv2DTranspose", {[] { return Conv2DTranspose(2, 1); }, {numbers({1, 2, 1, extent})}}},
      {"Conv3DTranspose", {[] { return Conv3DTranspose(2, 1); }, {numbers({1, 2, 1, 1, extent})}}},
      {"SpectralNormalization",
       {[] { return SpectralNormalization(Dense(2)); }, {numbers({3, extent})}}},
      {"DepthwiseConv1D", {[] { return DepthwiseConv1D(extent); }, {numbers({1, extent, 2})}}},
      {"DepthwiseConv2D", {[] { return DepthwiseConv2D(100); }, {numbers({1, 100, 100, 2})}}},
      {"SeparableConv1D", {[] { return SeparableConv1D(2, extent); }, {numbers({1, extent, 2})}}},
      {"SeparableConv2D", {[] { return SeparableConv2D(2, 100); }, {numbers({1, 100, 100, 2})}}},
      {"SimpleRNN", {[] { return SimpleRNN(2); }, {wide}}},
      {"GRU", {[] { return GRU(2); }, {wide}}},
      {"LSTM", {[] { return LSTM(2); }, {wide}}},
      {"RNN", {[] { return RNN(LSTMCell(2)); }, {wide}}},
      {"ConvLSTM1D", {[] { return ConvLSTM1D(2, 1); }, {numbers({1, 2, 1, extent})}}},
      {"ConvLSTM2D", {[] { return ConvLSTM2D(2, 1); }, {numbers({1, 2, 1, 1, extent})}}},
      {"ConvLSTM3D", {[] { return ConvLSTM3D(2, 1); }, {numbers({1, 1, 1, 1, 1, extent})}}},
      {"Attention",
       {[] { return Attention(); }, {numbers({1, 2, 4}), numbers({1, extent, 4}, 0, 20)}, false}},
      {"AdditiveAttention",
       {[] { return AdditiveAttention(); },
        {numbers({1, 2, 4}), numbers({1, extent, 4}, 0, 20)},
        false}},
      {"MultiHeadAttention",
       {[] { return MultiHeadAttention(2, 2); },
        {numbers({1, 2, 4}), numbers({1, extent, 4})},
        false}},
      {"GroupQueryAttention",
       {[] { return GroupQueryAttention(2, 2, 1); },
        {numbers({1, 2, 4}), numbers({1, extent, 4})},
        false}},
  };
  return cases;
}

/// Layers that are no case, by the reason.
const std::map<std::string, Names>& others() {
  static const std::map<std::string, Names> names = {
      {"it computes each element from one of each input, or from few",
       {"Activation",
        "Add",
        "AlphaDropout",
        "Dropout",
        "ELU",
        "GaussianDropout",
        "GaussianNoise",
        "Identity",
        "LeakyReLU",
        "Masking",
        "MaxNumBoundingBoxes",
        "Maximum",
        "Minimum",
        "Multiply",
        "Normalization",
        "PReLU",
        "RandomBrightness",
        "RandomColorDegeneration",
        "RandomGaussianBlur",
        "RandomGrayscale",
        "RandomHue",
        "RandomInvert",
        "RandomPosterization",
        "RandomSaturation",
        "RandomSharpness",
        "ReLU",
        "Rescaling",
        "Solarization",
        "SpatialDropout1D",
        "SpatialDropout2D",
        "SpatialDropout3D",
        "Subtract"}},
      {"it moves, selects or mixes elements",
       {"AdaptiveMaxPooling1D",
        "AdaptiveMaxPooling2D",
        "AdaptiveMaxPooling3D",
        "AutoContrast",
        "CenterCrop",
        "Concatenate",
        "Cropping1D",
        "Cropping2D",
        "Cropping3D",
        "CutMix",
        "Flatten",
        "GlobalMaxPooling1D",
        "GlobalMaxPooling2D",
        "GlobalMaxPooling3D",
        "MaxPooling1D",
        "MaxPooling2D",
        "MaxPooling3D",
        "MixUp",
        "Permute",
        "RandomCrop",
        "RandomElasticTransform",
        "RandomErasing",
        "RandomFlip",
        "RandomPerspective",
        "RandomRotation",
        "RandomShear",
        "RandomTranslation",
        "RandomZoom",
        "RepeatVector",
        "Reshape",
        "UpSampling1D",
        "UpSampling2D",
        "UpSampling3D",
        "ZeroPadding1D",
        "ZeroPadding2D",
        "ZeroPadding3D"}},
      {"it applies other layers",
       {"AugMix", "Bidirectional", "Pipeline", "RandAugment", "TimeDistributed",
        "TransformerBlock"}},
      {"it is registered by another test", {"Doubled", "MixingCell"}},
      {"it is the step of RNN, SimpleRNN, GRU or LSTM",
       {"GRUCell", "LSTMCell", "SimpleRNNCell", "StackedRNNCells"}},
      {"it applies RandomContrast", {"RandomColorJitter"}},
      {"its gradient is that of a broadcast operand, a case of tests/ops",
       {"CustomScaleLayer", "LayerScale", "PositionEmbedding"}},
      {"it encodes as CategoryEncoding does, or looks up",
       {"Discretization", "HashedCrossing", "Hashing", "IntegerLookup", "StringLookup",
        "PretrainedTokenizer", "TextVectorization"}},
      {"it counts in float64", {"ContrastLimitedAdaptiveHistogramEqualization", "Equalization"}},
      {"it routes in float32", {"MixtureOfExperts"}},
      {"ops::resample, a case of tests/ops", {"Resizing"}}};
  return names;
}

/// The output, the penalties' sum, and the gradients of inputs and weights.
std::vector<Tensor> results(const LayerHandle& layer, const Inputs& inputs, at::ScalarType half,
                            bool gradients) {
  GradientTape tape;
  Inputs sources;
  for (const DTensor& x : inputs) {
    if (!at::isFloatingType(x.dtype())) continue;
    tape.watch(x);
    sources.push_back(x);
  }
  for (const Variable& weight : layer->trainable_weights()) sources.push_back(weight.value());
  const auto random = std::make_shared<RandomStream>(3, 4);
  const DTensor y = layer(inputs, {.training = true, .random = random});
  const Tensor dy = random_values({y.shape(), at::kDouble, 0.5, 2}, 11).to(half).to(y.dtype());
  std::vector<Tensor> all = {y.full()};
  for (const DTensor& penalty : layer->losses()) all.push_back(penalty.full());
  if (!gradients || sources.empty()) return all;
  const GradientOptions options = {.output_gradient = pack(dy, fetch_layout(y))};
  for (const DTensor& gradient : tape.gradient(y, sources, options)) {
    if (gradient.defined()) all.push_back(gradient.full());
  }
  return all;
}

LayerHandle built_in(const std::string& policy, const Case& c, const Mesh& mesh) {
  const DTypeScope scope(policy);
  const LayerHandle layer = c.make();
  Shapes shapes;
  for (const SampleInput& input : c.inputs) shapes.push_back(input.shape);
  layer->build(shapes);
  for (Variable& weight : layer->weights()) {
    const auto rank = static_cast<int64_t>(weight.shape().size());
    weight.place({weight.shape(), Layout::replicated(mesh, rank)});
  }
  return layer;
}

/// Returns the results in float64, with inputs and weights that the dtype `half` can represent.
std::vector<Tensor> exact_results(const Case& c, const std::string& policy,
                                  const std::vector<Tensor>& inputs) {
  const Mesh one = virtual_mesh({1});
  const LayerHandle small = built_in(policy, c, one), layer = built_in("float64", c, one);
  for (size_t w = 0; w < small->weights().size(); ++w) {
    Variable weight = layer->weights()[w];
    weight.assign(small->weights()[w].value());
  }
  Inputs in;
  for (const Tensor& x : inputs) {
    const Tensor wide = at::isFloatingType(x.scalar_type()) ? x.to(at::kDouble) : x;
    in.push_back(pack(wide, Layout::replicated(one, x.dim())));
  }
  return results(layer, in, dtype_policy(policy).compute, c.gradients);
}

/// Empty if a layer is correct on one, two and four devices.
std::string wrong_layer(const Case& c, const std::string& policy) {
  const at::ScalarType half = dtype_policy(policy).compute;
  // Eight units in the last place of the largest element.
  const double tolerance = half == at::kHalf ? 4e-3 : 3e-2;
  std::vector<Tensor> inputs;
  for (const SampleInput& input : c.inputs) {
    const Tensor x = random_values(input, 1 + inputs.size());
    inputs.push_back(at::isFloatingType(input.dtype) ? x.to(half) : x);
  }
  const std::vector<Tensor> expected = exact_results(c, policy, inputs);
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1}, {2}, {2, 2}}) {
    const Mesh mesh = virtual_mesh(sizes);
    std::vector<std::vector<Layout>> lists;
    for (const Tensor& x : inputs) lists.push_back(layouts_of(mesh, x.dim(), {}));
    for (const std::vector<Layout>& layouts : choices(lists, 3, text_seed(policy))) {
      const LayerHandle layer = built_in(policy, c, mesh);
      Inputs in;
      for (size_t i = 0; i < inputs.size(); ++i) in.push_back(pack(inputs[i], layouts[i]));
      const std::string wrong =
          difference_in_float64(results(layer, in, half, c.gradients), expected, tolerance);
      if (!wrong.empty()) return str(short_name(mesh), ", ", short_name(layouts), ": ", wrong);
    }
  }
  return "";
}

void check_cases(const std::map<std::string, Case>& cases) {
  for (const auto& [name, c] : cases) {
    for (const char* policy : {"float16", "bfloat16"}) {
      INFO(name << " in " << policy);
      CHECK(wrong_layer(c, policy) == "");
    }
  }
}

}  // namespace

TEST_CASE("pooling and normalization of 10^4 float16 or bfloat16 elements have float64's results") {
  check_cases(pooling_and_normalization());
}

TEST_CASE("products over 10^4 float16 or bfloat16 features have float64's results") {
  check_cases(products());
}

TEST_CASE("GlobalAveragePooling1D of 10^4 unmasked float16 or bfloat16 steps is their mean") {
  for (const char* policy : {"float16", "bfloat16"}) {
    const DTypeScope scope(policy);
    const at::ScalarType half = dtype_policy(policy).compute;
    const Tensor x = random_values({{2, extent, 3}, at::kDouble, 10, 20}, 1).to(half);
    const Tensor mask = random_values({{2, extent}, at::kBool, 0, 2}, 2);
    const Tensor counts = mask.to(at::kDouble).unsqueeze(-1);
    const Tensor mean = x.to(at::kDouble).mul(counts).sum(1).div(counts.sum(1));
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1}, {2}, {2, 2}}) {
      const Mesh mesh = virtual_mesh(sizes);
      for (const Layout& layout : layouts_of(mesh, 3, {})) {
        CAPTURE(policy, short_name({layout}));
        DTensor in = pack(x, layout);
        in = in.with_mask(pack(mask, Layout::replicated(mesh, 2)));
        const DTensor y = GlobalAveragePooling1D()({in});
        CHECK(y.dtype() == half);
        CHECK(difference(y.full().to(at::kDouble), mean, half == at::kHalf ? 1e-3 : 8e-3) == "");
      }
    }
  }
}

TEST_CASE("each layer has a case of 10^4 elements, or a reason for none") {
  std::set<std::string> known;
  for (const auto* cases : {&pooling_and_normalization(), &products()}) {
    for (const auto& [name, c] : *cases) CHECK(known.insert(name).second);
  }
  for (const auto& [reason, names] : others()) {
    for (const std::string& name : names) {
      INFO(name);
      CHECK(known.insert(name).second);
    }
  }
  const std::vector<std::string> registered = layer_class_names();
  for (const std::string& name : known) {
    INFO(name);
    CHECK(std::find(registered.begin(), registered.end(), name) != registered.end());
  }
  for (const std::string& name : registered) {
    INFO(name);
    CHECK(known.count(name) > 0);
  }
}

}  // namespace half_extents_test
