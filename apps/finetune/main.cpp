#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <optional>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>

#include "apps/common/checkpoints.hpp"
#include "apps/common/new_folder.hpp"
#include "apps/common/pretrained.hpp"
#include "apps/common/processes.hpp"
#include "apps/common/profiling.hpp"
#include "apps/common/run_app.hpp"
#include "apps/common/setup.hpp"
#include "apps/finetune/documents.hpp"
#include "apps/finetune/save.hpp"

namespace tessera::finetune {

using namespace detail;

namespace {

struct FinetuneFlags {
  std::string folder, data;
  int64_t lora = 0;
  std::optional<double> lora_alpha = std::nullopt;
  std::string lora_layers = ".*/attention/(query|value)";
  bool merge = false;
  int64_t length = 512;
  double validation_split = 0;
  double weight_decay = 0.01;
  std::string schedule = "cosine";
  double warmup = 0.03;
  int64_t accumulation = 1;
  std::string save = "finetuned";
  app::CheckpointFlags checkpoints = {};
};

void add_finetune_options(app::AppOptions& options, FinetuneFlags& flags) {
  options.add_argument("FOLDER", "language model with its tokenizer, of Hugging Face's programs",
                       flags.folder);
  options.add_argument("DATA",
                       "JSON Lines file of documents, a JSON object a line: {\"text\"}, "
                       "{\"prompt\", \"completion\"} "
                       "or {\"messages\": [{\"role\", \"content\"}]}",
                       flags.data);
  options.common().batch_size = 8;
  options.common().epochs = 1;
  options.add({"lora", "Adapters", "rank of adapters to train; 0: all weights are trained",
               app::integer(flags.lora, 0)});
  options.add({"lora-alpha", "Adapters", "factor of the adapters times their rank; by default it",
               app::positive_number(flags.lora_alpha)});
  options.add({"lora-layers", "Adapters", "RE2 expression for the layers that have adapters",
               app::text(flags.lora_layers, "EXPR")});
  options.add({"merge", "Adapters",
               "also add the adapters to the weights and write the whole model; the adapters are "
               "in its folder adapter/",
               app::toggle(flags.merge)});
  options.add({"length", "Data", "tokens of a row, in which documents are packed",
               app::integer(flags.length, 1)});
  options.add({"validation-split", "Data",
               "fraction of the documents to evaluate on after each epoch",
               app::fraction(flags.validation_split)});
  options.add({"weight-decay", "Training", "decoupled weight decay of AdamW",
               app::fraction(flags.weight_decay)});
  options.add({"schedule", "Training", "how the learning rate changes: to 0 or not at all",
               app::choice(flags.schedule, {"cosine", "constant"})});
  options.add({"warmup", "Training",
               "fraction of the steps in which the learning rate rises from 0, before the cosine",
               app::fraction(flags.warmup)});
  options.add({"gradient-accumulation-steps", "Training",
               "batches whose gradients are averaged into one update",
               app::integer(flags.accumulation, 1)});
  app::add_checkpoint_options(options, flags.checkpoints);
  options.add({"save", "Output", "new folder for the adapters, or for the whole model",
               app::text(flags.save, "FOLDER")});
  app::add_dtype_option(options);
}

void check_finetune_flags(const FinetuneFlags& flags) {
  if (flags.lora == 0 && (flags.merge || flags.lora_alpha)) {
    throw ConfigError(flags.merge ? "--merge" : "--lora-alpha", "adapters, with --lora", "--lora 0",
                      "add --lora RANK, or leave it out");
  }
}

/// Returns the learning rate for a number of updates.
LearningRate learning_rate_of(const FinetuneFlags& flags, double rate, int64_t updates) {
  if (flags.schedule == "constant") return rate;
  const double warmup = std::floor(static_cast<double>(updates) * flags.warmup);
  const double decay = std::max(static_cast<double>(updates) - warmup, 1.0);
  if (warmup < 1) return CosineDecay(rate, decay);
  return CosineDecay(0, decay, {.warmup_target = rate, .warmup_steps = warmup});
}

OptimizerHandle optimizer_of(const FinetuneFlags& flags, const app::CommonOptions& common,
                             int64_t rows) {
  int64_t batches = (rows + common.batch_size - 1) / common.batch_size;
  if (common.steps_per_epoch) batches = *common.steps_per_epoch;
  const int64_t updates = (common.epochs * batches + flags.accumulation - 1) / flags.accumulation;
  const double rate = common.learning_rate.value_or(flags.lora > 0 ? 2e-4 : 2e-5);
  AdamWOptions options{.weight_decay = flags.weight_decay, .global_clipnorm = 1};
  if (flags.accumulation > 1) options.gradient_accumulation_steps = flags.accumulation;
  return AdamW(learning_rate_of(flags, rate, updates), options);
}

/// The tokens of the file as rows.
struct PackedFile {
  TokenizedFile file;
  std::optional<TensorDataset> training, validation;
};

PackedFile read_data(const FinetuneFlags& flags, const Tokenizer& tokenizer, const Mesh& mesh) {
  PackedFile data;
  collectively(mesh, flags.data, [&] {
    const std::vector<int64_t> ends = pretrained_stop_tokens(flags.folder);
    const std::optional<int64_t> end = ends.empty() ? std::nullopt : std::optional(ends.front());
    data.file = tokenize_file(flags.data, tokenizer, end, flags.validation_split);
    const PackingOptions packing{.length = flags.length, .padding_id = end.value_or(0)};
    data.training = pack_documents(data.file.training, packing);
    if (!data.file.validation.empty()) {
      data.validation = pack_documents(data.file.validation, packing);
    }
  });
  return data;
}

std::string counted(int64_t count, const char* what) {
  return str(count, ' ', what, count == 1 ? "" : "s");
}

void print_data(const PackedFile& data, const FinetuneFlags& flags) {
  const TokenizedFile& file = data.file;
  std::cout << flags.data << ": " << counted(std::ssize(file.training), "document") << " in "
            << counted(data.training->size(), "row") << " of " << flags.length << " tokens, "
            << file.learned << " of them learned";
  if (data.validation) std::cout << "; " << file.validation.size() << " held out";
  if (file.left_out > 0) std::cout << "; " << file.left_out << " without two tokens left out";
  std::cout << std::endl;
}

void show_model(const ModelHandle& model, const DatasetHandle& data,
                const app::CommonOptions& common) {
  if (!common.summary && !common.plan && common.plot_model.empty()) return;
  const StepPlan plan = model.plan(data, {.batch_size = common.batch_size});
  if (!app::is_first_process(common)) return;
  if (common.summary) model.summary({.expand_nested = true, .show_layout = true, .plan = plan});
  if (common.plan) std::cout << plan.to_string() << std::flush;
  if (!common.plot_model.empty()) plot_model(model.model(), common.plot_model);
}

History fit(const ModelHandle& model, const PackedFile& data, const FinetuneFlags& flags,
            const app::CommonOptions& common) {
  FitOptions options = app::fit_options(common);
  if (!flags.checkpoints.folder.empty()) {
    options.callbacks.push_back(std::make_shared<app::RunCheckpoints>(model, flags.checkpoints));
  }
  const StopSignals signals;
  if (data.validation) options.validation_data = *data.validation;
  return model.fit(*data.training, options);
}

void write_adapters(const ModelHandle& model, const FinetuneFlags& flags,
                    const app::NewFolder& folder) {
  save_pretrained_adapters(model, flags.folder,
                           flags.merge ? path_in(folder.path(), "adapter") : folder.path());
}

void save(const ModelHandle& model, const FinetuneFlags& flags, app::NewFolder& folder) {
  if (flags.lora > 0) write_adapters(model, flags, folder);
  if (flags.merge) model.merge_lora();
  if (flags.lora == 0 || flags.merge) save_whole_model(model, flags.folder, folder.path());
  folder.commit();
}

void print_end(const History& history, const PackedFile& data, const FinetuneFlags& flags,
               double seconds) {
  const bool has_validation = data.validation.has_value();
  const double tokens = static_cast<double>(data.training->size() * flags.length) *
                        static_cast<double>(history.epoch.size());
  std::printf("loss %.4f", history.at("loss").back());
  if (has_validation) std::printf(", validation loss %.4f", history.at("val_loss").back());
  std::printf(", %.1f s, %.0f tokens/s\n%s in %s\n", seconds, tokens / seconds,
              flags.lora > 0 && !flags.merge ? "adapters" : "model", flags.save.c_str());
}

int finetune_main(int argc, char** argv) {
  app::AppOptions options(
      "finetune",
      "Trains a pretrained language model on texts, completions or chats: adapters (LoRA) or all "
      "weights.",
      {"data-dir", "train-size", "test-size", "dtype"});
  FinetuneFlags flags;
  add_finetune_options(options, flags);
  if (!options.parse(argc, argv)) return 0;
  check_finetune_flags(flags);
  app::complete_checkpoint_options(flags.checkpoints);
  const app::CommonOptions& common = options.common();
  const app::Setup setup = app::set_up(common, {{"batch", 1}});
  const Mesh mesh = setup.layouts.mesh();
  const bool prints = app::verbosity(common) > 0;
  if (prints) std::cout << "mesh " << app::mesh_text(mesh) << std::endl;
  app::NewFolder folder(mesh, "--save", flags.save);

  const Tokenizer tokenizer = app::pretrained_tokenizer(mesh, flags.folder);
  const PackedFile data = read_data(flags, tokenizer, mesh);
  if (prints) print_data(data, flags);
  const ModelHandle model =
      load_pretrained(flags.folder, {.layouts = setup.layouts, .documents = true});
  app::check_vocabulary(model, tokenizer, flags.folder);
  if (flags.lora > 0) {
    model.enable_lora(flags.lora_layers, flags.lora,
                      {.alpha = flags.lora_alpha, .as_matrix = true});
    // Adapters that cannot be saved fail here, not after training.
    write_adapters(model, flags, folder);
  }
  model.compile({.optimizer = optimizer_of(flags, common, data.training->size()),
                 .loss = SparseCategoricalCrossentropy(
                     {.from_logits = true, .reduction = Reduction::mean_with_sample_weight}),
                 .layouts = setup.layouts});
  show_model(model, *data.training, common);

  app::Profiling profiling(common);
  const auto start = std::chrono::steady_clock::now();
  const History history = fit(model, data, flags, common);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  profiling.stop();
  const bool first = app::is_first_process(common);
  if (first && !common.history.empty()) history.save(common.history);
  if (first && !common.plot.empty()) save_plot(history, common.plot);
  save(model, flags, folder);
  const std::string profile = profiling.finish();
  if (prints && !history.epoch.empty()) {
    print_end(history, data, flags, elapsed.count());
    std::cout << profile << std::flush;
  }
  return 0;
}

}  // namespace

}  // namespace tessera::finetune

int main(int argc, char** argv) {
  return tessera::app::run_app(argc, argv, tessera::finetune::finetune_main);
}
