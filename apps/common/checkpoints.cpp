#include "apps/common/checkpoints.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/io/format/checkpoint_folder.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera::app {

using namespace detail;

void add_checkpoint_options(AppOptions& options, CheckpointFlags& flags) {
  options.add({"checkpoint-dir", "Checkpoints",
               "folder for checkpoints; training starts from the weights of its newest one",
               folder_name(flags.folder)});
  options.add({"save-every", "Checkpoints",
               "steps between checkpoints; by default one checkpoint per epoch",
               integer(flags.save_every, 1)});
  options.add({"resume", "Checkpoints", "resume the run that wrote the newest checkpoint",
               toggle(flags.resume)});
  options.add({"strict", "Checkpoints",
               "fail if the newest checkpoint is damaged, instead of starting from an older one",
               toggle(flags.strict)});
  options.add(
      {"save-failure", "Checkpoints",
       "whether a checkpoint that cannot be written ends the run or is reported and left out",
       choice(flags.save_failure, {"raise", "warn"})});
}

void complete_checkpoint_options(CheckpointFlags& flags) {
  // The restart counters of launch and torchrun.
  const bool elastic = std::getenv("TESSERA_MEMBERS") != nullptr;
  for (const char* name : {"TESSERA_RESTART", "TORCHELASTIC_RESTART_COUNT"}) {
    const char* restarts = std::getenv(name);
    const bool restarted = restarts && std::atoi(restarts) > 0 && !elastic;
    if (restarted && !flags.folder.empty()) flags.resume = true;
  }
  const auto check = [&](const char* flag, bool given, const char* need) {
    if (!given || !flags.folder.empty()) return;
    throw ConfigError(flag, need, "no --checkpoint-dir", "add --checkpoint-dir FOLDER");
  };
  check("--resume", flags.resume, "needs a folder of checkpoints");
  check("--strict", flags.strict, "needs a folder of checkpoints");
  check("--save-every", flags.save_every.has_value(), "needs a folder for the checkpoints");
  check("--save-failure", flags.save_failure != "raise", "needs a folder for the checkpoints");
}

CheckpointManagerOptions manager_options(const CheckpointFlags& flags) {
  return {.strict = flags.strict,
          .save_failure = flags.save_failure == "warn" ? SaveFailure::warn : SaveFailure::raise};
}

int64_t newest_step(const Mesh& mesh, const std::string& folder) {
  const std::string text = broadcast_text(mesh, folder, [&]() -> std::string {
    if (!is_first_rank(mesh)) return "";
    const std::vector<CheckpointEntry> entries = list_checkpoints(folder);
    return entries.empty() ? "0" : str(entries.back().step);
  });
  return std::stoll(text);
}

void TrainingCheckpoints::on_train_begin() {
  if (flags_.resume) resume();
}

void TrainingCheckpoints::resume() {
  const std::optional<std::string> from = manager_->restore_latest();
  const Json& extra = checkpoint_.extra();
  if (from && extra.is_object()) first_step_ = extra.value("first_step", first_step_);
  if (params().verbose > 0) {
    print(from ? "Resuming from " + *from : "No checkpoint to resume from: starting anew");
  }
}

void TrainingCheckpoints::on_train_batch_end(int64_t batch, const Logs&) {
  if (flags_.save_every && (batch + 1) % *flags_.save_every == 0) save();
}

std::optional<int64_t> TrainingCheckpoints::batches_to_weights() {
  if (!flags_.save_every) return std::nullopt;
  return *flags_.save_every - model().fit_position().step % *flags_.save_every;
}

void TrainingCheckpoints::on_epoch_end(int64_t, Logs&) { save(); }

void TrainingCheckpoints::on_interrupt() {
  const std::string folder = save();
  manager_->wait();
  if (params().verbose > 0 && !folder.empty()) print("Saved " + folder);
}

std::string TrainingCheckpoints::save() {
  has_saved_ = true;
  return manager_->save(first_step_ + model().optimizer()->steps());
}

void RunCheckpoints::open() {
  // Those of the present processes, which save together.
  own_manager_.reset();
  checkpoint_ = Checkpoint(model_);
  own_manager_.emplace(checkpoint_, flags_.folder, manager_options(flags_));
  manager_ = &*own_manager_;
  if (params().restored_from_memory) {
    set_first_step(first_step_);
  } else {
    read();
  }
}

void RunCheckpoints::read() {
  // After a loss, what this run has saved comes before what it began with.
  const std::vector<std::string> saved =
      gather_texts(checkpoint_.mesh(), "saved", [this] { return has_saved_ ? "yes" : "no"; });
  const bool resumes = flags_.resume || std::find(saved.begin(), saved.end(), "yes") != saved.end();
  set_first_step(newest_step(checkpoint_.mesh(), flags_.folder));
  if (resumes) {
    resume();
  } else {
    manager_->restore_latest({.weights_only = true});
  }
}

void RunCheckpoints::restore(const Json& state, const NamedTensors&) {
  set_first_step(state.at("first_step").get<int64_t>());
}

void RunCheckpoints::set_first_step(int64_t step) {
  first_step_ = step;
  checkpoint_.extra() = {{"first_step", first_step_}};
}

}  // namespace tessera::app
