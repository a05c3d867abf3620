#include <chrono>
#include <cstdio>
#include <iostream>
#include <optional>

#include <tessera/datasets/files/sha256.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/strategy/sidecar_evaluator.hpp>

#include "apps/common/app_options.hpp"
#include "apps/common/checkpoints.hpp"
#include "apps/common/processes.hpp"
#include "apps/common/profiling.hpp"
#include "apps/common/run_app.hpp"
#include "apps/common/setup.hpp"
#include "apps/mnist/models.hpp"
#include "apps/mnist/strategies.hpp"

namespace {

using namespace tessera;

struct MnistFlags {
  std::string model = "core-api";
  std::string style = "sequential";
  std::vector<int64_t> hidden = {700, 500};
  mnist::CnnOptions cnn;
  std::string save;
  std::string load;
  app::CheckpointFlags checkpoints;
  mnist::StrategyFlags strategy;
};

void add_options(app::AppOptions& options, MnistFlags& flags) {
  options.common().train_size = 5000;
  options.common().test_size = 5000;
  options.add({"model", "Model", "model of the Core-API guide or the Keras tutorial, or a CNN",
               app::choice(flags.model, {"core-api", "keras", "cnn"})});
  options.add({"style", "Model", "API that the model is written in; all three train the same model",
               app::choice(flags.style, {"sequential", "functional", "subclass"})});
  options.add(
      {"hidden", "Model", "units of core-api's hidden layers", app::integers(flags.hidden, 1)});
  options.add({"dropout", "Model", "dropout rate of cnn", app::fraction(flags.cnn.dropout)});
  options.add({"batch-norm", "Model", "BatchNormalization after each convolution of cnn",
               app::toggle(flags.cnn.batch_norm)});
  options.add({"load", "Model", "file of the initial weights: .keras, .weights.h5 or .safetensors",
               app::input_file(flags.load, "FILE")});
  options.add({"save", "Model",
               "file for the trained model, .keras, or its weights, .weights.h5 or .safetensors",
               app::output_file(flags.save, "FILE", {".keras", ".weights.h5", ".safetensors"})});
  app::add_checkpoint_options(options, flags.checkpoints);
  mnist::add_strategy_options(options, flags.strategy);
}

/// The layouts, dtype and distribution of a run.
struct RunSetup {
  LayoutMap layouts;  ///< undefined: the strategy's
  at::ScalarType dtype;
  mnist::Distribution distribution;

  /// Whether this process prints. An elastic run may lose the first one, and then has another.
  bool leads(const app::CommonOptions& common) const {
    if (!distribution.strategy) return app::is_first_process(common);
    return distribution.role == mnist::Role::leads;
  }
  std::string describe() const {
    if (layouts.defined()) return "mesh " + app::mesh_text(layouts.mesh());
    const strategy::Strategy& strategy = *distribution.strategy;
    return strategy.name() + ", mesh " + app::mesh_text(strategy.mesh());
  }
};

RunSetup set_up_run(const MnistFlags& flags, const app::CommonOptions& common) {
  if (flags.strategy.name.empty()) {
    const app::Setup setup = app::set_up(common, {{"batch", 8}});
    const bool first = app::is_first_process(common);
    return {setup.layouts, setup.dtype, {.role = first ? mnist::Role::leads : mnist::Role::trains}};
  }
  set_random_seed(common.seed);
  app::set_dtypes(common);
  return {{}, default_dtype_policy().variable, mnist::distribute(flags.strategy, common)};
}

/// Returns the shape of the model's input.
Shape input_shape(const MnistFlags& flags) {
  return flags.model == "cnn" ? Shape{-1, 28, 28} : Shape{-1, 784};
}

MnistDataset data_of(const app::CommonOptions& common, const MnistFlags& flags,
                     const std::string& split, const std::optional<int64_t>& size,
                     at::ScalarType dtype) {
  return datasets::mnist({.data_dir = common.data_dir,
                          .split = split,
                          .size = size,
                          .flatten = input_shape(flags).size() == 2,
                          .dtype = dtype,
                          .synthetic = true});
}

mnist::Recipe recipe_of(const MnistFlags& flags, const app::CommonOptions& common) {
  const mnist::Style style = mnist::parse_style(flags.style);
  if (flags.model == "cnn") {
    return mnist::cnn(style, flags.cnn, common.learning_rate.value_or(1e-3));
  }
  if (flags.model == "keras") return mnist::keras(style, common.learning_rate.value_or(0.01));
  return mnist::core_api(style, flags.hidden, common.learning_rate.value_or(1e-3));
}

/// Prints or writes what --summary, --plan and --plot-model ask for. Builds the model but
/// initializes no weights.
void show_model(const ModelHandle& model, const MnistDataset& data,
                const app::CommonOptions& common, bool prints) {
  if (!common.summary && !common.plan && common.plot_model.empty()) return;
  const StepPlan plan = model.plan(data, {.batch_size = common.batch_size});
  if (!prints) return;
  if (common.summary) model.summary({.show_layout = true, .plan = plan});
  if (common.plan) std::cout << plan.to_string() << std::flush;
  if (!common.plot_model.empty()) plot_model(model.model(), common.plot_model);
}

/// Returns the SHA-256 of all weights, one after the other. Collective.
std::string weights_digest(const ModelHandle& model) {
  tessera::detail::Sha256 digest;
  for (const at::Tensor& weight : model.get_weights()) {
    const at::Tensor bytes = weight.cpu().contiguous();
    digest.update({static_cast<const std::byte*>(bytes.const_data_ptr()), bytes.nbytes()});
  }
  return digest.digits();
}

/// Prints the results of the last epoch in one line.
void print_summary(const History& history, int64_t images, double seconds) {
  const size_t epochs = history.epoch.size();
  std::printf("test accuracy %.4f, loss %.4f on %lld images (%s), %zu epoch%s, %.1f s\n",
              history.at("val_accuracy").back(), history.at("val_loss").back(),
              static_cast<long long>(images), history.data.c_str(), epochs, epochs == 1 ? "" : "s",
              seconds);
}

/// Trains the model. A signal ends training after the current step and saves a checkpoint to resume
/// from.
History fit(const ModelHandle& model, const MnistDataset& train, const MnistDataset& test,
            const app::CommonOptions& common, const MnistFlags& flags, bool saves) {
  FitOptions options = app::fit_options(common);
  options.validation_data = test;
  if (saves && !flags.checkpoints.folder.empty()) {
    model.build(input_shape(flags));
    options.callbacks.push_back(std::make_shared<app::RunCheckpoints>(model, flags.checkpoints));
  }
  const StopSignals signals;
  return model.fit(train, options);
}

/// Runs the task "evaluator": evaluates the checkpoints that the run writes.
int evaluate(const ModelHandle& model, const MnistDataset& test, const app::CommonOptions& common,
             const MnistFlags& flags, const mnist::Distribution& distribution) {
  if (flags.checkpoints.folder.empty()) {
    throw ConfigError("--checkpoint-dir", "an evaluator reads the checkpoints of the run",
                      "nothing", "add --checkpoint-dir FOLDER");
  }
  model.build(input_shape(flags));
  const StopSignals signals;
  strategy::SidecarEvaluator(model, {.checkpoint_dir = flags.checkpoints.folder,
                                     .data = test,
                                     .batch_size = common.batch_size,
                                     .log_dir = common.tensorboard,
                                     .verbose = static_cast<int>(common.verbose),
                                     .over = distribution.is_over})
      .start();
  return distribution.finish();
}

/// Trains; in the process that leads, prints and writes what the options ask for.
void train(const ModelHandle& model, const MnistDataset& training, const MnistDataset& test,
           const app::CommonOptions& common, const MnistFlags& flags, const RunSetup& setup) {
  show_model(model, training, common, setup.leads(common));
  if (!flags.load.empty()) {
    model.build(input_shape(flags));
    load_weights(model.model(), flags.load);
  }
  app::Profiling profiling(common);
  const auto start = std::chrono::steady_clock::now();
  const History history = fit(model, training, test, common, flags, true);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  profiling.stop();
  const bool leads = setup.leads(common);
  if (leads && !common.history.empty()) history.save(common.history);
  if (leads && !common.plot.empty()) save_plot(history, common.plot);
  if (flags.save.ends_with(".keras")) {
    model.save(flags.save);
  } else if (!flags.save.empty()) {
    model.save_weights(flags.save);
  }
  const std::string profile = profiling.finish();
  // What stays the same whatever happens to the processes, to compare by eye.
  const bool invariant = setup.layouts.defined() && setup.layouts.world_size_invariant();
  const std::string digest = invariant ? weights_digest(model) : "";
  if (!leads || common.verbose == 0) return;
  print_summary(history, test.size(), elapsed.count());
  if (invariant) std::printf("sha256 of the weights: %s\n", digest.c_str());
  std::printf("%s", profile.c_str());
}

int run(int argc, char** argv) {
  app::AppOptions options("mnist", "Trains a classifier of handwritten digits on any mesh.");
  MnistFlags flags;
  add_options(options, flags);
  if (!options.parse(argc, argv)) return 0;
  app::complete_checkpoint_options(flags.checkpoints);
  const app::CommonOptions& common = options.common();
  mnist::check_strategy_options(flags.strategy, common);
  const RunSetup setup = set_up_run(flags, common);
  const MnistDataset training = data_of(common, flags, "train", common.train_size, setup.dtype);
  const MnistDataset test = data_of(common, flags, "test", common.test_size, setup.dtype);
  if (setup.leads(common) && common.verbose > 0) {
    std::cout << training.announcement() << "\n" << setup.describe() << std::endl;
  }

  const auto& distribution = setup.distribution;
  const auto scope = distribution.strategy ? distribution.strategy->scope() : nullptr;
  const auto [model, optimizer] = recipe_of(flags, common);
  model.compile({.optimizer = optimizer,
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"},
                 .layouts = setup.layouts});
  if (distribution.role == mnist::Role::evaluates) {
    return evaluate(model, test, common, flags, distribution);
  }
  if (distribution.role == mnist::Role::serves) {
    app::Profiling profiling(common);
    fit(model, training, test, common, flags, false);
    profiling.finish();
  } else {
    train(model, training, test, common, flags, setup);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, run); }
