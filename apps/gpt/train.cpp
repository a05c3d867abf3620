#include "apps/gpt/train.hpp"

#include <chrono>
#include <cstdio>
#include <iostream>
#include <optional>

#include <ATen/ATen.h>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>

#include "apps/common/checkpoints.hpp"
#include "apps/common/processes.hpp"
#include "apps/common/profiling.hpp"
#include "apps/common/setup.hpp"
#include "apps/gpt/corpus.hpp"
#include "apps/gpt/generator.hpp"
#include "apps/gpt/saved_model.hpp"

namespace tessera::gpt {

using namespace detail;

namespace {

struct TrainFlags {
  ModelFlags model;
  ModelSize size;
  Sampling sampling;
  std::string prompt = "this movie is";
  std::string save;
  std::string plan_json;
  std::string remat = "none";
  int64_t validation_size = 0;
  app::CheckpointFlags checkpoints;
};

void add_options(app::AppOptions& options, TrainFlags& flags) {
  options.common().epochs = 25;
  options.add({"epochs", "Training", "passes over the reviews; 0: none, for --summary and --plan",
               app::integer(options.common().epochs, 0)});
  options.add({"validation-size", "Data",
               "held-out reviews to evaluate on after each epoch; 0: none",
               app::integer(flags.validation_size, 0)});
  add_model_options(options, flags.model);
  options.add({"remat", "Training",
               "what the backward pass computes again instead of keeping it: nothing, blocks, or "
               "blocks without their matrix products",
               app::choice(flags.remat, {"none", "full", "matmuls"})});
  options.add({"prompt", "Text", "start of the text generated after each epoch; empty: none",
               app::text(flags.prompt, "TEXT")});
  add_sampling_options(options, flags.sampling);
  app::add_checkpoint_options(options, flags.checkpoints);
  options.add({"save", "Output",
               "folder for the trained model, a new version in it, which generate and serve read",
               app::folder_name(flags.save)});
  options.add({"plan-json", "Output", "file for the plan as JSON",
               app::output_file(flags.plan_json, "FILE", {".json"})});
}

/// Returns the rules of --remat.
std::vector<RematRule> remat_rules(const std::string& remat) {
  if (remat == "none") return {};
  RematRule blocks{.match = "block_\\d+"};
  if (remat == "matmuls") blocks.policy.save = {"matmuls"};
  return {blocks};
}

/// Prints a generated text after each epoch, like the TextGenerator of Keras' example.
class TextAfterEpoch final : public Callback {
 public:
  TextAfterEpoch(const Generator& generator, const TrainFlags& flags, bool prints)
      : generator_(generator), flags_(flags), prints_(prints) {}

  void on_epoch_end(int64_t epoch, Logs&) override {
    Sampling sampling = flags_.sampling;
    sampling.seed += epoch;
    const std::string text = generator_.generate(flags_.prompt, sampling);
    if (prints_) std::cout << "generated text:\n" << text << "\n" << std::endl;
  }
  bool wants_batch_logs(int64_t) override { return false; }

 private:
  const Generator& generator_;
  const TrainFlags& flags_;
  bool prints_;
};

/// Prints or writes what --summary, --plan, --plan-json and --plot-model ask for. Initializes no
/// weights.
void show_model(const ModelHandle& model, const DatasetHandle& data, const TrainFlags& flags,
                const app::CommonOptions& common) {
  const bool plans = common.plan || !flags.plan_json.empty();
  if (!common.summary && !plans && common.plot_model.empty()) return;
  const StepPlan plan = model.plan(data, {.batch_size = common.batch_size});
  if (!app::is_first_process(common)) return;
  if (common.summary) model.summary({.expand_nested = true, .show_layout = true, .plan = plan});
  if (common.plan) std::cout << plan.to_string() << std::flush;
  if (!flags.plan_json.empty()) {
    write_file_atomically(flags.plan_json, to_json_text(plan.to_json(), 1) + "\n");
  }
  if (!common.plot_model.empty()) plot_model(model.model(), common.plot_model);
}

History fit(const ModelHandle& model, const Corpus& corpus, const TrainFlags& flags,
            const app::CommonOptions& common) {
  const Generator generator(model, corpus.vocabulary, flags.size.length);
  FitOptions options = app::fit_options(common);
  if (!flags.checkpoints.folder.empty()) {
    options.callbacks.push_back(std::make_shared<app::RunCheckpoints>(model, flags.checkpoints));
  }
  if (!flags.prompt.empty()) {
    options.callbacks.push_back(TextAfterEpoch(generator, flags, app::verbosity(common) > 0));
  }
  const StopSignals signals;
  if (corpus.validation) options.validation_data = *corpus.validation;
  return model.fit(corpus.data, options);
}

}  // namespace

int train_main(int argc, const char* const* argv) {
  app::AppOptions options("gpt train",
                          "Trains a transformer to write film reviews, like Keras' miniature GPT.",
                          {"test-size", "epochs"});
  TrainFlags flags;
  add_options(options, flags);
  if (!options.parse(argc, argv)) return 0;
  flags.size = model_size(flags.model);
  app::complete_checkpoint_options(flags.checkpoints);
  const app::CommonOptions& common = options.common();
  flags.sampling.seed = common.seed;
  const app::Setup setup = app::set_up(common, {{"batch", 8}});
  const Functional model = gpt_model(flags.size);
  model.compile({.optimizer = Adam(common.learning_rate.value_or(1e-3)),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .layouts = setup.layouts,
                 .remat = remat_rules(flags.remat)});
  const bool prints = app::verbosity(common) > 0;
  if (prints) std::cout << "mesh " << describe_mesh(setup.layouts.mesh()) << std::endl;
  // Before reading the data, which takes long, and which a plan does not need.
  const at::Tensor row = at::zeros({1, flags.size.length}, at::kLong);
  show_model(model, TensorDataset(row, row), flags, common);
  if (common.epochs == 0) return 0;
  const Corpus corpus = read_corpus(common, {.length = flags.size.length,
                                             .vocabulary = flags.size.vocabulary,
                                             .validation_size = flags.validation_size});

  app::Profiling profiling(common);
  const auto start = std::chrono::steady_clock::now();
  const History history = fit(model, corpus, flags, common);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  profiling.stop();
  const bool first = app::is_first_process(common);
  if (first && !common.history.empty()) history.save(common.history);
  if (first && !common.plot.empty()) save_plot(history, common.plot);
  if (!flags.save.empty()) {
    save_model_folder(model, {flags.size, corpus.vocabulary, common.dtype}, flags.save);
  }
  const std::string profile = profiling.finish();
  if (!prints || history.epoch.empty()) return 0;
  if (corpus.validation) {
    std::printf("validation loss %.4f on %lld reviews, ", history.at("val_loss").back(),
                static_cast<long long>(corpus.validation->size()));
  }
  std::printf("loss %.4f on %lld reviews (%s), %zu epoch%s, %.1f s\n%s", history.at("loss").back(),
              static_cast<long long>(corpus.data.size()), history.data.c_str(),
              history.epoch.size(), history.epoch.size() == 1 ? "" : "s", elapsed.count(),
              profile.c_str());
  return 0;
}

}  // namespace tessera::gpt
