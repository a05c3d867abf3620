#include <functional>
#include <optional>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <tessera/tessera.hpp>

#include <tessera/framework/tensor/internal/deferred_checks.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>

#include "tests/fake_gpu/gpus.hpp"
#include "tests/gpu/meshes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/virtual_meshes.hpp"

/// Tests that values are read late from GPUs, and that results and errors still arrive.
namespace late_reads_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

constexpr int64_t batch_size = 8, classes = 4, steps = 6;

/// Returns data with labels in [0, classes), except for `value` in one row.
TensorDataset data(int64_t value = 0, int64_t row = 0, double largest = 1) {
  const at::Tensor x = random_values({{steps * batch_size, 5}, at::kFloat, -largest, largest}, 1);
  at::Tensor y = random_values({{steps * batch_size}, at::kLong, 0, double(classes)}, 2).clone();
  if (value != 0) y[row] = value;
  return TensorDataset(x, y);
}

CompileOptions options(const Mesh& mesh, const OptimizerHandle& optimizer) {
  return {.optimizer = optimizer,
          .loss = SparseCategoricalCrossentropy({.from_logits = true}),
          .metrics = {"accuracy"},
          .layouts = LayoutMap(mesh)};
}

Sequential model_on(const Mesh& mesh, const OptimizerHandle& optimizer = SGD(0.1)) {
  set_random_seed(1);
  const Sequential model({Dense(6, {.activation = "tanh"}), Dense(classes)});
  model.compile(options(mesh, optimizer));
  return model;
}

FitOptions one_epoch() {
  return {.batch_size = batch_size, .epochs = 2, .verbose = 0, .shuffle = false};
}

std::vector<at::Tensor> weights_of(const ModelHandle& model) {
  std::vector<at::Tensor> weights;
  for (const Variable& weight : model->weights()) weights.push_back(weight.value().full());
  return weights;
}

}  // namespace

TEST_CASE("a fit on GPUs has the CPU's history in every step and epoch") {
  for (const int64_t gpus : {1, 2}) {
    const Sequential on_cpu = model_on(virtual_mesh({gpus}));
    const Sequential on_gpu = model_on(gpu_mesh({{"batch", gpus}}));
    const History expected = on_cpu.fit(data(), one_epoch());
    const History actual = on_gpu.fit(data(), one_epoch());
    REQUIRE(actual.steps.size() == 2 * steps);
    CHECK(difference(at::tensor(actual.steps), at::tensor(expected.steps), 1e-5) == "");
    CHECK(actual.history.size() == expected.history.size());
    for (size_t i = 0; i < expected.history.size(); ++i) {
      CHECK(difference(at::tensor(actual.history[i].second), at::tensor(expected.history[i].second),
                       1e-5) == "");
    }
  }
}

TEST_CASE("gradients are clipped on GPUs as on CPUs") {
  for (const AdamOptions& clipping : std::vector<AdamOptions>{
           {.clipnorm = 0.05}, {.global_clipnorm = 0.05}, {.clipvalue = 1e-3}}) {
    const Sequential on_cpu = model_on(virtual_mesh({2}), Adam(1e-2, clipping));
    const Sequential on_gpu = model_on(gpu_mesh({{"batch", 2}}), Adam(1e-2, clipping));
    on_cpu.fit(data(), one_epoch());
    on_gpu.fit(data(), one_epoch());
    const auto expected = weights_of(on_cpu), actual = weights_of(on_gpu);
    for (size_t i = 0; i < expected.size(); ++i) {
      CHECK(difference(actual[i], expected[i], 1e-4, 1e-5) == "");
    }
  }
}

TEST_CASE("loss scaling on GPUs equals the CPU's, and skips steps that overflow") {
  for (const int64_t growth : {2, 100}) {
    // The first steps overflow.
    const LossScaleOptimizerOptions scaling{.initial_scale = 3e38, .dynamic_growth_steps = growth};
    const LossScaleOptimizer cpu(SGD(1e-4, {.momentum = 0.9}), scaling);
    const LossScaleOptimizer gpu(SGD(1e-4, {.momentum = 0.9}), scaling);
    const auto trained = [](const Mesh& mesh, const OptimizerHandle& optimizer) {
      set_random_seed(1);
      const Sequential model({Dense(classes)});
      model.compile(options(mesh, optimizer));
      model.fit(data(0, 0, 100), one_epoch());
      return model;
    };
    const Sequential on_cpu = trained(virtual_mesh({2}), cpu);
    const Sequential on_gpu = trained(gpu_mesh({{"batch", 2}}), gpu);
    const auto expected = weights_of(on_cpu), actual = weights_of(on_gpu);
    for (size_t i = 0; i < expected.size(); ++i) {
      CHECK(difference(actual[i], expected[i], 1e-5, 1e-6) == "");
    }
    CHECK(cpu.dynamic_scale() < 3e38);
    CHECK(gpu.dynamic_scale() == cpu.dynamic_scale());
    CHECK(cpu->iterations() < 2 * steps);
    CHECK(gpu->iterations() == cpu->iterations());
    CHECK(gpu->steps() == 2 * steps);
    CHECK(gpu->state() == cpu->state());
    // Training continues with the restored state.
    gpu->restore({{"dynamic_scale", 2.0}, {"step_counter", 0}});
    on_gpu.fit(data(), {.batch_size = batch_size, .epochs = 1, .verbose = 0, .steps_per_epoch = 1});
    CHECK(gpu.dynamic_scale() == 2.0);
  }
}

TEST_CASE("schedules count only steps that did not overflow, on GPUs too") {
  const AdamOptions accumulation{.gradient_accumulation_steps = 2},
      averages{.use_ema = true, .ema_momentum = 0.5, .ema_overwrite_frequency = 3},
      decay{.weight_decay = 0.1};
  const std::vector<std::function<OptimizerHandle()>> all = {
      [] { return Adam(1e-2); },
      [&] { return Adam(1e-2, accumulation); },
      [&] { return Adam(1e-2, averages); },
      [&] { return Adam(1e-2, decay); },
      [] { return SGD(ExponentialDecay(1e-4, 1, 0.5)); },
      [] { return Lamb(1e-2); },
      [] { return SGD(1e-4, {.gradient_accumulation_steps = 3}); },
      [] {
        return MultiOptimizer(OptimizerMap(Adam(1e-2), {{".*bias", SGD(1e-4)}}));
      }};
  for (const auto& make : all) {
    // The first steps overflow, and some that come after the scale has grown.
    const LossScaleOptimizerOptions scaling{.initial_scale = 3e38, .dynamic_growth_steps = 2};
    const LossScaleOptimizer cpu(make(), scaling), gpu(make(), scaling);
    CAPTURE(cpu->config().dump());
    const auto trained = [](const Mesh& mesh, const OptimizerHandle& optimizer) {
      set_random_seed(1);
      const Sequential model({Dense(classes, {.bias_constraint = MaxNorm({.max_value = 1e-3})})});
      model.compile(options(mesh, optimizer));
      model.fit(data(0, 0, 100), one_epoch());
      return weights_of(model);
    };
    const auto expected = trained(virtual_mesh({2}), cpu);
    const auto actual = trained(gpu_mesh({{"batch", 2}}), gpu);
    for (size_t i = 0; i < expected.size(); ++i) {
      CHECK(difference(actual[i], expected[i], 1e-5, 1e-6) == "");
    }
    const std::vector<Variable> slots = cpu->variables(), gpu_slots = gpu->variables();
    REQUIRE(gpu_slots.size() == slots.size());
    for (size_t i = 0; i < slots.size(); ++i) {
      INFO(slots[i].path());
      CHECK(difference(gpu_slots[i].value().full(), slots[i].value().full(), 1e-4, 1e-6) == "");
    }
    CHECK(gpu->state() == cpu->state());
    CHECK(cpu->inner()[0]->steps() < 2 * steps - 2);
    CHECK(gpu->inner()[0]->steps() == cpu->inner()[0]->steps());
    for (size_t i = 0; i < cpu->inner()[0]->inner().size(); ++i) {
      CHECK(gpu->inner()[0]->inner()[i]->steps() == cpu->inner()[0]->inner()[i]->steps());
    }
  }
}

TEST_CASE("every optimizer computes on GPUs what it computes on CPUs") {
  std::vector<std::function<OptimizerHandle()>> all = {
      [] { return SGD(1e-2, {.momentum = 0.9, .nesterov = true}); },
      [] { return RMSprop(1e-2, {.momentum = 0.9, .centered = true}); },
      [] { return Ftrl(1e-2, {.l1_regularization_strength = 1e-3, .beta = 0.1}); },
      [] { return ScheduleFreeAdamW(1e-2, {.warmup_steps = 4}); }};
  for (const std::string& name : optimizer_names()) {
    all.emplace_back([name] { return OptimizerHandle(name.c_str()); });
  }
  for (const auto& make : all) {
    const OptimizerHandle cpu = make(), gpu = make();
    CAPTURE(cpu->config().dump());
    const Sequential on_cpu = model_on(virtual_mesh({2}), cpu);
    const Sequential on_gpu = model_on(gpu_mesh({{"batch", 2}}), gpu);
    on_cpu.fit(data(), one_epoch());
    on_gpu.fit(data(), one_epoch());
    const auto expected = weights_of(on_cpu), actual = weights_of(on_gpu);
    for (size_t i = 0; i < expected.size(); ++i) {
      CHECK(difference(actual[i], expected[i], 1e-4, 1e-5) == "");
    }
  }
}

TEST_CASE("no state that an index out of range has corrupted is saved") {
  const TempFolder folder;
  const Sequential model = model_on(gpu_mesh({{"batch", 1}}));
  FitOptions fit = one_epoch();
  fit.callbacks = {ModelCheckpoint((folder / "step-{batch}").string(), {.save_freq = 1})};
  CHECK_THROWS_WITH(model.fit(data(-1, batch_size), fit), Contains("Received: -1 in row 0"));
  CHECK(std::filesystem::exists(folder / "step-1"));
  CHECK_FALSE(std::filesystem::exists(folder / "step-2"));
}

TEST_CASE("an index out of range outside of a step is reported when a value is read") {
  const Mesh mesh = gpu_mesh({{"batch", 1}});
  const DTensor table = pack(at::ones({5, 2}), Layout::replicated(mesh, 2));
  const DTensor ids = pack(at::tensor({0, 7, 1}), Layout::replicated(mesh, 1));
  const DTensor rows = ops::gather(table, ids);
  CHECK_THROWS_WITH(rows.full(), Contains("[gather]") && Contains("7 in row 1"));
  // The error is thrown once.
  CHECK_NOTHROW(table.full());
  for (int i = 0; i < 64; ++i) ops::gather(table, ids);
  CHECK_THROWS_WITH(ops::gather(table, ids), Contains("7 in row 1"));
}

TEST_CASE("negative indices are checked on GPUs without a wait") {
  const Mesh mesh = gpu_mesh({{"batch", 2}});
  const at::Tensor numbers = at::arange(10).to(at::kFloat).view({2, 5});
  const DTensor x = pack(numbers, Layout::batch_sharded(mesh, "batch", 2));
  const auto index = [&](int64_t first, int64_t second) {
    const at::Tensor indices = at::tensor({first, second}, at::kLong).view({2, 1});
    return pack(indices, Layout::batch_sharded(mesh, "batch", 2));
  };
  const DTensor good = index(-5, -1), bad = index(0, -6);
  DTensor taken;
  CHECK(counted([&] { taken = ops::take_along_axis(x, good, 1); }).waits == 0);
  CHECK(taken.full().equal(at::tensor({0.0F, 9.0F}).view({2, 1})));
  CHECK(counted([&] { taken = ops::take_along_axis(x, bad, 1); }).waits == 0);
  CHECK_THROWS_WITH(taken.full(), Contains("[take_along_axis] indices lie in [-5, 5). "
                                           "Received: -6 at (1, 0)"));
}

TEST_CASE("an integer division by 0 is reported when a value is read, without a wait") {
  const Mesh mesh = gpu_mesh({{"batch", 2}});
  const Layout rows = Layout::batch_sharded(mesh, "batch", 1);
  const DTensor a = pack(at::tensor({-7, 8, 9, 10}), rows);
  const DTensor good = pack(at::tensor({2, 3, -4, 5}), rows);
  const DTensor bad = pack(at::tensor({2, 3, 0, 5}), rows);
  DTensor quotient, rest;
  CHECK(counted([&] {
          quotient = ops::floor_div(a, good);
          rest = ops::remainder(a, good);
        }).waits == 0);
  CHECK(quotient.full().equal(at::tensor({-4, 2, -3, 2})));
  CHECK(rest.full().equal(at::tensor({1, 2, -3, 0})));
  CHECK(counted([&] { quotient = ops::floor_div(a, bad); }).waits == 0);
  CHECK_THROWS_WITH(quotient.full(),
                    Contains("[integer division]") && Contains("divisors are not 0"));
  CHECK_NOTHROW(a.full());
}

TEST_CASE("CTC on a GPU equals the CPU's, and wrong labels are reported late") {
  // Rows with repeated labels, no label, one label, and more labels than fit into the steps.
  const at::Tensor labels =
      at::tensor({1, 1, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 2, 2, 2, 2, 1, 2, 3, 1}).view({5, 4});
  const at::Tensor logits = random_values({{5, 6, 4}, at::kDouble, -3, 3}, 1);
  const at::Tensor weights = random_values({{5}, at::kDouble, 0.5, 2}, 2);
  const auto results = [&](const Mesh& mesh) {
    const DTensor x = pack(logits, Layout::batch_sharded(mesh, mesh.dim_names()[0], 3));
    const DTensor y = pack(labels, Layout::batch_sharded(mesh, mesh.dim_names()[0], 2));
    const DTensor w = pack(weights, Layout::batch_sharded(mesh, mesh.dim_names()[0], 1));
    DTensor loss, gradient;
    const fake_gpu::Counters asked = counted([&] {
      GradientTape tape;
      tape.watch(x);
      loss = ops::ctc_loss(x, y);
      gradient = tape.gradient(loss * w, x);
    });
    CHECK(asked.waits == 0);
    CHECK(asked.uploads() == 0);
    return std::vector<at::Tensor>{loss.full().clone(), gradient.full().clone()};
  };
  const std::vector<at::Tensor> expected = results(virtual_mesh({1}));
  CHECK(expected[0][3].item<double>() == 709);
  for (const int64_t gpus : {1, 2}) {
    const std::vector<at::Tensor> actual = results(gpu_mesh({{"batch", gpus}}));
    for (size_t i = 0; i < expected.size(); ++i) {
      CHECK(difference(actual[i], expected[i], 1e-12, 1e-12) == "");
    }
  }
  const Mesh mesh = gpu_mesh({{"batch", 1}});
  const DTensor x = pack(logits, Layout::replicated(mesh, 3));
  const auto loss = [&](const at::Tensor& wrong) {
    return ops::ctc_loss(x, pack(wrong, Layout::replicated(mesh, 2)));
  };
  at::Tensor gap = labels.clone(), beyond = labels.clone();
  gap[2][2] = 1;
  beyond[0][1] = 4;
  CHECK_THROWS_WITH(loss(gap).full(), Contains("[ctc_loss]") && Contains("a 0 before another"));
  CHECK_THROWS_WITH(loss(beyond).full(), Contains("[ctc_loss]") && Contains("4 at (0, 1)"));
}

TEST_CASE("a loss that is not finite ends a fit with the number of its step") {
  const Sequential model = model_on(gpu_mesh({{"batch", 2}}));
  at::Tensor x = at::ones({steps * batch_size, 5});
  x[3 * batch_size] = INFINITY;
  x[3 * batch_size + 1] = NAN;
  const at::Tensor y = at::zeros({steps * batch_size}, at::kLong);
  CHECK_THROWS_WITH(model.fit(x, y, one_epoch()),
                    Contains("the loss stays finite") && Contains("at epoch 1, step 4"));
}

TEST_CASE("memory of an upload is not reused before it has been read") {
  const c10::InferenceMode inference;
  const at::Tensor ones = at::ones({1000}), twos = at::full({1000}, 2.0F);
  std::optional<Download> late;
  late.emplace(upload(ones, device(0), /*immutable=*/true));
  const at::Tensor next = upload(twos, device(0), /*immutable=*/true);
  // The upload runs first, which CUDA allows.
  gpu(0).upload.synchronize();
  CHECK(difference(late->get(), ones, 0, 0) == "");
  CHECK(difference(next.cpu(), twos, 0, 0) == "");
}

TEST_CASE("batches are uploaded from memory that the reader pinned") {
  const Sequential model = model_on(gpu_mesh({{"batch", 2}}));
  model.fit(data(), one_epoch());
  const fake_gpu::Counters counted = [&] {
    const fake_gpu::Counters before = fake_gpu::counters();
    model.fit(data(), one_epoch());
    return fake_gpu::counters() - before;
  }();
  CHECK(counted.pageable_uploads == 0);
}

}  // namespace late_reads_test
