#include "tests/apps/gpt_layouts.hpp"

#include <functional>
#include <regex>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>

#include "apps/gpt/gpt_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/seed_scope.hpp"

namespace gpt_memory_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::gpt;
using namespace tessera::test;

namespace {

/// DeviceMemory's index for tensors that belong to no device and count for all of them.
constexpr int64_t no_device = -1;

/// Most weights have the vocabulary axis, whose extent is a multiple of four.
ModelSize wordy_size() {
  return {.blocks = 2,
          .heads = 4,
          .head_dim = 8,
          .width = 32,
          .hidden = 64,
          .length = 32,
          .vocabulary = 1024,
          .dropout = 0.1,
          .pre_norm = true};
}

Functional compiled(const ModelSize& size, const LayoutMap& layouts) {
  const Functional model = gpt_model(size);
  model.compile({.optimizer = Adam(1e-3, {.global_clipnorm = 0.01}),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .layouts = layouts});
  return model;
}

Examples words(const ModelSize& size, int64_t rows) {
  const at::Tensor all = at::arange(rows * (size.length + 1), at::kLong)
                             .mul(7)
                             .remainder(size.vocabulary)
                             .view({rows, size.length + 1});
  return {.x = {all.narrow(1, 0, size.length).contiguous()},
          .y = {all.narrow(1, 1, size.length).contiguous()}};
}

/// Returns the peak bytes per device during f(); checks that it is the same on each.
int64_t peak_of(const Mesh& mesh, const std::function<void()>& f) {
  const DeviceMemory memory;
  f();
  CHECK(memory.peak(no_device) == 0);
  for (int64_t d = 1; d < mesh.size(); ++d) CHECK(memory.peak(d) == memory.peak(0));
  return memory.peak(0);
}

/// Peak bytes of one device for the logits layer, whose vocabulary is sharded over all devices.
struct LogitsBytes {
  int64_t weights, slots, outputs, gradients;
};

LogitsBytes logits_bytes(int64_t devices) {
  const SeedScope seed(7);
  const BlockPolicyScope policy(BlockPolicy::per_device);
  const ModelSize size = wordy_size();
  const LayoutMap layouts = layouts_of("vocab", {{"batch", 1}, {"model", devices}});
  const Mesh& mesh = layouts.mesh();
  const Functional model = compiled(size, layouts);
  const LayerHandle logits = model.get_layer("logits");
  const Variable kernel = logits->weights()[0];
  REQUIRE(kernel.path() == "logits/kernel");
  LogitsBytes bytes = {};
  bytes.weights = peak_of(mesh, [&] { kernel.value(); });
  Optimizer& optimizer = *model->optimizer();
  optimizer.build({kernel});
  bytes.slots = peak_of(mesh, [&] {
    for (const Variable& slot : optimizer.variables_of(kernel)) slot.value();
  });
  for (const Variable& weight : logits->weights()) weight.value();
  const auto features = [&](int64_t rows) {
    return pack(at::ones({rows, size.length, size.width}), Layout({"batch", {}, {}}, mesh));
  };
  const DTensor many = features(16), few = features(1);
  bytes.outputs = peak_of(mesh, [&] { const DTensor y = logits(many); });
  GradientTape tape;
  const DTensor loss = ops::sum(logits(few));
  bytes.gradients = peak_of(mesh, [&] { tape.gradient(loss, {kernel.value()}); });
  return bytes;
}

}  // namespace

TEST_CASE("gpt: a device holds its shard of vocabulary weights, slots, logits and gradients") {
  const ModelSize size = wordy_size();
  const LogitsBytes full = logits_bytes(1);
  const int64_t kernel = 4 * size.width * size.vocabulary;
  CHECK(full.weights >= kernel);
  CHECK(full.slots >= 2 * kernel);
  CHECK(full.outputs >= 4 * 16 * size.length * size.vocabulary);
  CHECK(full.gradients >= kernel);
  for (const int64_t k : {2, 4}) {
    CAPTURE(k);
    const LogitsBytes shard = logits_bytes(k);
    CHECK(k * shard.weights == full.weights);
    CHECK(k * shard.slots == full.slots);
    CHECK(k * shard.outputs == full.outputs);
    CHECK(k * shard.gradients == full.gradients);
  }
}

TEST_CASE("gpt: a device holds its shard of the experts' kernels and slots") {
  const auto bytes = [](int64_t devices) {
    const SeedScope seed(7);
    const BlockPolicyScope policy(BlockPolicy::per_device);
    ModelSize size = wordy_size();
    size.experts = 4;
    const LayoutMap layouts = layouts_of("experts", {{"batch", 1}, {"expert", devices}});
    const Functional model = compiled(size, layouts);
    std::pair<int64_t, int64_t> sums;
    for (const Variable& weight : model.weights()) {
      if (!std::regex_match(weight.path(), std::regex(".*/expert_\\d/kernel"))) continue;
      sums.first += peak_of(layouts.mesh(), [&] { weight.value(); });
      Optimizer& optimizer = *model->optimizer();
      optimizer.build({weight});
      sums.second += peak_of(layouts.mesh(), [&] {
        for (const Variable& slot : optimizer.variables_of(weight)) slot.value();
      });
    }
    return sums;
  };
  const auto [weights, slots] = bytes(1);
  // Includes the memory of the random draws.
  constexpr int64_t kernels = 2 * 2 * 4 * 4 * 32 * 64;
  CHECK(weights >= kernels);
  CHECK(slots >= 2 * kernels);
  for (const int64_t e : {2, 4}) {
    CAPTURE(e);
    CHECK(bytes(e) == std::pair(weights / e, slots / e));
  }
}

TEST_CASE("gpt: a training step's allocations count for the device that they are for") {
  ModelSize size = wordy_size();
  const Examples batch = words(size, 16);
  for (const std::string& name : layouts_names()) {
    // The stages of a pipeline hold different layers.
    if (has_stages(name)) continue;
    size.experts = experts_of(name);
    const SeedScope seed(7);
    const LayoutMap layouts = layouts_of(name);
    const DeviceMemory memory;
    const Functional model = compiled(size, layouts);
    // The third step is the first that is replayed.
    for (int step = 0; step < 4; ++step) model.train_on_batch(batch);
    int64_t most = 0, least = memory.peak(0);
    for (int64_t d = 0; d < layouts.mesh().size(); ++d) {
      most = std::max(most, memory.peak(d));
      least = std::min(least, memory.peak(d));
    }
    CAPTURE(name, memory.peak(no_device), most, least);
    CHECK(memory.peak(no_device) * 100 <= least);
    // No device counts tensors that exist once, such as a total.
    CHECK(most * 10 <= least * 11);
  }
}

TEST_CASE("gpt: a quarter of the vocabulary takes less than half of a step's memory") {
  const ModelSize size = wordy_size();
  const Examples batch = words(size, 16);
  const auto peak = [&](int64_t devices) {
    const SeedScope seed(7);
    const LayoutMap layouts = layouts_of("vocab", {{"batch", 1}, {"model", devices}});
    const DeviceMemory memory;
    const Functional model = compiled(size, layouts);
    for (int step = 0; step < 2; ++step) model.train_on_batch(batch);
    int64_t most = 0;
    for (int64_t d = 0; d < devices; ++d) most = std::max(most, memory.peak(d));
    return most;
  };
  const int64_t full = peak(1), shard = peak(4);
  CAPTURE(full, shard);
  CHECK(shard * 2 < full);
}

}  // namespace gpt_memory_test
