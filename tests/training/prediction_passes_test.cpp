// Steps that were rewritten: convolutions and normalizations fused with what follows, kernels
// packed.
#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include <array>
#include <memory>

#include <tessera/framework/ops/internal/bfloat16.hpp>
#include <tessera/framework/ops/internal/fused_conv.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/profile_work.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace prediction_passes_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// A network with every chain that one operation can stand for, and some that it cannot: a
/// convolution whose result is read twice, one after which the sum is normalized, a dilated one.
Functional make_network(const std::string& dtype) {
  Input picture({8, 8, 3});
  const ConvOptions plain = {.padding = "same", .use_bias = false, .dtype = dtype};
  const auto normalized = [&](const SymbolicTensor& x) {
    return BatchNormalization({.dtype = dtype})(x);
  };
  const auto relu6 = ReLU({.max_value = 6, .dtype = dtype});
  auto x = relu6(normalized(Conv2D(8, 3, plain)(picture)));
  x = ReLU({.dtype = dtype})(
      normalized(DepthwiseConv2D(3, {.padding = "same", .use_bias = false, .dtype = dtype})(x)));
  const auto skip = normalized(Conv2D(8, 1, plain)(x));
  x = Add({.dtype = dtype})(
      {normalized(Conv2D(8, 3, {.padding = "same", .dtype = dtype})(skip)), skip});
  x = ReLU({.dtype = dtype})(x);
  x = Conv2D(8, 3, {.padding = "same", .groups = 2, .activation = "relu", .dtype = dtype})(x);
  const auto padded = ZeroPadding2D({{0, 1}, {0, 1}}, {.dtype = dtype})(x);
  x = normalized(Conv2D(8, 3, {.strides = 2, .use_bias = false, .dtype = dtype})(padded));
  x = DepthwiseConv2D(
      3, {.activation = "relu", .dtype = dtype})(ZeroPadding2D(1, {.dtype = dtype})(x));
  const auto twice = Conv2D(8, 3, plain)(x);
  x = normalized(Add({.dtype = dtype})({twice, ReLU({.dtype = dtype})(twice)}));
  x = Conv2D(6, 3, {.strides = 2, .activation = "tanh", .dtype = dtype})(x);
  x = GlobalAveragePooling2D({.dtype = dtype})(x);
  return Functional({picture}, {Dense(3, {.dtype = dtype})(x)});
}

/// A layer whose output depends on its weight alone.
class Table : public Layer {
 public:
  std::string class_name() const override { return "Table"; }
  Shape output_shape(const Shapes&) const override { return {4, 3}; }

 protected:
  void make_weights(const Shapes&) override { table_ = add_weight("table", {4, 3}, "ones", {}); }
  DTensor call(const Inputs&, const CallContext&) override { return read(table_) * 2.0; }

 private:
  Variable table_;
};

at::Tensor hashed(const Shape& shape, uint64_t seed) {
  return random_values({shape, at::kFloat}, seed);
}

/// Gives every weight other numbers than those of a normalization that does nothing; small ones, as
/// large ones would amplify how additions round.
void stir(const Functional& model) {
  int64_t seed = 0;
  for (Variable weight : model.weights()) {
    const at::Tensor numbers = hashed(weight.shape(), ++seed);
    const bool variance = weight.path().find("variance") != std::string::npos;
    weight.assign(pack((variance ? numbers.abs() + 0.5 : numbers * 0.5).to(weight.dtype())));
  }
}

/// Two models of the same weights: one whose predictions are replayed, one that runs its code.
struct Twins {
  Functional fast, slow;

  Twins(const LayoutMap& layouts, const std::string& dtype)
      : fast(make_network(dtype)), slow(make_network(dtype)) {
    CompileOptions options = {.optimizer = SGD(0.01), .loss = "mse", .layouts = layouts};
    fast.compile(options);
    options.optimizer = SGD(0.01);
    options.run_eagerly = true;
    slow.compile(options);
    stir(fast);
    slow.set_weights(fast.get_weights());
  }

  at::Tensor predict(const Functional& model, const at::Tensor& x) const {
    return model.predict_on_batch(Examples{{x}})[0];
  }
};

std::vector<LayoutMap> layouts_of_networks() {
  std::vector<LayoutMap> all;
  const auto on = [&](const MeshDims& dims) -> LayoutMap& {
    int64_t devices = 1;
    for (const auto& [name, size] : dims) devices *= size;
    return all.emplace_back(create_mesh(dims, virtual_cpus(devices)));
  };
  on({{"batch", 1}});
  on({{"batch", 4}});
  on({{"batch", 2}, {"model", 2}})
      .add({"conv2d.*/kernel", LayoutSpec{unsharded, unsharded, unsharded, "model"}});
  on({{"batch", 1}, {"height", 2}})
      .set_data("x", LayoutSpec{"batch", "height", unsharded, unsharded});
  return all;
}

}  // namespace

TEST_CASE("predictions by fused operations equal those of the code whenever weights change") {
  const at::Tensor x = hashed({8, 8, 8, 3}, 99), y = hashed({8, 3}, 98);
  for (const LayoutMap& layouts : layouts_of_networks()) {
    CAPTURE(layouts.mesh().describe());
    const Twins twins(layouts, "float32");
    const auto check_same = [&](bool changed) {
      const int64_t packed = packed_kernels();
      at::Tensor expected = twins.predict(twins.slow, x);
      for (int i = 0; i < 3; ++i) {
        CHECK(difference(twins.predict(twins.fast, x), expected, 2e-5, 2e-5) == "");
      }
      // Channels that are sharded leave partial sums: few chains are fused then.
      const bool many = layouts.mesh().rank() == 1 || layouts.mesh().dims()[1].first == "height";
      CHECK(twins.fast.predict_step_records().fused >= (many ? 9 : 2));
      if (many) CHECK((packed_kernels() > packed) == changed);
    };
    check_same(true);
    const StepRecords& records = twins.fast.predict_step_records();
    CHECK(records.replayed == 1);
    CHECK(records.fused >= 2);
    CHECK(records.hoisted > records.fused);
    CHECK(twins.slow.predict_step_records().fused == 0);
    check_same(false);

    twins.fast.fit(x, y, {.batch_size = 8, .epochs = 2, .verbose = 0});
    twins.slow.set_weights(twins.fast.get_weights());
    check_same(true);
    stir(twins.fast);
    twins.slow.set_weights(twins.fast.get_weights());
    check_same(true);
    const TempFolder folder;
    twins.slow.fit(x, y, {.batch_size = 8, .epochs = 1, .verbose = 0});
    twins.slow.save_weights((folder.path() / "w.weights.h5").string());
    twins.fast.load_weights((folder.path() / "w.weights.h5").string());
    check_same(true);
    for (const Functional& model : {twins.fast, twins.slow}) {
      Variable moving = model.get_layer("batch_normalization")->weights()[3];
      moving.assign(pack(hashed(moving.shape(), 7).abs() + 1));
    }
    check_same(true);
    check_same(false);
  }
}

TEST_CASE("tests run fused operations on the weights of now") {
  const at::Tensor x = hashed({8, 8, 8, 3}, 99), y = hashed({8, 3}, 98);
  for (const LayoutMap& layouts : layouts_of_networks()) {
    CAPTURE(layouts.mesh().describe());
    const Twins twins(layouts, "float32");
    for (int round = 0; round < 4; ++round) {
      twins.slow.set_weights(twins.fast.get_weights());
      const double expected = twins.slow.test_on_batch(x, y)[0].second;
      for (int i = 0; i < 3; ++i) {
        CHECK(twins.fast.test_on_batch(x, y)[0].second == Approx(expected).epsilon(1e-4));
        CHECK(difference(twins.predict(twins.fast, x), twins.predict(twins.slow, x), 2e-5, 2e-5) ==
              "");
      }
      twins.fast.train_on_batch(x, y);
    }
    CHECK(twins.fast.test_step_records().fused >= 2);
    CHECK(twins.fast.test_step_records().fused == twins.fast.predict_step_records().fused);
  }
}

TEST_CASE("training with activations inside normalizations gives the same weights") {
  const at::Tensor x = hashed({8, 8, 8, 3}, 99), y = hashed({8, 3}, 98);
  for (const std::string dtype : {"float32", "float64", "mixed_bfloat16"}) {
    for (const LayoutMap& layouts : layouts_of_networks()) {
      CAPTURE(dtype, layouts.mesh().describe());
      const Twins twins(layouts, dtype);
      for (const Functional& model : {twins.fast, twins.slow}) {
        for (int i = 0; i < 5; ++i) model.train_on_batch(x, y);
      }
      CHECK(twins.slow.step_records().fused == 0);
      // Two normalizations and, in float32 and with whole channels, two convolutions with a bias.
      CHECK(twins.fast.step_records().fused >= (dtype == "float32" ? 3 : 2));
      const std::vector<at::Tensor> weights = twins.fast.get_weights();
      const std::vector<at::Tensor> expected = twins.slow.get_weights();
      for (size_t i = 0; i < weights.size(); ++i) {
        CHECK(difference(weights[i], expected[i], 1e-6, 1e-6) == "");
      }
      Profile profile;
      twins.fast.train_on_batch(x, y);
      profile.stop();
      for (const std::string gone : {"relu6", "relu6_grad"}) {
        CHECK(row_of(profile, SpanKind::op, gone).calls == 0);
      }
    }
  }
}

TEST_CASE("a fused convolution pads its image itself") {
  const at::Tensor x = hashed({4, 8, 8, 3}, 99);
  const Twins twins(layouts_of_networks()[0], "float32");
  for (int i = 0; i < 3; ++i) twins.predict(twins.fast, x);
  Profile profile;
  twins.predict(twins.fast, x);
  profile.stop();
  CHECK(row_of(profile, SpanKind::op, "fused_conv").calls == 9);
  CHECK(row_of(profile, SpanKind::op, "pad").calls == 0);
}

TEST_CASE("predictions of batches of other sizes share the packed kernels") {
  const at::Tensor x = hashed({8, 8, 8, 3}, 99);
  const Twins twins(layouts_of_networks()[0], "float32");
  const auto check_packs = [&](int64_t kernels) {
    const int64_t packed = packed_kernels();
    for (const int64_t rows : {8, 3, 1}) {
      const at::Tensor part = x.narrow(0, 0, rows);
      const at::Tensor expected = twins.predict(twins.slow, part);
      for (int i = 0; i < 3; ++i) {
        CHECK(difference(twins.predict(twins.fast, part), expected, 2e-5, 2e-5) == "");
      }
    }
    CHECK(packed_kernels() - packed == kernels);
  };
  const StepRecords& records = twins.fast.predict_step_records();
  check_packs(9);
  CHECK(records.replayed == 3);
  CHECK(records.fused == 9);
  stir(twins.fast);
  twins.slow.set_weights(twins.fast.get_weights());
  check_packs(9);
  CHECK(records.replayed == 12);
  check_packs(0);
}

TEST_CASE("of many sizes of batches, those used last stay captured") {
  const at::Tensor x = hashed({20, 8, 8, 3}, 99);
  const Twins twins(layouts_of_networks()[0], "float32");
  const StepRecords& records = twins.fast.predict_step_records();
  for (int64_t rows = 1; rows <= 20; ++rows) {
    // The first size again after each other one.
    for (int i = 0; i < 2; ++i) twins.predict(twins.fast, x.narrow(0, 0, rows));
    twins.predict(twins.fast, x.narrow(0, 0, 1));
  }
  CHECK(records.replayed == 20);
  CHECK(records.recorded == 20);
}

TEST_CASE("an output that depends on weights alone is predicted in every step") {
  Sequential model({Input({3}), LayerHandle(std::make_shared<Table>())});
  model.compile({.optimizer = SGD(0.01), .loss = "mse", .record_steps = true});
  for (int i = 0; i < 5; ++i) {
    const at::Tensor y = model.predict_on_batch(Examples{{at::ones({4, 3})}})[0];
    CHECK(difference(y, at::full({4, 3}, 2.0F)) == "");
  }
  CHECK(model.predict_step_records().hoisted == 1);
}

TEST_CASE("convolutions of bfloat16 are fused where the processor multiplies bfloat16") {
  const LayoutMap layouts = layouts_of_networks()[0];
  const at::Tensor x = hashed({4, 8, 8, 3}, 99);
  const Twins narrow(layouts, "mixed_bfloat16"), exact(layouts, "float32");
  // Weights of 0.1 keep the numbers small, as in trained networks.
  for (Variable weight : narrow.fast.trainable_weights()) {
    weight.assign(pack(hashed(weight.shape(), stable_hash(weight.path())) * 0.1));
  }
  for (const Functional& model : {narrow.slow, exact.fast, exact.slow}) {
    model.set_weights(narrow.fast.get_weights());
  }
  for (int i = 0; i < 3; ++i) narrow.predict(narrow.fast, x);
  Profile profile;
  const at::Tensor y = narrow.predict(narrow.fast, x);
  profile.stop();
  const int64_t fused = multiplies_bfloat16() ? 9 : 0;
  // Without, two normalizations still apply the activations behind them.
  CHECK(narrow.fast.predict_step_records().fused == (multiplies_bfloat16() ? 9 : 2));
  CHECK(row_of(profile, SpanKind::op, "fused_conv").calls == fused);
  CHECK(row_of(profile, SpanKind::op, "conv").calls == 9 - fused);
  // The fused ones round less often.
  const at::Tensor expected = exact.predict(exact.slow, x);
  const at::Tensor composed = narrow.predict(narrow.slow, x);
  const auto error = [&](const at::Tensor& result) {
    return (result.to(at::kFloat) - expected).abs().max().item<double>();
  };
  const double size = expected.abs().max().item<double>();
  CAPTURE(error(y), error(composed), size);
  CHECK(error(y) < 0.02 * size);
  CHECK(error(y) < 1.5 * error(composed) + 1e-3 * size);
}

TEST_CASE("a convolution is fused with a sum and each activation behind it") {
  for (const char* dtype : {"float32", "mixed_bfloat16"}) {
    for (const bool bounded : {true, false}) {
      for (const auto& [window, channels, pixels] :
           {std::array<int64_t, 3>{1, 4, 6}, {3, 4, 6}, {3, 1, 6}, {3, 4, 1}, {3, 1, 1}}) {
        CAPTURE(dtype, bounded, window, channels, pixels);
        const auto make = [&, window = window, channels = channels, pixels = pixels](bool eager) {
          Input picture({pixels, pixels, channels});
          auto y = Conv2D(channels, window, {.padding = "same", .dtype = dtype})(picture);
          y = Add({.dtype = dtype})({y, picture});
          y = bounded ? ReLU({.max_value = 6, .dtype = dtype})(y) : ReLU({.dtype = dtype})(y);
          Functional model({picture}, {y});
          model.compile({.optimizer = SGD(0.01), .loss = "mse", .run_eagerly = eager});
          return model;
        };
        const Functional fast = make(false), slow = make(true);
        stir(fast);
        slow.set_weights(fast.get_weights());
        const at::Tensor x = hashed({2, pixels, pixels, channels}, 1) * 4;
        at::Tensor y;
        for (int i = 0; i < 3; ++i) y = fast.predict_on_batch(Examples{{x}})[0];
        const bool narrow = std::string(dtype) == "mixed_bfloat16";
        CHECK(fast.predict_step_records().fused == (!narrow || multiplies_bfloat16() ? 1 : 0));
        const double tolerance = narrow ? 0.02 : 1e-5;
        CHECK(difference(y, slow.predict_on_batch(Examples{{x}})[0], tolerance, 4 * tolerance) ==
              "");
      }
    }
  }
}

TEST_CASE("predictions in float64 and float16, and after weights were moved, stay right") {
  const at::Tensor x = hashed({4, 8, 8, 3}, 99);
  for (const std::string dtype : {"float64", "mixed_float16"}) {
    CAPTURE(dtype);
    const Twins twins(layouts_of_networks()[1], dtype);
    for (int i = 0; i < 3; ++i) {
      CHECK(difference(twins.predict(twins.fast, x), twins.predict(twins.slow, x), 1e-12, 1e-12) ==
            "");
    }
    // Two normalizations take in an activation.
    CHECK(twins.fast.predict_step_records().fused == 2);
  }
}

TEST_CASE("TESSERA_STEP_PASSES=never leaves predictions as they were captured") {
  const EnvironmentScope never("TESSERA_STEP_PASSES", "never");
  const Twins twins(layouts_of_networks()[0], "float32");
  const at::Tensor x = hashed({4, 8, 8, 3}, 99);
  for (int i = 0; i < 4; ++i) {
    CHECK(difference(twins.predict(twins.fast, x), twins.predict(twins.slow, x), 1e-6, 1e-6) == "");
  }
  CHECK(twins.fast.predict_step_records().replayed == 2);
  CHECK(twins.fast.predict_step_records().fused == 0);
  CHECK(twins.fast.predict_step_records().hoisted == 0);
}

}  // namespace prediction_passes_test
