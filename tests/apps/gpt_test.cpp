#include "tests/apps/gpt_sample.hpp"

#include <filesystem>
#include <map>
#include <numeric>
#include <set>

#include <ATen/ATen.h>

#include <tessera/framework/comm/comm_log.hpp>

#include "apps/gpt/corpus.hpp"
#include "apps/gpt/generator.hpp"
#include "tests/apps/gpt_layouts.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/files.hpp"
#include "tests/support/program.hpp"
#include "tests/support/seed_scope.hpp"

namespace gpt_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::gpt;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

/// Nothing divides: 6 heads of 2 keys and values, 40 words, a vocabulary of 203.
ModelSize odd_size(bool pre_norm) {
  return {.blocks = 4, .heads = 6, .kv_heads = 2, .head_dim = 4, .width = 24, .hidden = 20,
          .length = 40, .vocabulary = 203, .dropout = 0, .pre_norm = pre_norm, .tied = pre_norm};
}

/// Losses of some steps.
std::vector<double> losses(const ModelSize& size, const LayoutMap& layouts, int64_t steps,
                           const std::string& dtype = "float64") {
  const DTypeScope digits(dtype);
  const SeedScope seed(7);
  const Functional model = gpt_model(size);
  model.compile(gpt_training(layouts));
  const at::Tensor rows = gpt_words(24, size);
  std::vector<double> all;
  for (int64_t step = 0; step < steps; ++step) {
    const Logs logs = model.train_on_batch(gpt_batch(rows, step % 4 * 6, 6));
    all.push_back(find_value(logs, "loss").value());
  }
  return all;
}

/// The collectives of one training step in a block, "all_reduce model attention".
std::map<std::string, int64_t> collectives_in(const std::string& block, const Functional& model,
                                              const LayoutMap& layouts, const ModelSize& size) {
  model.compile(gpt_training(layouts));
  const Examples all = gpt_batch(gpt_words(8, size), 0, 8);
  const StepPlan plan = model.plan(TensorDataset(all), {.batch_size = 8});
  // Those of weights are sums of gradients, once each.
  std::set<std::string> weights;
  for (const Variable& weight : model.weights()) weights.insert(weight.path());
  std::map<std::string, int64_t> found;
  for (const CommEntry& entry : plan.collectives) {
    if (!entry.place.starts_with(block + "/") || weights.contains(entry.place)) continue;
    ++found[to_string(entry.op) + " " + entry.dims];
  }
  return found;
}

}  // namespace

TEST_CASE("gpt: every layouts file trains as one device does") {
  struct Scheme {
    std::string file;
    std::vector<std::string> meshes;
    int64_t experts = 0;
  };
  const std::vector<Scheme> schemes = {
      {"data", {"batch=4", "batch=3", "batch=5"}},
      {"tensor", {"batch=2,model=4", "batch=1,model=3", "batch=1,model=5"}},
      {"vocab", {"batch=2,model=4", "batch=1,model=3", "batch=1,model=5"}},
      {"sequence", {"batch=2,model=4", "batch=1,model=3", "batch=1,model=5"}},
      {"ulysses", {"batch=2,model=4", "batch=1,model=3", "batch=1,model=5"}},
      {"ring", {"batch=2,model=4", "batch=1,model=3", "batch=1,model=5"}},
      {"context", {"batch=2,model=4", "batch=1,model=3", "batch=1,model=5"}},
      {"fsdp", {"batch=8", "batch=3", "batch=5"}},
      {"tensor_fsdp", {"batch=2,fsdp=2,model=2", "batch=1,fsdp=3,model=1"}},
      {"tensor_2d", {"row=2,col=2", "row=3,col=1", "row=1,col=5"}},
      {"tensor_2p5d", {"depth=2,row=2,col=2", "depth=1,row=1,col=3"}},
      {"tensor_3d", {"x=2,y=2,z=2", "x=1,y=3,z=1", "x=1,y=1,z=5"}},
      {"experts", {"batch=2,expert=4", "batch=1,expert=3", "batch=2,expert=2"}, 4},
  };
  std::set<std::string> there, listed;
  for (const auto& entry : std::filesystem::directory_iterator(layouts_folder())) {
    there.insert(entry.path().stem().string());
  }
  for (const bool pre_norm : {false, true}) {
    std::map<int64_t, std::vector<double>> wholes;
    for (const Scheme& scheme : schemes) {
      listed.insert(scheme.file);
      ModelSize size = odd_size(pre_norm);
      size.experts = scheme.experts;
      std::vector<double>& whole = wholes[scheme.experts];
      if (whole.empty()) whole = losses(size, LayoutMap(create_mesh({{"batch", 1}})), 30);
      REQUIRE(whole.back() < whole.front());
      for (const std::string& mesh : scheme.meshes) {
        CAPTURE(scheme.file, mesh, pre_norm);
        const std::vector<double> cut =
            losses(size, layouts_of(scheme.file, parse_mesh_dims(mesh)), 30);
        double worst = 0;
        for (size_t i = 0; i < cut.size(); ++i) {
          worst = std::max(worst, std::abs(cut[i] / whole[i] - 1));
        }
        CHECK(worst < 1e-12);
      }
    }
  }
  CHECK(listed == there);
}

TEST_CASE("gpt: every layouts file trains as one device does, float32") {
  const ModelSize size = odd_size(false);
  const std::vector<double> whole =
      losses(size, LayoutMap(create_mesh({{"batch", 1}})), 30, "float32");
  for (const std::string& name : layouts_names()) {
    CAPTURE(name);
    // Which expert is chosen hangs on the last digit, at times, and then losses part.
    if (experts_of(name) > 0) continue;
    const std::vector<double> cut = losses(size, layouts_of(name), 30, "float32");
    double worst = 0;
    for (size_t i = 0; i < cut.size(); ++i) {
      worst = std::max(worst, std::abs(cut[i] / whole[i] - 1));
    }
    CHECK(worst < 1e-5);
  }
}

TEST_CASE("gpt: a tensor-parallel block costs two all-reduces forward and two backward") {
  for (const bool pre_norm : {false, true}) {
    CAPTURE(pre_norm);
    const ModelSize size = odd_size(pre_norm);
    const LayoutMap layouts = layouts_of("tensor", {{"batch", 2}, {"model", 2}});
    const auto found = collectives_in("block_2", gpt_model(size), layouts, size);
    CAPTURE(found);
    CHECK(found.size() == 1);
    CHECK(found.at("all_reduce model") == 4);
  }
}

TEST_CASE("gpt: a block's experts cost two all-to-alls forward and two backward") {
  ModelSize size = odd_size(true);
  size.experts = 4;
  const LayoutMap layouts = layouts_of("experts", {{"batch", 2}, {"expert", 4}});
  const auto found = collectives_in("block_2", gpt_model(size), layouts, size);
  CHECK(found == std::map<std::string, int64_t>{{"all_to_all expert", 4}});
}

TEST_CASE("gpt: sums in parts of the sequence, and heads in place of steps, are what they cost") {
  using Counts = std::map<std::string, int64_t>;
  for (const bool pre_norm : {false, true}) {
    CAPTURE(pre_norm);
    const ModelSize size = odd_size(pre_norm);
    const auto found = [&](const std::string& file) {
      const LayoutMap layouts = layouts_of(file, {{"batch", 2}, {"model", 2}});
      return collectives_in("block_2", gpt_model(size), layouts, size);
    };
    CHECK(found("sequence") == Counts{{"all_gather model", 4}, {"reduce_scatter model", 4}});
    CHECK(found("ulysses") == Counts{{"all_to_all model", 8}});
    // Keys and values go round once, their gradients twice; halves are swapped in and out.
    CHECK(found("context") == Counts{{"all_gather model", 2}, {"reduce_scatter model", 2}});
    CHECK(found("ring") == Counts{{"collective_permute model", 1 + 2 + 1 + 2 + 2}});
  }
}

TEST_CASE("gpt: nothing that has the vocabulary's axis is communicated where it is cut") {
  const ModelSize size = odd_size(false);
  const LayoutMap layouts = layouts_of("vocab", {{"batch", 2}, {"model", 2}});
  const Functional model = gpt_model(size);
  model.compile(gpt_training(layouts));
  const Examples all = gpt_batch(gpt_words(8, size), 0, 8);
  int64_t reductions = 0;
  for (const CommEntry& entry :
       model.plan(TensorDataset(all), {.batch_size = 8}).collectives) {
    if (entry.place.starts_with("block_") || entry.dims == "batch") continue;
    CAPTURE(to_string(entry.op), entry.place, entry.bytes);
    // A number for each word of a device's rows at most, or the features of each.
    const int64_t words = 4 * size.length;
    CHECK(entry.bytes <= 8 * words * size.width);
    reductions += entry.bytes <= 8 * words;
  }
  CHECK(reductions == 3);  // of the largest logit, the sum and the label's
}

TEST_CASE("gpt: with keys and values kept, words are those of the whole text") {
  const DTypeScope doubles("float64");
  for (const bool pre_norm : {false, true}) {
    ModelSize size = odd_size(pre_norm);
    size.length = 12;
    const std::vector<std::string> vocabulary = gpt_vocabulary(size);
    std::set<std::string> texts;
    for (const std::string file : {"", "tensor", "vocab", "sequence", "ulysses", "ring"}) {
      CAPTURE(pre_norm, file);
      const LayoutMap layouts = file.empty() ? LayoutMap(create_mesh({{"batch", 1}}))
                                             : layouts_of(file, {{"batch", 1}, {"model", 3}});
      const SeedScope seed(11);
      const Functional model = gpt_model(size);
      model.compile(gpt_training(layouts));
      const Generator generator(model, vocabulary, size.length, layouts);
      std::vector<int64_t> words = {5, 80, 7};
      Generator::Seen seen;
      // Behind the twelfth word the model sees the last twelve.
      while (words.size() < 15) {
        const at::Tensor whole = generator.logits_behind(words);
        const at::Tensor kept = generator.logits_behind(words, seen);
        CHECK(((kept - whole).abs().max() / whole.abs().max()).item<double>() < 1e-12);
        words.push_back(whole.argmax().item<int64_t>());
      }
      texts.insert(generator.continued("w9 w10 w11", {.words = 12}));
    }
    CHECK(texts.size() == 1);
  }
}

TEST_CASE("gpt: trains, saves, and goes on with texts") {
  const TempFolder folder;
  const std::vector<std::pair<std::string, std::string>> synthetic = {
      {"TESSERA_DATA", ""}, {"XDG_CACHE_HOME", folder.path()}};
  const auto gpt = [&](std::vector<std::string> words) {
    return run_program(app_path("gpt"), words, synthetic);
  };
  const std::vector<std::string> small = {
      "--width", "16",  "--hidden", "16",     "--head-dim", "8",   "--length",     "12",
      "--epochs", "2", "--words",  "4",      "--train-size", "64", "--batch-size", "16",
      "--vocabulary", "50", "--mesh", "batch=2", "--save", folder / "model", "--history",
      folder / "h.json"};
  const ProgramRun run = gpt(small);
  CAPTURE(run.out, run.err);
  REQUIRE(run.exit_code == 0);
  CHECK_THAT(run.out, Contains("generated text:\nthis movie is "));
  CHECK_THAT(run.out, Contains("on 64 reviews (imdb (synthetic)), 2 epochs"));
  const auto history = read_json_file(folder / "h.json").at("history").at("loss");
  CHECK(history[1].get<double>() < history[0].get<double>());

  const std::vector<std::string> generate = {"generate", folder / "model", "--words", "6",
                                             "the film", "a bad one"};
  const ProgramRun text = gpt(generate);
  CAPTURE(text.out, text.err);
  REQUIRE(text.exit_code == 0);
  CHECK_THAT(text.out, Contains("the film "));
  CHECK_THAT(text.out, Contains("\na bad one "));
  std::vector<std::string> cut = generate;
  cut.insert(cut.end() - 2, {"--layouts", (layouts_folder() / "vocab.json").string(), "--mesh",
                             "batch=1,model=2"});
  CHECK(gpt(cut).out == text.out);

  const ProgramRun plan = gpt({"--size", "22b", "--mesh", "batch=2", "--train-size", "64", "--plan",
                               "--batch-size", "2", "--epochs", "0"});
  CHECK(plan.exit_code == 0);
  CHECK_THAT(plan.out, Contains("block_48"));

  const ProgramRun none = gpt({"generate", folder / "none"});
  CHECK(none.exit_code == 1);
  CHECK_THAT(none.err, Contains("gpt.json"));
  const ProgramRun uneven = gpt({"--heads", "3", "--head-dim", "0", "--width", "16"});
  CHECK(uneven.exit_code == 1);
  CHECK_THAT(uneven.err, Contains("the width is a multiple of the heads"));
  const ProgramRun shared = gpt({"--heads", "3", "--kv-heads", "2"});
  CHECK(shared.exit_code == 1);
  CHECK_THAT(shared.err, Contains("[--kv-heads]"));
}

TEST_CASE("gpt: the named sizes are those of the papers") {
  const std::vector<std::pair<std::string, double>> billions = {
      {"mini", 0.010939168}, {"small", 0.1244}, {"medium", 0.3548}, {"large", 0.774},
      {"xl", 1.5576},        {"22b", 22.07},    {"175b", 174.6}};
  for (const auto& [name, expected] : billions) {
    CAPTURE(name);
    const Functional model = gpt_model(model_size({.size = name}));
    model.build({-1, 8});
    CHECK(double(model.count_params()) / 1e9 == Approx(expected).epsilon(2e-3));
  }
  ModelFlags flags{.size = "small", .blocks = 2, .pre_norm = false};
  CHECK(model_size(flags).blocks == 2);
  CHECK(!model_size(flags).pre_norm);
  CHECK(model_size(flags).tied);
}

}  // namespace gpt_test
