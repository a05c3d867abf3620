#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/seed_of_run.hpp"
#include "tests/support/seed_scope.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/virtual_meshes.hpp"

/// One model under many pipelines, through train_on_batch: the losses and weights of one device.
namespace pipeline_schemes_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// A way to train the model. Beside the dimension of stages are none, "batch", "model", "fsdp", or
/// layers that are rematerialized, "remat".
struct Scheme {
  std::string schedule;
  int64_t devices = 2, microbatches = 1, chunks = 0;
  std::string beside;

  std::string text() const {
    return str(schedule, ", ", devices, " devices, ", microbatches, " microbatches, ", chunks,
               " chunks, ", beside);
  }
};

std::vector<Scheme> schemes() {
  std::vector<Scheme> all;
  for (const char* const schedule : {"gpipe", "1f1b", "zb_h1", "interleaved", "zb_v"}) {
    const std::string name = schedule;
    const bool chunks = name == "interleaved" || name == "zb_v";
    for (const int64_t devices : {2, 3, 4}) {
      for (const int64_t microbatches : {1, 3, 4, 8}) {
        for (const char* const beside : {"", "batch", "model", "fsdp", "remat"}) {
          all.push_back({name, devices, microbatches, chunks ? 2 : 1, beside});
          // Three stages of a device, of which the model has layers for nine.
          if (name == "interleaved" && devices < 4) {
            all.push_back({name, devices, microbatches, 3, beside});
          }
        }
      }
    }
  }
  return all;
}

LayoutMap layouts_of(const Scheme& scheme) {
  MeshDims dims = {{"stage", scheme.devices}};
  if (scheme.beside == "batch" || scheme.beside == "fsdp") dims.emplace_back("batch", 2);
  if (scheme.beside == "model") dims.emplace_back("model", 2);
  LayoutMap layouts(create_mesh(dims));
  if (scheme.beside == "model") {
    layouts["third/kernel"] = {unsharded, "model"};
    layouts["fourth/kernel"] = {"model", unsharded};
  }
  if (scheme.beside == "fsdp") layouts.fully_shard("batch");
  layouts.set_pipeline({.microbatches = scheme.microbatches,
                        .schedule = scheme.schedule,
                        .chunks = scheme.chunks == 1 ? 0 : scheme.chunks});
  return layouts;
}

DenseOptions dense(const std::string& name, const char* activation = "relu") {
  return {.activation = activation, .name = name};
}

/// Two towers, a penalty, a layer that is used twice, dropout, and a skip from the first layer to
/// one near the end.
Functional two_towers(const LayoutMap& layouts, bool remat = false) {
  const SeedScope seed(7);
  const Input left({18}, {.name = "left"}), right({7}, {.name = "right"});
  DenseOptions penalized = dense("first");
  penalized.kernel_regularizer = L2(0.01);
  const SymbolicTensor first = Dense(12, penalized)(left);
  const SymbolicTensor second = Dense(12, dense("second"))(right);
  SymbolicTensor x = Add({.name = "joined"})({first, second});
  x = LayerNormalization({.name = "norm"})(x);
  const Dense twice(12, dense("twice", "tanh"));
  x = Dropout(0.1, {.name = "dropout"})(twice(x));
  x = twice(x);
  x = Dense(10, dense("third"))(x);
  x = Dense(12, dense("fourth"))(x);
  x = Add({.name = "skip"})({x, first});
  x = Dense(9, dense("fifth"))(x);
  x = Dense(8, dense("sixth"))(x);
  const Functional model({left, right}, {Dense(5, {.name = "logits"})(x)}, {.name = "towers"});
  AdamOptions adam;
  adam.global_clipnorm = 0.5;
  adam.use_ema = true;
  adam.gradient_accumulation_steps = 2;
  CompileOptions options = {.optimizer = Adam(1e-2, adam),
                            .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                            .metrics = {"accuracy"},
                            .layouts = layouts};
  if (remat) options.remat = {RematRule{.match = "norm|twice|third|fourth"}};
  model.compile(options);
  return model;
}

/// Rows with weights, of which a third are 0.
Examples rows_of(int64_t begin, int64_t end) {
  constexpr int64_t rows = 50;
  const at::Tensor weights = random_values({{rows}, at::kDouble, 0, 2}, 4);
  const std::vector<at::Tensor> all = {random_values({{rows, 18}, at::kDouble}, 1),
                                       random_values({{rows, 7}, at::kDouble}, 2),
                                       random_values({{rows}, at::kLong, 0, 5}, 3),
                                       weights.mul(at::arange(rows).remainder(3).ne(0))};
  std::vector<at::Tensor> some;
  for (const at::Tensor& tensor : all) some.push_back(tensor.slice(0, begin, end).clone());
  return {.x = {some[0], some[1]}, .y = {some[2]}, .sample_weight = {some[3]}};
}

struct Outcome {
  std::vector<double> losses;
  std::vector<at::Tensor> weights;
};

/// Trains six steps on batches of 23, 23 and 4 rows; the weights are followed by their averages.
Outcome trained(const LayoutMap& layouts, const std::vector<at::Tensor>& initial,
                bool remat = false) {
  const Functional model = two_towers(layouts, remat);
  if (!initial.empty()) model.set_weights(initial);
  Outcome outcome;
  for (int64_t step = 0; step < 6; ++step) {
    const int64_t begin = step % 3 * 23;
    const Logs logs = model.train_on_batch(rows_of(begin, std::min<int64_t>(begin + 23, 50)));
    for (const auto& [name, value] : logs) outcome.losses.push_back(value);
  }
  outcome.weights = full_weights(model);
  for (const Variable& owned : model->optimizer()->variables()) {
    if (owned.path().ends_with("/average")) outcome.weights.push_back(owned.value().full().clone());
  }
  return outcome;
}

void check_scheme(const Scheme& scheme, const std::vector<at::Tensor>& initial,
                  const Outcome& expected) {
  INFO(scheme.text());
  const Outcome actual = trained(layouts_of(scheme), initial, scheme.beside == "remat");
  REQUIRE(actual.losses.size() == expected.losses.size());
  for (size_t i = 0; i < actual.losses.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(actual.losses[i] - expected.losses[i]) <=
          1e-12 * std::max(1.0, std::abs(expected.losses[i])));
  }
  REQUIRE(actual.weights.size() == expected.weights.size());
  for (size_t w = 0; w < actual.weights.size(); ++w) {
    CAPTURE(w);
    CHECK(difference(actual.weights[w], expected.weights[w], 1e-12, 1e-12) == "");
  }
}

void check_schemes(const std::vector<Scheme>& some) {
  const DTypeScope doubles("float64");
  const LayoutMap one(create_mesh({{"batch", 1}}));
  const std::vector<at::Tensor> initial = full_weights(two_towers(one));
  const Outcome expected = trained(one, initial);
  REQUIRE(expected.losses.size() == 12);
  for (const Scheme& scheme : some) check_scheme(scheme, initial, expected);
}

}  // namespace

TEST_CASE("twelve pipelines drawn by a seed train as one device does", "[pipeline]") {
  const uint64_t seed = seed_of_run();
  INFO("TESSERA_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  std::vector<Scheme> drawn = schemes();
  std::shuffle(drawn.begin(), drawn.end(), random);
  drawn.resize(12);
  check_schemes(drawn);
}

TEST_CASE("every pipeline trains as one device does", "[pipeline][nightly]") {
  REQUIRE(schemes().size() >= 60);
  check_schemes(schemes());
}

}  // namespace pipeline_schemes_test
