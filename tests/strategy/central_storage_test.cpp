#include <tessera/framework/mesh/internal/weight_placement.hpp>
#include <tessera/framework/strategy/central_storage.hpp>

#include <ATen/ATen.h>

#include "tests/strategy/guide_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/files.hpp"
#include "tests/support/seed_scope.hpp"

namespace central_storage_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::strategy;
using namespace tessera::test;

namespace {

const CentralStorageOptions two_cpus = {.compute_devices = {"cpu:0", "cpu:1"}};

/// A model with everything that touches weights: moving statistics, a regularizer, a constraint,
/// dropout.
Sequential full_model() {
  const DTypeScope doubles("float64");
  const Sequential model({Input({6}),
                          Dense(9, {.activation = "relu",
                                    .kernel_regularizer = L2(1e-2),
                                    .kernel_constraint = MaxNorm({.max_value = 1.2}),
                                    .name = "first"}),
                          BatchNormalization({.name = "norm"}), Dropout(0.25),
                          Dense(4, {.name = "last"})});
  return model;
}

TensorDataset rows(int64_t count) {
  const at::Tensor x = at::arange(count * 6, at::kDouble).sin().view({count, 6});
  return TensorDataset({.x = {x}, .y = {at::arange(count, at::kLong).remainder(4)}});
}

CompileOptions compile_options(const BaseOptions& base) {
  AdamOptions adam;
  copy_base_options(base, adam);
  return {.optimizer = Adam(0.02, adam),
          .loss = SparseCategoricalCrossentropy({.from_logits = true}),
          .metrics = {"accuracy"}};
}

struct Trace {
  std::vector<double> losses;
  std::vector<at::Tensor> weights;
  at::Tensor outputs;
};

Trace trained(const Strategy& strategy, const BaseOptions& base = {}) {
  const SeedScope seed(7);
  Trace trace;
  const Sequential model = strategy.run([&] {
    const Sequential made = full_model();
    made.compile(compile_options(base));
    return made;
  });
  const History history = model.fit(rows(45), {.batch_size = 8,
                                               .epochs = 4,
                                               .verbose = 0,
                                               .callbacks = {ReduceLROnPlateau({.patience = 1})},
                                               .validation_data = rows(13)});
  for (const auto& [name, values] : history.history) {
    trace.losses.insert(trace.losses.end(), values.begin(), values.end());
  }
  for (const auto& [name, value] : model.evaluate(rows(19), {.verbose = 0})) {
    trace.losses.push_back(value);
  }
  trace.weights = model.get_weights();
  trace.outputs = model.predict(rows(11));
  return trace;
}

void check_equal(const Trace& actual, const Trace& expected) {
  REQUIRE(actual.losses.size() == expected.losses.size());
  for (size_t i = 0; i < actual.losses.size(); ++i) {
    CHECK(actual.losses[i] == Approx(expected.losses[i]).epsilon(1e-10).margin(1e-10));
  }
  REQUIRE(actual.weights.size() == expected.weights.size());
  for (size_t i = 0; i < actual.weights.size(); ++i) {
    CHECK(at::allclose(actual.weights[i], expected.weights[i], 1e-10, 1e-10));
  }
  CHECK(at::allclose(actual.outputs, expected.outputs, 1e-10, 1e-10));
}

bool is_stored_on(const Variable& variable, const Mesh& mesh) {
  return variable.layout().mesh() == mesh && variable.value().mesh() == mesh;
}

}  // namespace

TEST_CASE("central storage: trains as one device and as mirrored weights do") {
  const BaseOptions base =
      GENERATE(BaseOptions{}, BaseOptions{.global_clipnorm = 0.3},
               BaseOptions{.weight_decay = 0.01, .use_ema = true, .ema_momentum = 0.8},
               BaseOptions{.clipnorm = 0.1, .gradient_accumulation_steps = 2});
  const Trace expected = trained(OneDeviceStrategy("cpu:0"), base);
  check_equal(trained(MirroredStrategy({.devices = {"cpu:0", "cpu:1"}}), base), expected);
  const BlockPolicy policy = GENERATE(BlockPolicy::per_worker, BlockPolicy::per_device);
  const BlockPolicyScope scope(policy);
  check_equal(trained(CentralStorageStrategy(two_cpus), base), expected);
}

TEST_CASE("central storage: weights and slots are stored on one mesh and read on the other") {
  const CentralStorageStrategy strategy(
      {.compute_devices = {"cpu:0", "cpu:1"}, .parameter_device = "cpu:5"});
  CHECK(strategy.num_replicas_in_sync() == 2);
  CHECK(strategy.parameter_device() == "cpu:5");
  REQUIRE(weight_placement_of(strategy.mesh()));
  const Mesh storage =
      stored_placement({{6, 9}, Layout::replicated(strategy.mesh(), 2)}).layout.mesh();
  REQUIRE(storage.size() == 1);
  CHECK(to_string(storage.local_devices()[0]) == "cpu:5");
  CHECK_THAT(strategy.layouts().describe(), Catch::Contains("weights rest on mesh storage=1"));
  const Sequential model = strategy.run([] {
    const Sequential made = full_model();
    made.compile(compile_options({}));
    return made;
  });
  model.fit(rows(16), {.batch_size = 8, .verbose = 0});
  for (const Variable& weight : model.weights()) {
    INFO(weight.path());
    CHECK(is_stored_on(weight, storage));
    REQUIRE(weight.placement().use);
    CHECK(weight.placement().use->mesh() == strategy.mesh());
    CHECK(weight.read().mesh() == strategy.mesh());
  }
  for (const Variable& slot : model->optimizer()->variables()) CHECK(is_stored_on(slot, storage));
  const std::string summary = summary_text(model.model(), {.show_layout = true}, {});
  CHECK(summary.find("storage=1") != std::string::npos);
}

TEST_CASE("central storage: its layouts and its mesh work outside its scope") {
  const CentralStorageStrategy strategy(two_cpus);
  const Mesh storage = stored_placement({{}, Layout::replicated(strategy.mesh(), 0)}).layout.mesh();
  const bool by_layouts = GENERATE(true, false);
  const Sequential model = full_model();
  CompileOptions options = compile_options({});
  if (by_layouts) {
    options.layouts = strategy.layouts();
  } else {
    options.mesh = strategy.mesh();
  }
  model.compile(options);
  model.fit(rows(16), {.batch_size = 8, .verbose = 0});
  for (const Variable& weight : model.weights()) CHECK(is_stored_on(weight, storage));
  for (const Variable& slot : model->optimizer()->variables()) CHECK(is_stored_on(slot, storage));
  const Variable made("w", pack(at::ones({3, 2}), Layout::replicated(strategy.mesh(), 2)));
  CHECK(is_stored_on(made, storage));
  CHECK(made.read().mesh() == strategy.mesh());
}

TEST_CASE("central storage: a step gathers no weight and reduces each gradient once") {
  const CentralStorageStrategy strategy(
      {.compute_devices = {"cpu:0", "cpu:1"}, .parameter_device = "cpu:1"});
  const Sequential model = strategy.run([] {
    const Sequential made({Input({6}), Dense(5), Dense(4)});
    made.compile(
        {.optimizer = SGD(0.1), .loss = SparseCategoricalCrossentropy({.from_logits = true})});
    return made;
  });
  const TensorDataset data({.x = {at::ones({8, 6})}, .y = {at::zeros({8}, at::kLong)}});
  const StepPlan plan = model.plan(data, {.batch_size = 8});
  CHECK(plan.bytes(1) > plan.bytes(0));
  CommLog log;
  {
    const CommLogScope logged(log);
    model.train_on_batch({.x = {at::ones({8, 6})}, .y = {at::zeros({8}, at::kLong)}});
  }
  int64_t gradients = 0;
  for (const CommEntry& entry : log.entries()) {
    CHECK(entry.op == CommOp::all_reduce);
    gradients += entry.place.find('/') != std::string::npos;
  }
  CHECK(gradients == 4);
}

TEST_CASE("central storage: weights are read without a copy if memory is shared") {
  const CentralStorageStrategy strategy(two_cpus);
  const auto scope = strategy.scope();
  const Variable weight("w", pack(at::ones({3, 2}), Layout::replicated(strategy.mesh(), 2)));
  CHECK_FALSE(weight.value().mesh() == strategy.mesh());
  GradientTape tape;
  const DTensor read = weight.read();
  CHECK(read.mesh() == strategy.mesh());
  CHECK(read.blocks()[0].data_ptr() == weight.value().blocks()[0].data_ptr());
  const DTensor saved = read;
  Variable changed = weight;
  changed.assign_add(pack(at::ones({3, 2}), Layout::replicated(strategy.mesh(), 2)));
  CHECK(at::equal(saved.full(), at::ones({3, 2})));
  CHECK(at::equal(weight.read().full(), at::full({3, 2}, 2.f)));
  changed.assign_sub(pack(at::ones({2}), Layout::replicated(strategy.mesh(), 1)));
  CHECK(at::equal(weight.read().full(), at::ones({3, 2})));
}

TEST_CASE("central storage: checkpoints are interchangeable with mirrored weights") {
  const TempFolder folder;
  const auto make = [](const Strategy& strategy) {
    return strategy.run([] {
      const Sequential made = full_model();
      made.compile(compile_options({.use_ema = true}));
      return made;
    });
  };
  const CentralStorageStrategy central(two_cpus);
  const MirroredStrategy mirrored({.devices = {"cpu:0", "cpu:1"}});
  const Sequential first = make(central);
  first.fit(rows(24), {.batch_size = 8, .verbose = 0});
  Checkpoint(first).save(folder.path().string() + "/step-000003");
  first.save_weights(folder.path().string() + "/weights.safetensors");
  for (const Strategy* strategy :
       {static_cast<const Strategy*>(&mirrored), static_cast<const Strategy*>(&central)}) {
    const Sequential second = make(*strategy);
    Checkpoint(second).restore(folder.path().string() + "/step-000003");
    CHECK(difference(second.predict(rows(9)), first.predict(rows(9)), 1e-12, 1e-13) == "");
    const Sequential third = make(*strategy);
    third.load_weights(folder.path().string() + "/weights.safetensors");
    third.set_weights(third.get_weights());
    CHECK(difference(third.predict(rows(9)), first.predict(rows(9)), 1e-12, 1e-13) == "");
  }
}

TEST_CASE("central storage: invalid options, and defaults") {
  const CentralStorageStrategy alone;
  CHECK(alone.num_replicas_in_sync() >= 1);
  CHECK_THROWS_AS(CentralStorageStrategy({.compute_devices = {"cpu:0", "cpu:0"}}), MeshError);
  CHECK_THROWS_AS(CentralStorageStrategy({.compute_devices = {"tpu:0"}}), MeshError);
  CHECK_THROWS_AS(CentralStorageStrategy({.parameter_device = "here"}), MeshError);
}

}  // namespace central_storage_test
