#include <iostream>

#include "apps/common/app_options.hpp"
#include "apps/common/processes.hpp"
#include "apps/common/setup.hpp"
#include "apps/gpt/generator.hpp"
#include "apps/gpt/saved_model.hpp"
#include "apps/gpt/train.hpp"

namespace tessera::gpt {

int generate_main(int argc, const char* const* argv) {
  app::AppOptions options(
      "gpt generate", "Continues texts with a trained model.",
      {"data-dir", "train-size", "test-size", "batch-size", "epochs", "steps-per-epoch",
       "learning-rate", "shuffle", "dtype", "history", "plot", "plot-model", "tensorboard",
       "profile", "summary", "plan", "verbose"});
  std::string folder;
  std::vector<std::string> texts;
  Sampling sampling;
  options.add_argument("DIR", "folder that gpt --save wrote", folder);
  options.add_arguments("TEXT", "texts to continue; after -- they may begin with a dash", texts);
  add_sampling_options(options, sampling);
  if (!options.parse(argc, argv)) return 0;
  app::CommonOptions& common = options.common();
  sampling.seed = common.seed;
  const SavedModel saved = read_model_folder(folder);
  common.dtype = saved.dtype;
  const app::Setup setup = app::set_up(common, {{"batch", 1}});
  const Functional model = gpt_model(saved.size);
  model.compile({.layouts = setup.layouts});
  load_weights_of(model, saved);
  const Generator generator(model, saved.vocabulary, saved.size.length);
  if (texts.empty()) texts = {"this movie is"};
  for (const std::string& text : texts) {
    const std::string all = generator.generate(text, sampling);
    if (app::is_first_process(common)) std::cout << all << std::endl;
  }
  return 0;
}

}  // namespace tessera::gpt
