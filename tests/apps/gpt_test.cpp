#include "apps/gpt/gpt_model.hpp"

#include <filesystem>
#include <map>
#include <numeric>
#include <set>

#include <ATen/ATen.h>

#include <tessera/framework/comm/comm_log.hpp>

#include "apps/gpt/corpus.hpp"
#include "apps/gpt/generator.hpp"
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

/// As numbers() of make_keras_gpt.py.
at::Tensor numbers(const Shape& shape, int64_t seed) {
  const at::Tensor index = at::arange(numel(shape), at::kLong);
  const at::Tensor values =
      at::remainder(index * 7919 + seed * 104729 + index * index * 31, 2003);
  return (values.to(at::kDouble) / 1001 - 1).reshape(shape).to(at::kFloat);
}

/// The place of a weight in Keras' model, which lists a block's attention and dense layers before
/// its norms.
int64_t keras_number(const std::string& path, const ModelSize& size) {
  const std::vector<std::string> in_block = {
      "attention/query/kernel", "attention/query/bias", "attention/key/kernel",
      "attention/key/bias", "attention/value/kernel", "attention/value/bias",
      "attention/attention_output/kernel", "attention/attention_output/bias", "up/kernel",
      "up/bias", "down/kernel", "down/bias", "norm_1/gamma", "norm_1/beta", "norm_2/gamma",
      "norm_2/beta"};
  if (path == "tokens/embeddings") return 0;
  if (path == "positions/embeddings") return 1;
  int64_t next = 2 + size.blocks * std::ssize(in_block);
  if (path.starts_with("block_")) {
    const size_t slash = path.find('/');
    const auto found = std::find(in_block.begin(), in_block.end(), path.substr(slash + 1));
    REQUIRE(found != in_block.end());
    return 2 + (std::stoll(path.substr(6, slash - 6)) - 1) * std::ssize(in_block) +
           (found - in_block.begin());
  }
  if (path.starts_with("norm/")) return next + (path == "norm/beta");
  next += size.pre_norm ? 2 : 0;
  return next + (path == "logits/bias");
}

void give_keras_weights(const Functional& model, const ModelSize& size) {
  for (Variable weight : model.weights()) {
    const std::string& path = weight.path();
    at::Tensor values = numbers(weight.shape(), keras_number(path, size));
    if (path.ends_with("gamma")) {
      values = 1 + 0.1 * values;
    } else if (weight.shape().size() < 2 || path.ends_with("bias")) {
      values = 0.1 * values;
    } else {
      values = values * std::sqrt(3.0 / double(weight.shape()[0]));
    }
    weight.assign(pack(values, weight.layout()));
  }
}

/// Rows of words in which some follow others, one longer than the model sees.
at::Tensor words_of(int64_t rows, const ModelSize& size) {
  const at::Tensor row = at::arange(rows, at::kLong).unsqueeze(1);
  const at::Tensor step = at::arange(size.length + 1, at::kLong);
  const at::Tensor mixed =
      at::remainder(row * 31 + step * step * 7 + step * row, 97) * 2 + at::remainder(step, 2);
  return at::remainder(mixed, size.vocabulary);
}

Examples batch_of(const at::Tensor& rows, int64_t first, int64_t count) {
  const at::Tensor some = rows.narrow(0, first, count);
  const int64_t length = rows.size(1) - 1;
  return {.x = {some.narrow(1, 0, length).contiguous()},
          .y = {some.narrow(1, 1, length).contiguous()}};
}

ModelSize size_of(const Json& json) {
  Json all = json;
  all["dropout"] = 0.0;
  return model_size_from_json(all, "golden");
}

const Json& golden() {
  static const Json json = read_json_file(golden_path("keras_gpt.json"));
  return json;
}

CompileOptions training(const LayoutMap& layouts) {
  return {.optimizer = Adam(1e-3),
          .loss = SparseCategoricalCrossentropy({.from_logits = true}),
          .layouts = layouts};
}

/// Nothing divides: 6 heads, 40 words, a vocabulary of 203.
ModelSize odd_size(bool pre_norm) {
  return {.blocks = 4, .heads = 6, .head_dim = 4, .width = 24, .hidden = 20, .length = 40,
          .vocabulary = 203, .dropout = 0, .pre_norm = pre_norm};
}

std::filesystem::path layouts_folder() {
  return std::filesystem::path(TESSERA_TEST_DIR).parent_path() / "apps/gpt/layouts";
}

/// A layouts file over other numbers of devices.
LayoutMap layouts_of(const std::string& name, const MeshDims& dims) {
  LayoutFile file = read_layout_file((layouts_folder() / (name + ".json")).string());
  REQUIRE(file.mesh);
  REQUIRE(file.mesh->size() == dims.size());
  for (size_t d = 0; d < dims.size(); ++d) REQUIRE((*file.mesh)[d].first == dims[d].first);
  return make_layout_map(file, create_mesh(dims));
}

/// Losses of some steps in float64.
std::vector<double> losses(const ModelSize& size, const LayoutMap& layouts, int64_t steps) {
  const DTypeScope doubles("float64");
  const SeedScope seed(7);
  const Functional model = gpt_model(size);
  model.compile(training(layouts));
  const at::Tensor rows = words_of(24, size);
  std::vector<double> all;
  for (int64_t step = 0; step < steps; ++step) {
    all.push_back(model.train_on_batch(batch_of(rows, step % 4 * 6, 6)).front().second);
  }
  return all;
}

/// The collectives of one training step in a block, "all_reduce model attention".
std::map<std::string, int64_t> collectives_in(const std::string& block, const Functional& model,
                                              const LayoutMap& layouts, const ModelSize& size) {
  model.compile(training(layouts));
  const Examples all = batch_of(words_of(8, size), 0, 8);
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

TEST_CASE("gpt: losses and greedy words are those of Keras' miniature GPT") {
  for (const Json& trace : golden().at("traces")) {
    const ModelSize size = size_of(trace.at("size"));
    CAPTURE(size.pre_norm);
    const LayoutMap layouts(create_mesh({{"batch", 2}}));
    const Functional model = gpt_model(size);
    model.compile(training(layouts));
    give_keras_weights(model, size);
    const auto batch = trace.at("batch").get<int64_t>();
    const at::Tensor rows = words_of(batch * 5, size);
    const auto expected = trace.at("losses").get<std::vector<double>>();
    for (size_t step = 0; step < expected.size(); ++step) {
      const auto first = static_cast<int64_t>(step % 5) * batch;
      const double loss = model.train_on_batch(batch_of(rows, first, batch)).front().second;
      CAPTURE(step);
      CHECK(loss == Approx(expected[step]).epsilon(step < 5 ? 1e-6 : 1e-5));
    }
    // What the text says is of no matter: words have numbers for names.
    std::vector<std::string> vocabulary = {"", "[UNK]"};
    for (int64_t w = 2; w < size.vocabulary; ++w) vocabulary.push_back("w" + std::to_string(w));
    const auto greedy = trace.at("greedy").get<std::vector<int64_t>>();
    const Generator generator(model, vocabulary, size.length, layouts);
    std::vector<int64_t> all(greedy.begin(), greedy.begin() + 5);
    while (all.size() < greedy.size()) all.push_back(generator.likeliest_behind(all));
    CHECK(all == greedy);
  }
}

TEST_CASE("gpt: every layouts file trains as one device does") {
  struct Scheme {
    std::string file;
    std::vector<std::string> meshes;
  };
  const std::vector<Scheme> schemes = {
      {"data", {"batch=4", "batch=3", "batch=5"}},
      {"tensor", {"batch=2,model=4", "batch=1,model=3", "batch=1,model=5"}},
      {"vocab", {"batch=2,model=4", "batch=1,model=3", "batch=1,model=5"}},
      {"sequence", {"batch=2,model=4", "batch=1,model=3", "batch=1,model=5"}},
      {"ulysses", {"batch=2,model=4", "batch=1,model=3", "batch=1,model=5"}},
      {"fsdp", {"batch=8", "batch=3", "batch=5"}},
      {"tensor_2d", {"row=2,col=2", "row=3,col=1", "row=1,col=5"}},
      {"tensor_2p5d", {"depth=2,row=2,col=2", "depth=1,row=1,col=3"}},
      {"tensor_3d", {"x=2,y=2,z=2", "x=1,y=3,z=1", "x=1,y=1,z=5"}},
  };
  std::set<std::string> there, listed;
  for (const auto& entry : std::filesystem::directory_iterator(layouts_folder())) {
    there.insert(entry.path().stem().string());
  }
  for (const bool pre_norm : {false, true}) {
    const ModelSize size = odd_size(pre_norm);
    const std::vector<double> whole = losses(size, LayoutMap(create_mesh({{"batch", 1}})), 30);
    REQUIRE(whole.back() < whole.front());
    for (const Scheme& scheme : schemes) {
      listed.insert(scheme.file);
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
  }
}

TEST_CASE("gpt: nothing that has the vocabulary's axis is communicated where it is cut") {
  const ModelSize size = odd_size(false);
  const LayoutMap layouts = layouts_of("vocab", {{"batch", 2}, {"model", 2}});
  const Functional model = gpt_model(size);
  model.compile(training(layouts));
  const Examples all = batch_of(words_of(8, size), 0, 8);
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

  const ProgramRun none = gpt({"generate", folder / "none"});
  CHECK(none.exit_code == 1);
  CHECK_THAT(none.err, Contains("gpt.json"));
  const ProgramRun uneven = gpt({"--heads", "3", "--head-dim", "0", "--width", "16"});
  CHECK(uneven.exit_code == 1);
  CHECK_THAT(uneven.err, Contains("the width is a multiple of the heads"));
}

TEST_CASE("gpt: texts become Keras' words") {
  const Json& text = golden().at("text");
  const auto texts = text.at("texts").get<std::vector<std::string>>();
  const auto standardized = text.at("standardized").get<std::vector<std::string>>();
  for (size_t i = 0; i < texts.size(); ++i) CHECK(cleaned(texts[i]) == standardized[i]);
  const TextVectorization words =
      gpt::words_of(text.at("vocabulary").get<std::vector<std::string>>(), 13);
  const at::Tensor ids = words(standardized);
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto expected = text.at("ids")[i].get<std::vector<int64_t>>();
    CHECK(at::equal(ids[int64_t(i)], at::tensor(expected)));
  }
}

}  // namespace gpt_test
