#include "tests/apps/gpt_sample.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <ATen/ATen.h>

#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/comm/comm_log.hpp>

#include "tests/apps/gpt_layouts.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/program.hpp"

namespace gpt_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::gpt;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

/// Returns the collectives of one training step in a block, without all-reduces of weight
/// gradients.
std::vector<CommEntry> entries_in(const std::string& block, const Functional& model,
                                  const std::vector<CommEntry>& all) {
  std::set<std::string> weights;
  for (const Variable& weight : model.weights()) weights.insert(weight.path());
  std::vector<CommEntry> found;
  for (const CommEntry& entry : all) {
    if (entry.place.starts_with(block + "/") && !weights.contains(entry.place)) {
      found.push_back(entry);
    }
  }
  return found;
}

std::vector<CommEntry> planned_in(const std::string& block, const ModelSize& size,
                                  const LayoutMap& layouts) {
  const Functional model = gpt_model(size);
  model.compile(gpt_training(layouts));
  const Examples all = gpt_batch(gpt_words(8, size), 0, 8);
  return entries_in(block, model, model.plan(TensorDataset(all), {.batch_size = 8}).collectives);
}

using Counts = std::map<std::string, int64_t>;

/// Returns counts by kind and mesh dimension, such as "all_reduce model" -> 4.
Counts counts(const std::vector<CommEntry>& entries) {
  Counts found;
  for (const CommEntry& entry : entries) ++found[to_string(entry.op) + " " + entry.dims];
  return found;
}

double received(const std::vector<CommEntry>& entries) {
  double sum = 0;
  for (const CommEntry& entry : entries) sum += entry.received;
  return sum;
}

}  // namespace

TEST_CASE("gpt: a tensor-parallel block costs two all-reduces forward and two backward") {
  for (const bool pre_norm : {false, true}) {
    CAPTURE(pre_norm);
    const ModelSize size = odd_gpt(pre_norm);
    const LayoutMap layouts = layouts_of("tensor", {{"batch", 2}, {"model", 2}});
    CHECK(counts(planned_in("block_2", size, layouts)) == Counts{{"all_reduce model", 4}});
    // The third step is replayed; it must cost the same.
    const Functional model = gpt_model(size);
    model.compile(gpt_training(layouts));
    const Examples batch = gpt_batch(gpt_words(8, size), 0, 8);
    for (int step = 0; step < 3; ++step) model.train_on_batch(batch);
    CommLog log;
    const CommLogScope scope(log);
    model.train_on_batch(batch);
    CHECK(model.step_records().replayed >= 1);
    CHECK(counts(entries_in("block_2", model, log.entries())) == Counts{{"all_reduce model", 4}});
  }
}

TEST_CASE("gpt: a block's experts cost two all-to-alls forward and two backward") {
  ModelSize size = odd_gpt(true);
  size.experts = 4;
  const LayoutMap layouts = layouts_of("experts", {{"batch", 2}, {"expert", 4}});
  CHECK(counts(planned_in("block_2", size, layouts)) == Counts{{"all_to_all expert", 4}});
}

TEST_CASE("gpt: sequence parallelism, Ulysses and ring attention cost what formulas say") {
  for (const bool pre_norm : {false, true}) {
    CAPTURE(pre_norm);
    const ModelSize size = odd_gpt(pre_norm);
    const auto planned = [&](const std::string& file) {
      return planned_in("block_2", size, layouts_of(file, {{"batch", 2}, {"model", 2}}));
    };
    const auto sequence = planned("sequence"), megatron = planned("megatron"),
               ulysses = planned("ulysses");
    CHECK(counts(sequence) == Counts{{"all_gather model", 4}, {"reduce_scatter model", 4}});
    // Same bytes as tensor parallelism's all-reduces: (k - 1) / k of the activations for each half
    // of an all-reduce.
    const double rows = 4, k = 2, activations = 4 * rows * double(size.length * size.width);
    CHECK(received(sequence) == Approx(8 * (k - 1) / k * activations));
    CHECK(received(sequence) == Approx(received(planned("tensor"))));
    // Same as `sequence`, plus gathering again in the backward pass.
    CHECK(counts(megatron) == Counts{{"all_gather model", 6}, {"reduce_scatter model", 4}});
    CHECK(received(megatron) == Approx(10 * (k - 1) / k * activations));
    CHECK(counts(ulysses) == Counts{{"all_to_all model", 8}});
    const double steps = 4 * rows * double(size.length * size.head_dim) / k;
    CHECK(received(ulysses) ==
          Approx(2 * (k - 1) / k * steps * double(2 * size.heads + 2 * size.kv_heads)));
    // Keys and values rotate once, their gradients twice; halves are exchanged before and after.
    CHECK(counts(planned("context")) ==
          Counts{{"all_gather model", 2}, {"reduce_scatter model", 2}});
    CHECK(counts(planned("ring")) == Counts{{"collective_permute model", 1 + 2 + 1 + 2 + 2}});
  }
}

TEST_CASE("gpt: no tensor with a sharded vocabulary axis is communicated") {
  const ModelSize size = odd_gpt(false);
  const LayoutMap layouts = layouts_of("vocab", {{"batch", 2}, {"model", 2}});
  const Functional model = gpt_model(size);
  model.compile(gpt_training(layouts));
  const Examples all = gpt_batch(gpt_words(8, size), 0, 8);
  int64_t reductions = 0;
  for (const CommEntry& entry : model.plan(TensorDataset(all), {.batch_size = 8}).collectives) {
    if (entry.place.starts_with("block_") || entry.dims == "batch") continue;
    CAPTURE(to_string(entry.op), entry.place, entry.bytes);
    // One number or one feature vector per word of a device's rows.
    const int64_t words = 4 * size.length;
    const bool is_number = entry.bytes == 4 * words;
    CHECK((is_number || entry.bytes == 4 * words * size.width));
    reductions += is_number;
  }
  CHECK(reductions == 3);  // of the largest logit, the sum and the label's logit
}

TEST_CASE("gpt: trains, saves and continues texts") {
  const TempFolder folder;
  const std::vector<std::pair<std::string, std::string>> synthetic = {
      {"TESSERA_DATA", ""}, {"XDG_CACHE_HOME", folder.path()}};
  const auto gpt = [&](std::vector<std::string> words) {
    return run_program(app_path("gpt"), words, synthetic);
  };
  const std::vector<std::string> small = {"--width",
                                          "16",
                                          "--hidden",
                                          "16",
                                          "--head-dim",
                                          "8",
                                          "--length",
                                          "12",
                                          "--epochs",
                                          "2",
                                          "--words",
                                          "4",
                                          "--train-size",
                                          "64",
                                          "--batch-size",
                                          "16",
                                          "--vocabulary",
                                          "50",
                                          "--mesh",
                                          "batch=2",
                                          "--save",
                                          folder / "model",
                                          "--history",
                                          folder / "h.json",
                                          "--validation-size",
                                          "10"};
  const ProgramRun run = gpt(small);
  CAPTURE(run.out, run.err);
  REQUIRE(run.exit_code == 0);
  CHECK_THAT(run.out, Contains("generated text:\nthis movie is "));
  CHECK_THAT(run.out, Contains("on 54 reviews (imdb (synthetic)), 2 epochs"));
  CHECK_THAT(run.out, Contains("validation loss ") && Contains(" on 10 reviews, loss "));
  const auto history = read_json_file(folder / "h.json").at("history").at("loss");
  CHECK(read_json_file(folder / "h.json").at("history").at("val_loss").size() == 2);
  CHECK(history[1].get<double>() < history[0].get<double>());

  const std::vector<std::string> generate = {"generate", folder / "model", "--words",
                                             "6",        "the film",       "a bad one"};
  const ProgramRun text = gpt(generate);
  CAPTURE(text.out, text.err);
  REQUIRE(text.exit_code == 0);
  CHECK_THAT(text.out, Contains("the film "));
  CHECK_THAT(text.out, Contains("\na bad one "));
  std::vector<std::string> cut = generate;
  cut.insert(cut.end() - 2, {"--layouts", (layouts_folder() / "vocab.json").string(), "--mesh",
                             "batch=1,model=2"});
  CHECK(gpt(cut).out == text.out);

  // Each save is a version of its own, whose files are verified.
  const std::filesystem::path model = folder / "model";
  CHECK(read_json_file(model / "000001/export.json").at("files").size() == 3);
  const ProgramRun from_version = gpt({"generate", model / "000001", "--words", "6", "the film"});
  CHECK(from_version.out == text.out.substr(0, text.out.find("\na bad one") + 1));
  for (const char* name : {"weights.safetensors", "vocabulary.txt", "gpt.json", "export.json"}) {
    const std::filesystem::path file = model / "000001" / name;
    const std::string bytes = read_file(file);
    std::string changed = bytes;
    changed[changed.size() / 2] = static_cast<char>(changed[changed.size() / 2] ^ 1);
    write_file(file, changed);
    const ProgramRun damaged = gpt({"generate", model, "the film"});
    CHECK(damaged.exit_code == 1);
    CHECK_THAT(damaged.err, Contains(name));
    write_file(file, bytes);
  }
  // A folder of earlier releases has the files themselves.
  std::filesystem::copy(model / "000001", folder / "earlier");
  std::filesystem::remove(folder / "earlier/export.json");
  CHECK(gpt({"generate", folder / "earlier", "--words", "6", "the film"}).out == from_version.out);
  REQUIRE(gpt(small).exit_code == 0);
  CHECK(std::filesystem::exists(model / "000002/gpt.json"));
  CHECK(gpt(generate).out == text.out);
  std::filesystem::copy(folder / "earlier/vocabulary.txt", model / "000002/other.txt");
  CHECK(gpt(generate).out == text.out);
  write_file(model / "000002/gpt.json", read_file(model / "000002/gpt.json") + " ");
  CHECK(gpt(generate).exit_code == 1);

  const ProgramRun plan = gpt({"--size", "22b", "--mesh", "batch=2", "--train-size", "64", "--plan",
                               "--batch-size", "2", "--epochs", "0"});
  CHECK(plan.exit_code == 0);
  CHECK_THAT(plan.out, Contains("block_48"));

  const ProgramRun all = gpt({"--train-size", "64", "--validation-size", "64"});
  CHECK(all.exit_code == 1);
  CHECK_THAT(all.err, Contains("[--validation-size] some reviews are left to train on. Received: "
                               "64 of 64. To fix: hold fewer out"));
  const ProgramRun none = gpt({"generate", folder / "none"});
  CHECK(none.exit_code == 1);
  CHECK_THAT(none.err, Contains("gpt.json"));
  const ProgramRun uneven = gpt({"--heads", "3", "--head-dim", "0", "--width", "16"});
  CHECK(uneven.exit_code == 1);
  CHECK_THAT(uneven.err, Contains("the width must be a multiple of the number of heads"));
  const ProgramRun lone = gpt({"--experts", "1"});
  CHECK(lone.exit_code == 1);
  CHECK_THAT(lone.err, Contains("[--experts] must be 0 or at least 2"));
  const ProgramRun shared = gpt({"--heads", "3", "--kv-heads", "2"});
  CHECK(shared.exit_code == 1);
  CHECK_THAT(shared.err, Contains("[--kv-heads]"));
}

TEST_CASE("gpt: a run resumed from its checkpoints ends like an uninterrupted one") {
  const TempFolder folder;
  const std::vector<std::pair<std::string, std::string>> synthetic = {
      {"TESSERA_DATA", ""}, {"XDG_CACHE_HOME", folder.path()}};
  const auto losses = [&](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> words = {"--width",      "16",
                                      "--hidden",     "16",
                                      "--head-dim",   "8",
                                      "--length",     "12",
                                      "--vocabulary", "50",
                                      "--train-size", "64",
                                      "--batch-size", "16",
                                      "--dropout",    "0.2",
                                      "--prompt",     "",
                                      "--verbose",    "0",
                                      "--layouts",    (layouts_folder() / "megatron.json").string(),
                                      "--history",    folder / (name + ".json")};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramRun run = run_program(app_path("gpt"), words, synthetic);
    CAPTURE(run.out, run.err);
    REQUIRE(run.exit_code == 0);
    return read_json_file(folder / (name + ".json")).at("history").at("loss");
  };
  const Json uninterrupted = losses("uninterrupted", {"--epochs", "3"});
  losses("first", {"--epochs", "2", "--checkpoint-dir", folder / "saved"});
  const Json rest =
      losses("rest", {"--epochs", "3", "--checkpoint-dir", folder / "saved", "--resume"});
  CHECK(rest.back() == uninterrupted[2]);
  // Another order of rows gives other losses.
  CHECK(losses("ordered", {"--epochs", "3", "--no-shuffle"}) != uninterrupted);
}

TEST_CASE("gpt: writes plans as JSON and reports wrong layouts files in one line") {
  const TempFolder folder;
  const std::vector<std::pair<std::string, std::string>> synthetic = {
      {"TESSERA_DATA", ""}, {"XDG_CACHE_HOME", folder.path()}};
  const auto gpt = [&](const std::string& layouts, std::vector<std::string> more = {}) {
    write_file_atomically(folder / "layouts.json", layouts);
    std::vector<std::string> words = {"--train-size",         "64", "--epochs", "0", "--layouts",
                                      folder / "layouts.json"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(app_path("gpt"), words, synthetic);
  };
  const ProgramRun plan =
      gpt(read_file(layouts_folder() / "tensor.json"), {"--plan-json", folder / "plan.json"});
  CAPTURE(plan.err);
  CHECK(plan.exit_code == 0);
  const Json json = read_json_file(folder / "plan.json");
  CHECK(json.at("mesh").dump().find("model") != std::string::npos);
  CHECK(json.dump().find("block_1/attention") != std::string::npos);

  const std::string begin = R"({"mesh": {"batch": 2, "model": 2}, "layouts": [)";
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"({"match": "block_1/atention/input", "layout": ["batch", null, null]})",
       "[block_1/atention/input] a layout rule matches at least one weight or value"},
      {R"({"match": "block_\\d+/up/kernel", "layout": [null, "modle"]})", "write \"model\""},
      {R"({"match": "block_1/up/input", "layout": ["batch", null]})",
       "rule \"block_1/up/input\" has a layout of rank 2, the value has rank 3"},
      {R"({"match": "block_1/up/kernel", "layout": ["model"]})", "[block_1/up/kernel]"},
      {R"({"match": "block_1/up/kernel", "layout": [null, "model"], "reshard": "after_forward"})",
       "has reshard, which needs use"},
      {R"({"match": "block_1/up/input", "layout": [null, null, null], "reshard": "later"})",
       "layouts[0].reshard]"},
      {R"({"match": "block_1/(up", "layout": [null, "model"]})", "block_1/(up"},
      {R"({"match": "block_1/up/output", "layout": ["batch", null, "batch"]})", "at most once"},
      {R"({"match": 3})", "layouts[0].match]"}};
  for (const auto& [rule, error] : wrong) {
    const ProgramRun run = gpt(begin + rule + "]}");
    CAPTURE(rule, run.out, run.err);
    CHECK(run.exit_code == 1);
    CHECK_THAT(run.err, Contains(error));
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  }
}

TEST_CASE("gpt: the named sizes match the papers") {
  const std::vector<std::pair<std::string, double>> billions = {
      {"mini", 0.010939168}, {"small", 0.1244},     {"medium", 0.3548}, {"large", 0.774},
      {"xl", 1.5576},        {"7.5b", 7.459729408}, {"22b", 22.07},     {"175b", 174.6}};
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
