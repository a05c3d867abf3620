#include <tessera/framework/nn/internal/random_stream.hpp>
#include <tessera/tessera.hpp>

#include "tests/training/recorded.hpp"

namespace recorded_random_layers_test {

using namespace tessera;
using namespace tessera::test;

namespace {

/// Noise of every kind between small_model()'s layers.
Sequential noisy_model() {
  const auto dense = [](int64_t units, const char* activation, int64_t seed, const char* name) {
    return Dense(units, {.activation = activation,
                         .kernel_initializer = GlorotUniform({.seed = seed}),
                         .name = name,
                         .dtype = "float64"});
  };
  return Sequential({dense(14, "selu", 21, "hidden_1"), GaussianNoise(0.1, {.dtype = "float64"}),
                     AlphaDropout(0.2, {.dtype = "float64"}), Reshape({7, 2}, {.dtype = "float64"}),
                     SpatialDropout1D(0.2, {.seed = 5, .dtype = "float64"}),
                     Flatten({.dtype = "float64"}), GaussianDropout(0.1, {.dtype = "float64"}),
                     dense(5, "linear", 23, "logits")});
}

/// Small images from a Dense, augmented in every way, with gradients through all of them.
Sequential model_of_changed_images() {
  const std::string dtype = "float64";
  const std::vector<double> value_range = {-3, 3};
  return Sequential(
      {Dense(60, {.kernel_initializer = GlorotUniform({.seed = 21}), .dtype = dtype}),
       Reshape({5, 4, 3}, {.dtype = dtype}), RandomFlip("horizontal", {.dtype = dtype}),
       RandomRotation(0.1, {.dtype = dtype}), RandomZoom(0.1, {.dtype = dtype}),
       RandomCrop(4, 3, {.dtype = dtype}), RandomTranslation(0.1, 0.1, {.dtype = dtype}),
       RandomPerspective(0.5, 0.2, {.dtype = dtype}),
       RandomErasing(0.5, {.value_range = value_range, .dtype = dtype}),
       RandomColorJitter({.value_range = value_range,
                          .brightness_factor = 0.1,
                          .contrast_factor = 0.2,
                          .dtype = dtype}),
       RandomSharpness({0.2, 0.6}, {.value_range = value_range, .dtype = dtype}),
       RandomInvert(0.5, {.value_range = value_range, .dtype = dtype}),
       RandomGaussianBlur(0.5, {.value_range = value_range, .dtype = dtype}),
       RandomElasticTransform(0.5, {.value_range = value_range, .dtype = dtype}),
       AugMix({.value_range = value_range,
               .num_chains = 1,
               .chain_depth = 1,
               .all_ops = false,
               .dtype = dtype}),
       MixUp(0.4, {.dtype = dtype}), CutMix(0.5, {.dtype = dtype}), Flatten({.dtype = dtype}),
       Dense(5, {.kernel_initializer = GlorotUniform({.seed = 23}), .dtype = dtype})});
}

/// Dropout in cells and in a ConvLSTM1D, whose masks all steps of a sequence share.
Sequential model_of_cells() {
  const std::string dtype = "float64";
  const GRUCell first(4, {.dropout = 0.2, .recurrent_dropout = 0.1, .dtype = dtype});
  const SimpleRNNCell second(4, {.dropout = 0.1, .dtype = dtype});
  const StackedRNNCells cells({first, second}, {.dtype = dtype});
  return Sequential(
      {Dense(12, {.kernel_initializer = GlorotUniform({.seed = 21}), .dtype = dtype}),
       Reshape({3, 4}, {.dtype = dtype}), RNN(cells, {.return_sequences = true, .dtype = dtype}),
       Reshape({3, 4, 1}, {.dtype = dtype}),
       ConvLSTM1D(2, 2, {.dropout = 0.1, .recurrent_dropout = 0.2, .dtype = dtype}),
       Flatten({.dtype = dtype}),
       Dense(5, {.kernel_initializer = GlorotUniform({.seed = 23}), .dtype = dtype})});
}

/// Noise by operations that a user-defined layer calls, one of them user-defined too.
class OwnNoise final : public Layer {
 public:
  OwnNoise() : Layer({.dtype = "float64"}) {}
  std::string class_name() const override { return "OwnNoise"; }
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override {
    static const ops::CustomOp half(
        "own_half", {.forward = [](std::span<const at::Tensor> x) { return x[0] * 0.5; },
                     .gradient = [](const std::vector<DTensor>&, const DTensor&,
                                    const DTensor& dy) { return std::vector<DTensor>{dy * 0.5}; }});
    const DTensor& x = inputs[0];
    if (!context.training) return half({x});
    const auto drawn = [&](const auto& draw) {
      return draw(x.shape(), context.random->next_input(path(), x.mesh()), 0, 0.1, at::kDouble);
    };
    return half({x + drawn(ops::random_normal) + drawn(ops::random_uniform) +
                 drawn(ops::random_truncated_normal)});
  }
};

}  // namespace

TEST_CASE("noise of every kind is replayed as in eager steps") { check_replayed(noisy_model); }

TEST_CASE("dropout of cells and ConvLSTM1D is replayed as in eager steps") {
  check_replayed(model_of_cells);
}

TEST_CASE("images are augmented in replayed steps as in eager ones, on any mesh") {
  check_replayed(model_of_changed_images);
}

TEST_CASE(
    "a user-defined layer draws differently in each replay, and its operations are replayed") {
  const auto model = [] {
    const auto dense = [](int64_t units, int64_t seed) {
      return Dense(units,
                   {.kernel_initializer = GlorotUniform({.seed = seed}), .dtype = "float64"});
    };
    return Sequential({dense(14, 21), make_layer<OwnNoise>(), dense(5, 23)});
  };
  for (int64_t devices : {1, 3}) {
    CAPTURE(devices);
    const LayoutMap layouts(create_mesh({{"batch", devices}}, virtual_cpus(devices)));
    const Outcome replayed = trained(model(), small_compile(layouts));
    CHECK(replayed.records.why == "");
    CHECK(replayed.records.replayed == 31);
    CompileOptions options = small_compile(layouts);
    options.run_eagerly = true;
    check_equal(replayed, trained(model(), options));
  }
}

}  // namespace recorded_random_layers_test
