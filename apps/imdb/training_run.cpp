#include "apps/imdb/training_run.hpp"

#include <algorithm>
#include <iostream>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/io/checkpoint_manager.hpp>
#include <tessera/framework/io/format/checkpoint_folder.hpp>
#include <tessera/framework/io/format/checkpoint_reader.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/tessera.hpp>

#include "apps/common/processes.hpp"
#include "apps/common/setup.hpp"
#include "apps/imdb/models.hpp"

namespace tessera::imdb {

using namespace detail;

namespace {

double learning_rate(const app::CommonOptions& common) {
  return common.learning_rate.value_or(1e-2);
}

/// Returns the state in the newest undamaged checkpoint; null if there is none.
Json newest_state(const std::string& folder) {
  const std::vector<CheckpointEntry> entries = list_checkpoints(folder);
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    try {
      // Check every byte: only an undamaged checkpoint can be restored.
      const CheckpointReader reader(entry->folder);
      reader.verify();
      return reader.state();
    } catch (const FileError&) {
      // An older one may be undamaged; restoring reports the damage.
    }
  }
  return nullptr;
}

/// Returns the options that must not change for a run to resume as if it had not stopped.
Json options_of(const TrainFlags& flags, const app::CommonOptions& common, const Corpus& corpus,
                const std::vector<Scheme>& schemes) {
  Json names = Json::array();
  for (const Scheme& scheme : schemes) names.push_back(scheme.name);
  return {{"schemes", names},
          {"reviews", corpus.reviews->size()},
          {"max_tokens", flags.max_tokens},
          {"validation", flags.validation},
          {"batch_size", common.batch_size},
          {"steps_per_epoch", common.steps_per_epoch ? Json(*common.steps_per_epoch) : Json()},
          {"learning_rate", learning_rate(common)},
          {"shuffle", common.shuffle},
          {"seed", common.seed},
          {"dtype", common.dtype}};
}

void check_same(const Json& current, const Json& saved) {
  if (!saved.is_object()) {
    throw ConfigError("--resume", "the newest checkpoint must be from imdb train", "another one",
                      "name the folder of an imdb train");
  }
  for (const auto& [name, value] : current.items()) {
    const Json saved_value = saved.value(name, Json());
    if (value == saved_value) continue;
    throw ConfigError("--resume", "the options must be those of the run that wrote the checkpoint",
                      str(name, " ", value.dump(), ", not ", saved_value.dump()),
                      "use the same options, or omit --resume to start from its weights");
  }
}

Phase phase_from_json(const Json& json, const JsonPath& path) {
  JsonObject object(json, path);
  Phase phase{object.take<std::string>("scheme"), object.take<std::string>("mesh"), {}};
  phase.history = History::from_json(object.take<Json>("history"), path.key("history"));
  return phase;
}

}  // namespace

TrainingRun::TrainingRun(const TrainFlags& flags, const app::CommonOptions& common,
                         const Corpus& corpus, std::vector<Scheme> schemes)
    : flags_(flags),
      common_(common),
      corpus_(corpus),
      schemes_(std::move(schemes)),
      folder_(flags.checkpoints.folder) {
  if (folder_.empty() && schemes_.size() == 1) return;
  const app::Setup setup = app::set_up(common_, {{"batch", 8}}, schemes_[0].layouts);
  const Mesh& mesh = setup.layouts.mesh();
  if (folder_.empty()) folder_ = temporary_.emplace(mesh).path();
  find_start(mesh);
}

void TrainingRun::find_start(const Mesh& mesh) {
  first_step_ = app::newest_step(mesh, folder_);
  if (!flags_.checkpoints.resume) return;
  // Rank 0 decides, since a file system may show processes different contents.
  const std::string text = broadcast_text(mesh, folder_, [&] {
    return is_first_rank(mesh) ? to_json_text(newest_state(folder_), -1) : "";
  });
  const Json state = parse_json(text, folder_);
  if (state.is_null()) {
    if (app::verbosity(common_) > 0) {
      std::cout << "No checkpoint in " << folder_ << " to resume from: starting anew" << std::endl;
    }
    return;
  }
  const JsonPath path(folder_ + ": state.extra");
  const Json extra = state.is_object() ? state.value("extra", Json()) : Json();
  check_same(options_of(flags_, common_, corpus_, schemes_),
             extra.is_object() ? extra.value("options", Json()) : Json());
  JsonObject run(extra, path);
  const auto finished = run.take<std::vector<Json>>("finished");
  for (size_t i = 0; i < finished.size(); ++i) {
    phases_.push_back(phase_from_json(finished[i], path.key("finished").index(i)));
  }
  first_phase_ = std::min(phases_.size(), schemes_.size() - 1);
  first_step_ = run.take<int64_t>("first_step");
  resumes_ = true;
}

void TrainingRun::train() {
  for (size_t i = first_phase_; i < schemes_.size(); ++i) train_phase(i);
}

void TrainingRun::make_model(const Scheme& scheme) {
  const app::Setup setup = app::set_up(common_, {{"batch", 8}}, scheme.layouts);
  mesh_ = describe_mesh(setup.layouts.mesh());
  model_ = sentiment_model();
  model_->compile({.optimizer = SGD(learning_rate(common_)),
                   .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                   .metrics = {"accuracy"},
                   .layouts = setup.layouts});
  show_model();
  model_->build({-1, corpus_.train.input_shapes()[0][0]});
}

/// Prints or writes what --summary, --plan and --plot-model ask for. Initializes no weights.
void TrainingRun::show_model() const {
  if (!common_.summary && !common_.plan && common_.plot_model.empty()) return;
  const StepPlan plan = (*model_)->plan(corpus_.train, {.batch_size = common_.batch_size});
  if (!app::is_first_process(common_)) return;
  if (common_.summary) model_->summary({.show_layout = true});
  if (common_.plan) std::cout << plan.to_string() << std::flush;
  if (!common_.plot_model.empty()) plot_model(model_->model(), common_.plot_model);
}

void TrainingRun::train_phase(size_t number) {
  make_model(schemes_[number]);
  app::CommonOptions common = common_;
  // With several schemes, each has a folder of events.
  if (!common.tensorboard.empty() && schemes_.size() > 1) {
    common.tensorboard += "/" + schemes_[number].name;
  }
  FitOptions options = app::fit_options(common);
  options.validation_data = corpus_.test;
  Checkpoint checkpoint(*model_);
  std::optional<CheckpointManager> manager;
  std::string from;
  if (!folder_.empty()) {
    manager.emplace(checkpoint, folder_, app::manager_options(flags_.checkpoints));
    if (!resumes_) from = manager->restore_latest({.weights_only = true}).value_or("");
    checkpoint.extra() = {{"options", options_of(flags_, common_, corpus_, schemes_)},
                          {"finished", finished()},
                          {"first_step", first_step_}};
    app::CheckpointFlags flags = flags_.checkpoints;
    flags.resume = resumes_;
    options.callbacks.push_back(app::TrainingCheckpoints(checkpoint, *manager, first_step_, flags));
  }
  if (app::verbosity(common_) > 0) {
    std::cout << "Scheme " << schemes_[number].name << " on mesh " << mesh_
              << (from.empty() ? "" : ", from the weights in " + from) << std::endl;
  }
  Phase phase{schemes_[number].name, mesh_, {}};
  phase.history = model_->fit(corpus_.train, options);
  first_step_ += (*model_)->optimizer()->steps();
  resumes_ = false;
  phases_.push_back(std::move(phase));
}

Json TrainingRun::finished() const {
  Json list = Json::array();
  for (const Phase& phase : phases_) {
    list.push_back(
        {{"scheme", phase.scheme}, {"mesh", phase.mesh}, {"history", phase.history.as_json()}});
  }
  return list;
}

int64_t TrainingRun::steps() const {
  int64_t count = 0;
  for (const Phase& phase : phases_) count += static_cast<int64_t>(phase.history.steps.size());
  return count;
}

}  // namespace tessera::imdb
