#include <tessera/framework/training/capture/step_capture.hpp>

#include <tessera/tessera.hpp>

#include <ATen/ATen.h>
#include <c10/util/ScopeExit.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>

#include "tests/training/recorded.hpp"

namespace recorded_steps_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

/// Dropout, batch normalization, a regularizer and a penalty on outputs between small_model()'s
/// layers.
Sequential rich_model() {
  const DenseOptions hidden = {.activation = "relu",
                               .kernel_initializer = GlorotUniform({.seed = 21}),
                               .kernel_regularizer = L2(1e-3),
                               .activity_regularizer = L1(1e-3),
                               .name = "hidden_1",
                               .dtype = "float64"};
  const DenseOptions logits = {
      .kernel_initializer = GlorotUniform({.seed = 23}), .name = "logits", .dtype = "float64"};
  return Sequential({Dense(14, hidden), Dropout(0.3, {.dtype = "float64"}),
                     BatchNormalization({.dtype = "float64"}),
                     Dropout(0.2, {.seed = 5, .dtype = "float64"}), Dense(5, logits)});
}

/// Attention over a layer's output, each feature pair a step, with and without a mask.
class OwnAttention final : public Layer {
 public:
  OwnAttention() : Layer({.dtype = "float64"}) {}
  std::string class_name() const override { return "OwnAttention"; }
  bool can_be_replayed() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    const DTensor x = ops::reshape(inputs[0], {-1, 7, 1, 2});
    const DTensor causal = ops::attention(x, x, x, {}, {.causal = true});
    const DTensor positive = ops::greater(ops::sum(x, {3}), ops::sum(x * 0.0, {3}));
    const DTensor y =
        ops::attention(causal, x, x, ops::reshape(positive, {-1, 1, 1, 7}), {.zeros = true});
    return ops::reshape(y, inputs[0].shape());
  }
};

/// A schedule, clipping, decay and moving averages.
CompileOptions rich_compile(const LayoutMap& layouts) {
  CompileOptions options = small_compile(layouts);
  options.optimizer = Adam(ExponentialDecay(1e-2, 10, 0.9),
                           {.weight_decay = 1e-3, .global_clipnorm = 1, .use_ema = true});
  return options;
}

}  // namespace

TEST_CASE("replayed steps equal eager ones, with everything that changes between steps") {
  for (const SmallScheme& scheme : small_schemes()) {
    for (BlockPolicy policy : {BlockPolicy::per_worker, BlockPolicy::per_device}) {
      CAPTURE(scheme.layouts, int(policy));
      const BlockPolicyScope scope(policy);
      const Mesh mesh = create_mesh(scheme.mesh, virtual_cpus(8));
      CompileOptions options = small_compile(small_layouts(scheme.layouts, mesh));
      const Outcome replayed = trained(small_model(), options);
      CHECK(replayed.records.why == "");
      CHECK(replayed.records.eager == 4);
      CHECK(replayed.records.recorded == 2);
      CHECK(replayed.records.replayed == 31);
      options = small_compile(small_layouts(scheme.layouts, mesh));
      options.run_eagerly = true;
      check_equal(replayed, trained(small_model(), options));
    }
  }
}

TEST_CASE("dropout, moving statistics, penalties, a schedule and averages are replayed") {
  for (int64_t devices : {1, 3, 8}) {
    CAPTURE(devices);
    const LayoutMap layouts(create_mesh({{"batch", devices}}, virtual_cpus(devices)));
    const Outcome replayed = trained(rich_model(), rich_compile(layouts));
    CHECK(replayed.records.why == "");
    CHECK(replayed.records.replayed == 31);
    CompileOptions options = rich_compile(layouts);
    options.run_eagerly = true;
    check_equal(replayed, trained(rich_model(), options));
  }
}

TEST_CASE("attention is replayed, with masks that change between steps, normalized rows too") {
  const auto model = [] {
    const auto dense = [](int64_t units, int64_t seed) {
      return Dense(units,
                   {.kernel_initializer = GlorotUniform({.seed = seed}), .dtype = "float64"});
    };
    return Sequential({dense(14, 21), make_layer<OwnAttention>(),
                       LayerNormalization({.scale = false, .dtype = "float64"}), dense(5, 23)});
  };
  check_replayed(model);
}

TEST_CASE("a step's memory is planned: tensors that are not alive together share it") {
  const MemoryPlanner::Stats memory =
      trained(rich_model(), rich_compile(one_device())).records.memory;
  CHECK(memory.planned > 0);
  CHECK(memory.planned < memory.asked);
  CHECK(memory.hits > 0);
}

TEST_CASE("signatures of a batch include undefined weights and tensors passed twice") {
  const Sequential model({Dense(18, {.name = "code", .dtype = "float64"})});
  const LayoutMap layouts = one_device();
  model.compile({.optimizer = SGD(0.1), .loss = MeanSquaredError(), .layouts = layouts});
  const at::Tensor x = at::rand({6, 18}, at::kDouble), other = at::rand({6, 18}, at::kDouble);
  const auto step = [&](bool twice, at::ScalarType dtype = at::kDouble) {
    Batch batch;
    batch.x = {pack(x.to(dtype), layouts.data_layout("x", 2))};
    batch.y = {twice ? batch.x[0] : pack(other, layouts.data_layout("y", 2))};
    batch.rows = 6;
    return read_loss(model->train_step(batch).loss());
  };
  for (int i = 0; i < 4; ++i) step(true);
  CHECK(model.step_records().replayed == 2);
  const double before = step(false);
  CHECK(model.step_records().replayed == 2);
  for (int i = 0; i < 3; ++i) CHECK(step(false) < before);
  CHECK(model.step_records().replayed == 4);
  for (int i = 0; i < 3; ++i) step(false, at::kFloat);
  CHECK(model.step_records().recorded == 3);
  CHECK(model.step_records().replayed == 5);
  Batch undefined;
  undefined.x = {DTensor()};
  CHECK_THROWS_AS(model->train_step(undefined), StateError);
}

TEST_CASE("a change of trainability, layout or seed discards the recordings") {
  const Mesh mesh = create_mesh({{"batch", 2}}, virtual_cpus(2));
  const auto freeze_layer = [](Sequential& model) {
    model.get_layer("hidden_1")->set_trainable(false);
  };
  const auto freeze_weight = [](Sequential& model) { model->weights()[0].set_trainable(false); };
  const auto move = [&](Sequential& model) {
    Variable weight = model->weights()[0];
    weight.place({weight.shape(), Layout({"unsharded", "batch"}, mesh)});
  };
  const auto gather = [&](Sequential& model) {
    Variable weight = model->weights()[0];
    weight.place({weight.shape(), weight.layout(), Layout({"batch", "unsharded"}, mesh)});
  };
  const auto reseed = [](Sequential&) { set_random_seed(7); };
  using Change = std::function<void(Sequential&)>;
  const auto [change, replayed] = GENERATE_COPY(table<Change, int64_t>(
      {{freeze_layer, 6}, {freeze_weight, 5}, {move, 5}, {gather, 5}, {reseed, 6}}));
  const auto losses = [&, &change = change, &replayed = replayed](bool eagerly) {
    set_random_seed(0);
    const auto as_before = c10::make_scope_exit([] { set_random_seed(0); });
    Sequential model = rich_model();
    CompileOptions options = small_compile(small_layouts("data", mesh));
    options.run_eagerly = eagerly;
    model.compile(options);
    const FitOptions five = {.batch_size = 20, .verbose = 0, .shuffle = false};
    std::vector<double> all = model.fit(small_data(100), five).steps;
    change(model);
    const Layout layout = model->weights()[0].layout();
    for (double loss : model.fit(small_data(100), five).steps) all.push_back(loss);
    CHECK(model.step_records().replayed == (eagerly ? 0 : replayed));
    CHECK(model->weights()[0].value().layout() == layout);
    return at::tensor(all, at::kDouble);
  };
  CHECK(difference(losses(false), losses(true), 1e-12) == "");
}

TEST_CASE("an error in a replayed step reads as in an eager one") {
  const auto error = [](bool eagerly) -> std::string {
    Sequential model = small_model();
    CompileOptions options = small_compile(one_device());
    options.run_eagerly = eagerly;
    model.compile(options);
    const TensorDataset data = small_data(100);
    Examples wrong = rows_of(data, {0, 1, 2, 3});
    for (int i = 0; i < 4; ++i) model.train_on_batch(rows_of(data, {0, 1, 2, 3}));
    wrong.y[0] = at::full({4}, 7, at::kLong);
    try {
      model.train_on_batch(wrong);
    } catch (const Error& thrown) {
      // Training continues.
      model.train_on_batch(rows_of(data, {0, 1, 2, 3}));
      CHECK(model.step_records().replayed == (eagerly ? 0 : 3));
      return thrown.what();
    }
    return "none";
  };
  CHECK_THAT(error(false), Contains("7"));
  CHECK(error(false) == error(true));
}

TEST_CASE("a step under a tape is eager, and penalties can be read after a replay") {
  const Sequential model = rich_model();
  model.compile(rich_compile(one_device()));
  const Examples batch = rows_of(small_data(100), {0, 1, 2, 3, 4, 5});
  for (int i = 0; i < 3; ++i) model.train_on_batch(batch);
  CHECK(model.step_records().replayed == 1);
  CHECK(model->losses().size() == 2);
  const GradientTape tape;
  model.train_on_batch(batch);
  CHECK(model.step_records().replayed == 1);
}

}  // namespace recorded_steps_test
