#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/json.hpp>
#include <tessera/tessera.hpp>

#include "apps/bench/compare.hpp"
#include "apps/bench/models.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

std::string devices_text(const std::string& devices) {
  return devices + (devices == "1" ? " device" : " virtual devices");
}

Contender own_mlp(const std::string& devices, const std::string& blocks) {
  return own_contender("own " + devices + " " + blocks,
                       "ours, " + devices_text(devices) + (devices == "8" ? ", " + blocks : ""),
                       {"mlp", "--devices", devices, "--blocks", blocks});
}

/// Returns the modes of PyTorch's program, and their names in the table.
const std::vector<std::pair<std::string, std::string>>& torch_modes() {
  static const std::vector<std::pair<std::string, std::string>> all = {
      {"eager", ", eager"}, {"compile", ", compiled"}, {"graphs", ", compiled, CUDA graphs"}};
  return all;
}

Contender own_steps(const CompareRun& run, const StepWork& work, const std::string& way,
                    const std::string& how) {
  return own_contender("own " + way, "ours" + how,
                       {work.name, "--device", run.device, "--way", way});
}

Examples all_of(const Dataset& data) {
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < data.size(); ++row) rows.push_back(row);
  return data.get(rows);
}

/// Writes data and sizes of a work for the peers; returns their path without the extensions.
std::string share_step_work(const CompareRun& run, const StepWork& work) {
  std::string path = run.share(work.name, all_of(work.data()));
  write_file_atomically(path + ".json", to_json_text(work.sizes));
  return path;
}

}  // namespace

void compare_mlp(CompareRun& run) {
  const std::string data = run.share("mlp", all_of(mlp_data()));
  std::vector<Contender> all = {own_mlp("1", "per_worker"), own_mlp("2", "per_worker"),
                                own_mlp("8", "per_worker"), own_mlp("8", "per_shard"),
                                own_mlp("8", "per_device"), own_mlp("64", "per_worker")};
  run.add_peer(all, "torch", "torch", ", fused Adam, 1 device", "torch_step.py", {"mlp", data});
  for (const std::string devices : {"8", "64"}) {
    const std::string where = ", " + devices_text(devices);
    run.add_peer(all, "tensorflow " + devices, "tensorflow", " DTensor" + where,
                 "tensorflow_mlp.py", {data, devices});
    run.add_peer(all, "jax " + devices, "jax", where, "jax_step.py", {"mlp", data, devices});
  }
  const Figures figures = take_turns(all, {.rounds = run.rounds, .steps = run.steps});
  const std::string own = "own 8 per_worker";
  run.comparison.add_own("mlp, 8 devices", figures.at(own));
  run.add_other(figures, own, "torch", 1.15);
  run.add_other(figures, own, "tensorflow 8", 1.0 / 7);
  run.add_other(figures, own, "jax 8", 1.0 / 3);
  run.add_other(figures, own, "own 8 per_shard");
  run.add_other(figures, own, "own 8 per_device");
  run.comparison.add_own("mlp, 1 device", figures.at("own 1 per_worker"));
  run.add_other(figures, "own 1 per_worker", "torch", 1.05);
  run.comparison.add_own("mlp, 2 devices", figures.at("own 2 per_worker"));
  run.add_other(figures, "own 2 per_worker", "torch");
  run.comparison.add_own("mlp, 64 devices", figures.at("own 64 per_worker"));
  run.add_other(figures, "own 64 per_worker", own, 1.5);
  run.add_other(figures, "own 64 per_worker", "tensorflow 64");
  run.add_other(figures, "own 64 per_worker", "jax 64");
}

void compare_imdb(CompareRun& run) {
  const std::string data = run.share("imdb", all_of(imdb_data()));
  const std::vector<std::string> schemes = {"data", "model", "spatial"};
  std::vector<Contender> all;
  run.add_peer(all, "torch", "torch", ", 1 device", "torch_imdb.py", {data});
  for (const std::string& scheme : schemes) {
    all.push_back(
        own_contender("own " + scheme, "ours, " + devices_text("8"), {"imdb", "--scheme", scheme}));
    run.add_peer(all, "tensorflow " + scheme, "tensorflow", " DTensor, " + devices_text("8"),
                 "tensorflow_imdb.py", {data, scheme});
    run.add_peer(all, "jax " + scheme, "jax", ", " + devices_text("8"), "jax_imdb.py",
                 {data, scheme});
  }
  const Figures figures = take_turns(all, {.rounds = run.rounds, .steps = 4 * run.steps});
  for (const std::string& scheme : schemes) {
    const std::string own = "own " + scheme;
    run.comparison.add_own("imdb, " + scheme, figures.at(own));
    run.add_other(figures, own, "torch", 1.5);
    run.add_other(figures, own, "tensorflow " + scheme, 0.25);
    run.add_other(figures, own, "jax " + scheme);
  }
}

void compare_fit(CompareRun& run) {
  const std::string data = run.share("digits", all_of(datasets::mnist()));
  std::vector<Contender> all = {own_contender("own", "ours, fit with its bar", {"fit"})};
  run.add_peer(all, "keras", "keras", " on JAX, fit with its bar", "keras_fit.py",
               {data, "jax", "dense"});
  for (Contender& contender : all) contender.terminal = true;
  run.add_peer(all, "torch", "torch", ", a loop by hand", "torch_fit.py", {data, "dense"});
  // A round is two epochs.
  const Figures figures = take_turns(all, {.rounds = run.rounds, .steps = 2, .warm_up = 0});
  run.comparison.add_own("fit, a step", figures.at("own"));
  run.add_other(figures, "own", "keras", 1.0);
  run.add_other(figures, "own", "torch", 1.1);
}

void compare_cnn(CompareRun& run) {
  const std::string data = run.share("cnn", all_of(cnn_data()));
  std::vector<Contender> all = {own_contender("own", "ours, fit with its bar", {"cnn"})};
  for (const auto& [backend, name] : {std::pair("tensorflow", "TensorFlow"), {"jax", "JAX"}}) {
    run.add_peer(all, backend, "keras", str(" on ", name, ", fit with its bar"), "keras_fit.py",
                 {data, backend, "cnn"});
  }
  for (Contender& contender : all) contender.terminal = true;
  run.add_peer(all, "torch", "torch", ", a loop by hand", "torch_fit.py", {data, "cnn"});
  // A round is one epoch, after a warm-up epoch, which compiles.
  const Figures figures = take_turns(all, {.rounds = run.rounds, .steps = 1, .warm_up = 1});
  run.comparison.add_own("cnn fit, a step", figures.at("own"));
  for (const char* other : {"tensorflow", "jax", "torch"}) {
    run.add_other(figures, "own", other, run.busy ? 1.5 : 1.05);
  }
}

void compare_steps(CompareRun& run, const StepWork& work) {
  const std::string data = share_step_work(run, work);
  std::vector<Contender> all = {own_steps(run, work, "step", "")};
  for (const auto& [mode, how] : torch_modes()) {
    run.add_peer(all, mode, "torch", how, "torch_step.py", {work.kind, data, run.device, mode});
  }
  run.add_peer(all, "jax", "jax", ", jitted", "jax_step.py",
               {work.kind, data, run.device == "cuda" ? "cuda" : "1"});
  const Figures figures = take_turns(all, {.rounds = run.rounds, .steps = run.steps});
  run.comparison.add_own(work.title, figures.at("own step"));
  for (const auto& [mode, how] : torch_modes()) run.add_other(figures, "own step", mode);
  run.add_other(figures, "own step", "jax");
}

void compare_invariant(CompareRun& run) {
  const StepWork gpt = transformer_works().back();
  const std::vector<std::pair<std::string, std::vector<std::string>>> works = {
      {"mlp", {"mlp"}}, {gpt.title, {gpt.name, "--device", "cpu"}}};
  const auto contender = [](const std::string& how, std::vector<std::string> arguments,
                            const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), {"--devices", "8"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return own_contender(how, "ours, " + how, arguments);
  };
  for (const auto& [title, arguments] : works) {
    const Figures figures =
        take_turns({contender("world_size_invariant", arguments, {"--world-size-invariant"}),
                    contender("default", arguments, {}),
                    contender("per_device blocks", arguments, {"--blocks", "per_device"})},
                   {.rounds = run.rounds, .steps = std::max<int64_t>(run.steps / 4, 2)});
    run.comparison.add_own(title + ", 8 devices", figures.at("world_size_invariant"));
    run.add_other(figures, "world_size_invariant", "default");
    run.add_other(figures, "world_size_invariant", "per_device blocks");
  }
}

void compare_pipeline(CompareRun& run) {
  const std::vector<StepWork> works = pipeline_works();
  const auto contender = [](const StepWork& work, const std::string& who) {
    return own_contender(work.name, who, {work.name, "--device", "cpu", "--way", "fit"});
  };
  // Steps are long, so that fewer suffice.
  const Figures figures =
      take_turns({contender(works[0], "ours, 4 stages, 4 microbatches"),
                  contender(works[1], "ours, 1 device, 4 accumulated steps")},
                 {.rounds = run.rounds, .steps = std::max<int64_t>(run.steps / 8, 4)});
  const Figure& staged = figures.at(works[0].name);
  Figure update = figures.at(works[1].name);
  for (double& round : update.rounds) {
    round *= static_cast<double>(works[0].batch_size) / static_cast<double>(works[1].batch_size);
  }
  run.comparison.add_own(works[0].title, staged);
  run.comparison.add_other(update, ratio(staged, update, 1.25));
}

void compare_attention(CompareRun& run) {
  std::vector<Contender> all = {own_contender("own", "ours", {"attention"})};
  run.add_peer(all, "torch", "torch", ", SDPA", "torch_attention.py", {});
  const Figures figures = take_turns(all, {.rounds = run.rounds, .steps = run.steps});
  run.comparison.add_own("causal attention, 512 steps, 8 heads of 64", figures.at("own"));
  run.add_other(figures, "own", "torch", 1.1);
}

void compare_transformer(CompareRun& run) {
  for (const StepWork& work : transformer_works()) {
    const std::string data = share_step_work(run, work);
    const auto own = [&](const std::string& devices) {
      return own_contender("own " + devices, "ours, " + devices_text(devices),
                           {work.name, "--device", "cpu", "--devices", devices});
    };
    std::vector<Contender> all = {own("1"), own("8")};
    run.add_peer(all, "torch", "torch", ", SDPA, fused Adam", "torch_step.py", {work.kind, data});
    run.add_peer(all, "jax", "jax", ", jitted", "jax_step.py", {work.kind, data, "1"});
    run.add_peer(all, "keras", "keras", " on JAX", "keras_step.py", {work.kind, data});
    // Steps are long, so that fewer suffice.
    const Figures figures =
        take_turns(all, {.rounds = run.rounds, .steps = std::max<int64_t>(run.steps / 8, 2)});
    run.comparison.add_own(work.title, figures.at("own 1"));
    for (const char* peer : {"torch", "jax", "keras"}) run.add_other(figures, "own 1", peer, 1.0);
    run.comparison.add_own(work.title + ", 8 devices", figures.at("own 8"));
    run.add_other(figures, "own 8", "own 1", 1.15);
  }
}

namespace {

/// Our part of a work on virtual CPUs, in one of the ways of `bench compare-work`.
Contender own_network(const StepWork& work, const std::string& way, const std::string& devices) {
  return own_contender("own " + devices, "ours, " + devices_text(devices),
                       {work.name, "--device", "cpu", "--devices", devices, "--way", way});
}

/// Long steps need fewer repetitions.
int64_t steps_of(const CompareRun& run, const StepWork& work) {
  return std::max<int64_t>(run.steps / (work.batch_size > 1 ? 8 : 1), 2);
}

/// Adds Keras on a backend, if its environment has it.
void add_keras(CompareRun& run, std::vector<Contender>& all, const StepWork& work,
               const std::string& data, const std::string& backend, const std::string& mode) {
  run.add_peer(all, "keras", "keras", backend == "jax" ? " on JAX" : " on TensorFlow",
               "keras_step.py", {work.kind, data, backend, mode});
}

/// Compares training steps with PyTorch and Keras on a backend.
void compare_network_training(CompareRun& run, const StepWork& work, double torch_limit,
                              const std::string& keras_backend) {
  const std::string data = share_step_work(run, work);
  std::vector<Contender> all = {own_network(work, "step", "1"), own_network(work, "step", "8")};
  run.add_peer(all, "torch", "torch", ", Adam", "torch_step.py", {work.kind, data});
  add_keras(run, all, work, data, keras_backend, "step");
  const Figures figures = take_turns(all, {.rounds = run.rounds, .steps = steps_of(run, work)});
  run.comparison.add_own(work.title + ", training", figures.at("own 1"));
  run.add_other(figures, "own 1", "torch", torch_limit);
  run.add_other(figures, "own 1", "keras", 1.0);
  run.comparison.add_own(work.title + ", training on 8 devices", figures.at("own 8"));
  run.add_other(figures, "own 8", "own 1", 1.15);
}

/// The bars of a work's predictions beside each peer.
struct PredictionLimits {
  double torch = 1.0;
  double onnx = 1.3;
  std::optional<double> keras = std::nullopt;  ///< on TensorFlow; none: it does not run
};

void compare_predictions(CompareRun& run, const StepWork& work, const PredictionLimits& limits) {
  const std::string data = share_step_work(run, work);
  std::vector<Contender> all = {own_network(work, "predict", "1")};
  run.add_peer(all, "torch", "torch", "", "torch_step.py", {work.kind, data, "cpu", "predict"});
  if (limits.keras) add_keras(run, all, work, data, "tensorflow", "predict");
  run.add_peer(all, "onnxruntime", "onnxruntime", "", "onnx_predict.py", {work.kind, data});
  const Figures figures = take_turns(all, {.rounds = run.rounds, .steps = steps_of(run, work)});
  run.comparison.add_own(work.title + ", prediction", figures.at("own 1"));
  run.add_other(figures, "own 1", "torch", limits.torch);
  if (limits.keras) run.add_other(figures, "own 1", "keras", limits.keras);
  run.add_other(figures, "own 1", "onnxruntime", limits.onnx);
}

/// Compares the training of a work, if its batch has several rows, and its predictions.
/// `torch_limit`: the bar of predictions beside PyTorch.
void compare_network(CompareRun& run, const StepWork& work, double torch_limit) {
  if (work.batch_size > 1) compare_network_training(run, work, 1.0, "tensorflow");
  compare_predictions(
      run, work, {.torch = torch_limit, .onnx = work.batch_size == 1 ? 1.6 : 1.3, .keras = 1.0});
}

}  // namespace

void compare_vision(CompareRun& run) {
  for (const StepWork& work : vision_works()) compare_network(run, work, 1.0);
}

void compare_recurrent(CompareRun& run) {
  for (const StepWork& work : recurrent_works()) compare_network(run, work, 1.05);
}

void compare_embedding(CompareRun& run) {
  for (const StepWork& work : embedding_works()) compare_network_training(run, work, 1.2, "jax");
}

void compare_inference(CompareRun& run) {
  for (const StepWork& work : inference_works()) {
    compare_predictions(run, work, {.onnx = work.batch_size == 1 ? 1.6 : 1.3});
  }
}

void compare_uploads(CompareRun& run, const StepWork& work) {
  const std::string data = share_step_work(run, work);
  std::vector<Contender> all = {own_steps(run, work, "fit", ", fit"),
                                own_steps(run, work, "resident", ", data on the device")};
  run.add_peer(all, "torch", "torch", ", a loop by hand", "torch_step.py",
               {work.kind, data, run.device, "eager"});
  run.add_peer(all, "torch resident", "torch", ", data on the device", "torch_step.py",
               {work.kind, data, run.device, "resident"});
  const Figures figures = take_turns(all, {.rounds = run.rounds, .steps = run.steps});
  run.comparison.add_own(work.title, figures.at("own fit"));
  // On a CPU there is nothing to copy.
  const auto limit = run.device == "cuda" ? std::optional(1.05) : std::nullopt;
  run.add_other(figures, "own fit", "own resident", limit);
  run.add_other(figures, "own fit", "torch");
  run.add_other(figures, "own fit", "torch resident");
}

void compare_dropout(CompareRun& run) {
  const auto own = [&](const std::string& work, const std::string& who) {
    return own_contender(work, who, {work, "--device", run.device});
  };
  const Figures figures = take_turns({own("dropout", "ours"), own("copy", "a copy")},
                                     {.rounds = run.rounds, .steps = run.steps});
  run.comparison.add_own("dropout alone", figures.at("dropout"));
  // On a GPU it should reach half the bandwidth of a copy.
  const auto limit = run.device == "cuda" ? std::optional(2.0) : std::nullopt;
  run.add_other(figures, "dropout", "copy", limit);
}

}  // namespace tessera::bench
