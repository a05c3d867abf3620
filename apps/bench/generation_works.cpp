#include "apps/bench/generation_works.hpp"

#include <algorithm>
#include <memory>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/base/json.hpp>

#include "apps/bench/compare.hpp"
#include "apps/bench/timing.hpp"
#include "apps/bench/training_steps.hpp"

namespace tessera::bench {

using namespace detail;

namespace {

ModelHandle llama(const GenerationWork& work, const LayoutMap& layouts) {
  const Input ids({-1}, {.dtype = "int64"});
  const ReversibleEmbedding tokens(work.words, work.width);
  SymbolicTensor x = tokens(ids);
  for (int64_t block = 0; block < work.blocks; ++block) {
    x = TransformerBlock({.num_heads = work.heads,
                          .hidden_dim = work.hidden,
                          .num_key_value_heads = work.shared_heads,
                          .norm = BlockNorm::rms,
                          .activation = "silu",
                          .gated = true,
                          .use_bias = false,
                          .rotary = ops::RotaryOptions{},
                          .use_causal_mask = true})(x);
  }
  const Functional model({ids}, {tokens.reversed("logits")(RMSNormalization()(x))});
  model.compile({.optimizer = Adam(1e-4),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .layouts = layouts});
  return model;
}

const GenerationWork& find_work(const std::string& name) {
  const std::vector<GenerationWork>& all = generation_works();
  const auto found = std::find_if(all.begin(), all.end(), [&](const GenerationWork& work) {
    return name == "generate_" + work.name || name == "train_" + work.name;
  });
  if (found != all.end()) return *found;
  throw ConfigError("bench compare-work", "the work is one of generation_works()", in_quotes(name),
                    "use bench compare --work generate");
}

std::vector<std::string> peer_arguments(const GenerationWork& work) {
  std::vector<std::string> texts;
  for (const int64_t size : {work.blocks, work.width, work.heads, work.shared_heads, work.hidden,
                             work.words, work.prompt, work.tokens, work.rows, work.length}) {
    texts.push_back(std::to_string(size));
  }
  return texts;
}

}  // namespace

const std::vector<GenerationWork>& generation_works() {
  static const std::vector<GenerationWork> all = {
      {"small", "Llama 2 x 64", 2, 64, 4, 4, 256, 1000, 300, 64, 16, 128},
      {"smol", "Llama 30 x 576, 49,152 words", 30, 576, 9, 3, 1536, 49152, 16, 16, 2, 128}};
  return all;
}

TimedWork generation_work(const WorkFlags& flags) {
  const GenerationWork& work = find_work(flags.work);
  const ModelHandle model = llama(work, LayoutMap(mesh_of(flags)));
  const std::vector<TokenIds> prompt = {TokenIds(size_t(work.prompt), 7)};
  const GenerateOptions options{.max_new_tokens = work.tokens, .check_model = false};
  return [=](int64_t count) {
    std::vector<double> taken;
    for (int64_t i = 0; i < count; ++i) {
      taken.push_back(1e3 * seconds_of([&] { generate(model, prompt, options); }));
    }
    return milliseconds(taken);
  };
}

TimedWork language_training_work(const WorkFlags& flags) {
  const GenerationWork& work = find_work(flags.work);
  const LayoutMap layouts(mesh_of(flags));
  const at::Tensor words = at::arange(work.rows * (work.length + 1))
                               .mul(7919)
                               .remainder(work.words)
                               .view({work.rows, work.length + 1});
  const TensorDataset data(words.slice(1, 0, work.length), words.slice(1, 1));
  return stepping(std::make_shared<TrainingSteps>(llama(work, layouts), layouts, data, work.rows));
}

void compare_generate(CompareRun& run) {
  for (const GenerationWork& work : generation_works()) {
    for (const std::string kind : {"generate", "train"}) {
      const std::string title =
          kind == "train" ? str("training step of ", work.rows, " x ", work.length, " words, ")
                          : str(work.tokens, " tokens behind ", work.prompt, ", ");
      std::vector<Contender> all = {own_contender("own", "ours", {kind + "_" + work.name})};
      std::vector<std::string> arguments = peer_arguments(work);
      arguments.insert(arguments.begin(), kind);
      run.add_peer(all, "transformers", "transformers", "", "transformers_llama.py", arguments);
      const Figures figures =
          take_turns(all, {.rounds = run.rounds, .steps = std::max<int64_t>(run.steps / 4, 2)});
      run.comparison.add_own(title + work.title, figures.at("own"));
      run.add_other(figures, "own", "transformers", 1.0);
    }
  }
}

}  // namespace tessera::bench
