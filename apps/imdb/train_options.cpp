#include "apps/imdb/train_options.hpp"

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::imdb {

bool parse_train_options(app::AppOptions& options, TrainFlags& flags, int argc,
                         const char* const* argv) {
  options.common().batch_size = 64;
  options.common().epochs = 2;
  options.add({"scheme", "Model",
               "how the model is sharded; all: data, model and spatial in turn, each continuing "
               "from the last; all by default, unless --mesh or --layouts are given",
               app::choice(flags.scheme, {"data", "model", "spatial", "all"})});
  options.add(
      {"max-tokens", "Model", "vocabulary size", app::integer(flags.max_tokens, 2, 1'000'000)});
  options.add({"validation", "Training", "evaluate on the test split after every epoch",
               app::toggle(flags.validation)});
  app::add_checkpoint_options(options, flags.checkpoints);
  options.add({"export", "Output", "folder for the trained model, which predict and serve read",
               app::folder_name(flags.export_folder)});
  if (!options.parse(argc, argv)) return false;
  app::complete_checkpoint_options(flags.checkpoints);
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
    throw ConfigError("--scheme", "a scheme has its own layouts", flags.scheme + " with --layouts",
                      "give only one of the two");
  }
  const auto found = std::find_if(schemes().begin(), schemes().end(), [&](const Scheme& scheme) {
    return scheme.name == flags.scheme;
  });
  return {*found};
}

}  // namespace tessera::imdb
