// One of several processes that train networks in stages, and compare what they get with training
// on one device, which each process does for itself.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <sstream>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/tessera.hpp>

#include "apps/common/run_app.hpp"
#include "tests/apps/gpt_sample.hpp"
#include "tests/processes/naps.hpp"
#include "tests/processes/planted_fault.hpp"
#include "tests/support/checkpoint_model.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/masked_experts.hpp"
#include "tests/support/seed_scope.hpp"
#include "tests/support/small_model.hpp"

namespace tessera::test {

using namespace detail;

namespace {

constexpr double tolerance = 1e-12;

/// A training: "NETWORK:SCHEDULE:MICROBATCHES:MESH".
struct Training {
  std::string network, schedule;
  int64_t microbatches = 1;
  std::string mesh;
};

Training training_of(const std::string& text) {
  std::istringstream stream(text);
  Training training;
  std::string microbatches;
  std::getline(stream, training.network, ':');
  std::getline(stream, training.schedule, ':');
  std::getline(stream, microbatches, ':');
  std::getline(stream, training.mesh);
  training.microbatches = std::stoll(microbatches);
  return training;
}

/// A compiled model and its data.
struct Network {
  ModelHandle model;
  DatasetHandle data, validation;
};

Network network_of(const std::string& name, const LayoutMap& layouts) {
  const SeedScope seed(7);
  if (name == "gpt") {
    gpt::ModelSize size = odd_gpt(true);
    size.dropout = 0.1;
    const Functional model = gpt::gpt_model(size);
    CompileOptions options = gpt_training(layouts);
    options.optimizer =
        Adam(1e-3, {.global_clipnorm = 0.5, .use_ema = true, .gradient_accumulation_steps = 2});
    options.metrics = {"accuracy"};
    model.compile(options);
    const at::Tensor rows = gpt_words(14, size);
    return {model, TensorDataset(gpt_batch(rows, 0, 10)), TensorDataset(gpt_batch(rows, 10, 4))};
  }
  if (name == "masked") {
    const Functional model = masked_experts();
    model.compile(masked_compile(layouts));
    return {model, TensorDataset(masked_rows(15)), TensorDataset(masked_rows(7))};
  }
  const Sequential model = small_model();
  CompileOptions options = small_compile(layouts);
  options.optimizer = Adam(1e-2, {.global_clipnorm = 0.5});
  model.compile(options);
  return {model, small_data(50, 1, true), small_data(21, 2)};
}

/// Returns what differs in two lists of values.
std::string logs_difference(const Logs& actual, const Logs& expected) {
  if (actual.size() != expected.size()) return "numbers of values differ";
  for (size_t i = 0; i < actual.size(); ++i) {
    const double bound = tolerance * std::max(1.0, std::abs(expected[i].second));
    if (actual[i].first == expected[i].first &&
        std::abs(actual[i].second - expected[i].second) <= bound) {
      continue;
    }
    return str(actual[i].first, " ", actual[i].second, ", not ", expected[i].first, " ",
               expected[i].second);
  }
  return "";
}

std::string weights_difference(const ModelHandle& actual, const ModelHandle& expected) {
  const std::vector<at::Tensor> here = full_weights(actual), there = full_weights(expected);
  for (size_t w = 0; w < there.size(); ++w) {
    const std::string what = difference(here[w], there[w], tolerance, tolerance);
    if (!what.empty()) return str("weight ", w, ": ", what);
  }
  return "";
}

void build(const Network& network, const std::string& name, int64_t rows) {
  if (name == "masked") return network.model->build(Shapes{{rows, 7}, {rows, 7}});
  network.model.build({rows, name == "gpt" ? odd_gpt(true).length : 18});
}

/// Builds a network that is not trained yet.
Network built(const std::string& name, const LayoutMap& layouts) {
  const Network network = network_of(name, layouts);
  build(network, name, 6);
  return network;
}

/// The rule of a weight that a mesh dimension "model" shards.
std::string sharded_weight(const std::string& name) {
  if (name == "masked") return "block_1/up/kernel";
  return name == "gpt" ? "block_\\d+/up/kernel" : "hidden_1/kernel";
}

/// Writes a checkpoint of the stages, and reads it on one device and on two that share a weight;
/// then reads that of one device into the stages. Returns what differs.
std::string files_difference(const std::string& name, const Network& staged, const Network& plain,
                             const std::string& folder) {
  const Everything expected(staged.model);
  const std::string path = folder + "/staged";
  Checkpoint(staged.model).save(path);
  LayoutMap two(create_mesh({{"model", 2}}));
  two[sharded_weight(name)] = {unsharded, "model"};
  for (const LayoutMap& layouts : {LayoutMap(create_mesh({{"batch", 1}})), two}) {
    const Network read = built(name, layouts);
    Checkpoint(read.model).restore(path);
    const std::string what = Everything(read.model).difference(expected);
    if (!what.empty()) return "the checkpoint read without stages: " + what;
  }
  // Each process has its own, with the same content.
  const std::string own = folder + "/alone" + std::to_string(getpid());
  Checkpoint(plain.model).save(own);
  Checkpoint(staged.model).restore(own);
  const std::string what = Everything(staged.model).difference(Everything(plain.model));
  return what.empty() ? "" : "a checkpoint read into stages: " + what;
}

/// Returns what differs between the training and that on one device; empty if nothing does.
std::string training_difference(const Training& training, const DistributedOptions& distributed,
                                const std::string& folder) {
  const Network plain = network_of(training.network, LayoutMap(create_mesh({{"batch", 1}})));
  const MeshDims dims = parse_mesh_dims(training.mesh);
  LayoutMap layouts(create_distributed_mesh(dims, distributed));
  if (layouts.mesh().find("model") >= 0) {
    layouts[sharded_weight(training.network)] = {unsharded, "model"};
  }
  layouts.set_pipeline({.microbatches = training.microbatches, .schedule = training.schedule});
  const Network staged = network_of(training.network, layouts);
  const FitOptions options = {.batch_size = training.network == "mlp" ? 23 : 6,
                              .epochs = 2,
                              .verbose = 0,
                              .validation_data = staged.validation};
  build(staged, training.network, options.batch_size);
  build(plain, training.network, options.batch_size);
  staged.model.set_weights(plain.model.get_weights());
  const History expected = plain.model.fit(plain.data, options);
  const History actual = staged.model.fit(staged.data, options);
  if (actual.steps.size() != expected.steps.size()) return "numbers of steps differ";
  for (size_t step = 0; step < actual.steps.size(); ++step) {
    const double bound = tolerance * std::max(1.0, std::abs(expected.steps[step]));
    if (std::abs(actual.steps[step] - expected.steps[step]) <= bound) continue;
    return str("loss of step ", step, ": ", actual.steps[step], ", not ", expected.steps[step]);
  }
  std::string what = weights_difference(staged.model, plain.model);
  if (!what.empty()) return what;
  const EvaluateOptions passes = {.batch_size = 4, .verbose = 0};
  what = logs_difference(staged.model.evaluate(staged.validation, passes),
                         plain.model.evaluate(plain.validation, passes));
  if (!what.empty()) return "evaluate: " + what;
  const PredictOptions rows = {.batch_size = 3, .verbose = 0};
  what = difference(staged.model.predict(staged.validation, rows),
                    plain.model.predict(plain.validation, rows), tolerance, tolerance);
  if (!what.empty()) return "predict: " + what;
  if (folder.empty()) return "";
  return files_difference(training.network, staged, plain, folder);
}

/// Trains 32 layers on each of `stages` processes, and prints the bytes of activations and
/// gradients that the device of this one held at the peak of a step: "SCHEDULE:MICROBATCHES".
void measure(const std::string& how, int64_t stages, const DistributedOptions& distributed) {
  constexpr int64_t rows = 64, units = 64;
  const std::string schedule = how.substr(0, how.find(':'));
  const int64_t microbatches = std::stoll(how.substr(how.find(':') + 1));
  LayoutMap layouts(create_distributed_mesh({{"stage", stages}}, distributed));
  layouts.set_pipeline({.microbatches = microbatches, .schedule = schedule});
  // Before memory is counted, which is that of the device.
  const at::Tensor data = at::ones({rows * microbatches, units}, at::kDouble);
  const Examples batch = {.x = {data}, .y = {data}};
  DeviceMemory memory;
  std::vector<LayerHandle> layers;
  for (int64_t l = 0; l < 32 * stages; ++l) layers.push_back(Dense(units, {.activation = "relu"}));
  const Sequential model(layers);
  model.compile({.optimizer = SGD(0.01), .loss = MeanSquaredError(), .layouts = layouts});
  model.train_on_batch(batch);
  memory.reset_peaks();
  model.train_on_batch(batch);
  const MemoryByUse peak = memory.at_peak(0);
  std::printf("%s %.0f %.0f\n", how.c_str(), peak.activations, peak.gradients);
}

/// Trains layers that sleep, one for each stage, and prints the begin and end of each nap of three
/// steps: "SCHEDULE:MICROBATCHES". With a folder, it gets a trace of these steps.
void take_naps(const std::string& how, int64_t devices, std::chrono::milliseconds time,
               const DistributedOptions& distributed, const std::string& folder) {
  constexpr int64_t units = 8;
  const std::string schedule = how.substr(0, how.find(':'));
  const int64_t microbatches = std::stoll(how.substr(how.find(':') + 1));
  const bool two = schedule == "interleaved" || schedule == "zb_v";
  std::vector<LayerHandle> layers = {Dense(units, {.name = "first"})};
  std::vector<std::string> begins;
  for (int64_t stage = 0; stage < (two ? 2 : 1) * devices; ++stage) {
    layers.push_back(nap(str("nap_", stage), time));
    if (stage > 0) begins.push_back(str("nap_", stage));
  }
  LayoutMap layouts(create_distributed_mesh({{"stage", devices}}, distributed));
  layouts.set_pipeline({.microbatches = microbatches, .schedule = schedule, .split = begins});
  const Sequential model(layers);
  model.compile({.optimizer = SGD(0.01), .loss = MeanSquaredError(), .layouts = layouts});
  const at::Tensor data = at::ones({microbatches, units}, at::kDouble);
  const Examples batch = {.x = {data}, .y = {data}};
  std::optional<Profile> profile;
  for (int step = 0; step <= 3; ++step) {
    if (step == 1 && !folder.empty()) profile.emplace();
    model.train_on_batch(batch);
    for (const NapTime& nap : taken_naps()) {
      // The first step is planned.
      if (step == 0) break;
      std::printf("%d %lld %lld\n", step, static_cast<long long>(nap.begin),
                  static_cast<long long>(nap.end));
    }
  }
  if (!profile) return;
  profile->stop();
  profile->save(str(folder, "/rank-", layouts.mesh().communicator()->rank(), ".json"));
}

int run(int argc, char** argv) {
  const Arguments arguments(argc, argv);
  const DTypeScope doubles("float64");
  const DistributedOptions options{.timeout = std::chrono::minutes(2),
                                   .shared_memory = arguments.number("shared_memory", 1) != 0};
  std::istringstream trainings(arguments.text("trainings"));
  for (std::string text; trainings >> text;) {
    const std::string what =
        training_difference(training_of(text), options, arguments.text("folder"));
    std::printf("%s %s\n", text.c_str(), what.empty() ? "equal" : what.c_str());
    std::fflush(stdout);
  }
  std::istringstream measured(arguments.text("measured"));
  for (std::string how; measured >> how;) measure(how, arguments.number("stages", 2), options);
  std::istringstream naps(arguments.text("naps"));
  const std::chrono::milliseconds time(arguments.number("milliseconds", 20));
  for (std::string how; naps >> how;) {
    take_naps(how, arguments.number("stages", 2), time, options, arguments.text("folder"));
  }
  return 0;
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, tessera::test::run); }
