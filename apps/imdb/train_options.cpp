#include "apps/imdb/train_options.hpp"

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/text.hpp>

namespace tessera::imdb {

bool parse_train_options(app::AppOptions& options, TrainFlags& flags, int argc,
                         const char* const* argv) {
  options.common().batch_size = 64;
  options.common().epochs = 2;
  options.add({"scheme", "Model",
               "how it is cut up; all: data, model and spatial, each from where the last one "
               "stopped. all if absent, unless --mesh or --layouts are given",
               app::choice(flags.scheme, {"data", "model", "spatial", "all"})});
  options.add({"max-tokens", "Model", "words of the vocabulary",
               app::integer(flags.max_tokens, 2, 1'000'000)});
  options.add({"validation", "Training", "evaluate on the test split after every epoch",
               app::toggle(flags.validation)});
  options.add({"checkpoint-dir", "Checkpoints",
               "folder for checkpoints; training begins with the weights of its newest one",
               app::folder_name(flags.checkpoint_dir)});
  options.add({"save-every", "Checkpoints", "steps between checkpoints; an epoch's if absent",
               app::integer(flags.save_every, 1)});
  options.add({"resume", "Checkpoints",
               "go on with the run that wrote the newest checkpoint, where it stopped",
               app::toggle(flags.resume)});
  options.add({"export", "Output", "folder for the trained model, as predict and serve take it",
               app::folder_name(flags.export_folder)});
  if (!options.parse(argc, argv)) return false;
  if (flags.resume && flags.checkpoint_dir.empty()) {
    throw ConfigError("--resume", "needs the checkpoints to go on from", "no --checkpoint-dir",
                      "add --checkpoint-dir FOLDER");
  }
  if (flags.save_every && flags.checkpoint_dir.empty()) {
    throw ConfigError("--save-every", "needs a folder for the checkpoints", "no --checkpoint-dir",
                      "add --checkpoint-dir FOLDER");
  }
  return true;
}

std::vector<Scheme> phases_of(const TrainFlags& flags, const app::CommonOptions& common) {
  const bool own = !common.mesh.empty() || common.devices || !common.layouts.empty();
  if (flags.scheme.empty() && own) return {{"own", {}}};
  if (flags.scheme.empty() || flags.scheme == "all") {
    if (!own) return schemes();
    throw ConfigError("--scheme", "the three schemes have meshes and layouts of their own",
                      "all with --mesh, --devices or --layouts",
                      "name one scheme, or leave them out");
  }
  if (!common.layouts.empty()) {
    throw ConfigError("--scheme", "a scheme is a layouts file", flags.scheme + " with --layouts",
                      "give one of the two");
  }
  const auto found = std::find_if(schemes().begin(), schemes().end(), [&](const Scheme& scheme) {
    return scheme.name == flags.scheme;
  });
  return {*found};
}

}  // namespace tessera::imdb
