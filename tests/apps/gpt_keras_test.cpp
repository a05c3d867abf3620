#include "tests/apps/gpt_sample.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include <tessera/datasets/files/sha256.hpp>
#include <tessera/framework/base/internal/file.hpp>

#include "apps/gpt/corpus.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/skip.hpp"

namespace gpt_keras_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::gpt;
using namespace tessera::test;

namespace {

/// Same as numbers() of make_keras_gpt.py.
at::Tensor numbers(const Shape& shape, int64_t seed) {
  const at::Tensor index = at::arange(numel(shape), at::kLong);
  const at::Tensor values = at::remainder(index * 7919 + seed * 104729 + index * index * 31, 2003);
  return (values.to(at::kDouble) / 1001 - 1).reshape(shape).to(at::kFloat);
}

/// Returns a weight's index in Keras' model, which lists a block's attention and dense layers
/// before its norms.
int64_t keras_index(const std::string& path, const ModelSize& size) {
  const std::vector<std::string> in_block = {"attention/query/kernel",
                                             "attention/query/bias",
                                             "attention/key/kernel",
                                             "attention/key/bias",
                                             "attention/value/kernel",
                                             "attention/value/bias",
                                             "attention/attention_output/kernel",
                                             "attention/attention_output/bias",
                                             "up/kernel",
                                             "up/bias",
                                             "down/kernel",
                                             "down/bias",
                                             "norm_1/gamma",
                                             "norm_1/beta",
                                             "norm_2/gamma",
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
    at::Tensor values = numbers(weight.shape(), keras_index(path, size));
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

ModelSize size_of(const Json& json) {
  Json all = json;
  all["dropout"] = 0.0;
  return model_size_from_json(all, "golden");
}

const Json& golden() {
  static const Json json = read_json_file(golden_path("keras_gpt.json"));
  return json;
}

/// Returns the losses of a trace's steps from `first` on; if `first` is 0, sets Keras' initial
/// weights.
std::vector<double> losses_of(const Functional& model, const Json& trace, size_t first,
                              size_t steps) {
  const ModelSize size = size_of(trace.at("size"));
  if (first == 0) give_keras_weights(model, size);
  const auto batch = trace.at("batch").get<int64_t>();
  const at::Tensor rows = gpt_words(batch * 5, size);
  std::vector<double> losses;
  for (size_t step = first; step < first + steps; ++step) {
    const auto row = static_cast<int64_t>(step % 5) * batch;
    losses.push_back(model.train_on_batch(gpt_batch(rows, row, batch)).front().second);
  }
  return losses;
}

/// Continues training; checks the first five losses within 1e-6 and others within 1e-5.
void check_losses(const Functional& model, const Json& trace, size_t first, size_t steps) {
  const auto expected = trace.at("losses").get<std::vector<double>>();
  REQUIRE(first + steps <= expected.size());
  const std::vector<double> losses = losses_of(model, trace, first, steps);
  for (size_t step = first; step < first + steps; ++step) {
    CAPTURE(step);
    CHECK(losses[step - first] == Approx(expected[step]).epsilon(step < 5 ? 1e-6 : 1e-5));
  }
}

/// Checks that the drift is at most 3 times Keras' own up to that step: between runs whose initial
/// weights differ by one ulp and whose rows come in another order.
void check_drift(const Functional& model, const Json& trace, size_t steps) {
  const auto expected = trace.at("losses").get<std::vector<double>>();
  const auto drift = trace.at("drift").get<std::vector<double>>();
  REQUIRE(expected.size() == drift.size());
  REQUIRE(steps <= expected.size());
  const std::vector<double> losses = losses_of(model, trace, 0, steps);
  double most = 0;
  for (size_t step = 0; step < losses.size(); ++step) {
    most = std::max(most, drift[step]);
    CAPTURE(step);
    CHECK(losses[step] == Approx(expected[step]).epsilon(std::max(1e-6, 3 * most)));
  }
}

void check_long_drift(size_t steps) {
  const Json& trace = golden().at("long");
  const Functional model = gpt_model(size_of(trace.at("size")));
  model.compile(gpt_training(LayoutMap(create_mesh({{"batch", 1}}))));
  check_drift(model, trace, steps);
}

void check_greedy(const Functional& model, const Json& trace) {
  const ModelSize size = size_of(trace.at("size"));
  const auto greedy = trace.at("greedy").get<TokenIds>();
  TokenIds all(greedy.begin(), greedy.begin() + 5);
  const TokenIds added =
      generate(model, {all},
               {.max_new_tokens = std::ssize(greedy) - 5, .max_context = size.length})[0]
          .tokens;
  all.insert(all.end(), added.begin(), added.end());
  CHECK(all == greedy);
}

std::string sha256(const std::string& bytes) {
  const TempFolder folder;
  write_file_atomically(folder / "bytes", bytes);
  const int descriptor = ::open((folder / "bytes").c_str(), O_RDONLY | O_CLOEXEC);
  const std::string sum = sha256_of(descriptor);
  ::close(descriptor);
  return sum;
}

}  // namespace

TEST_CASE("gpt: losses and greedy words equal those of Keras' miniature GPT") {
  for (const Json& trace : golden().at("traces")) {
    const ModelSize size = size_of(trace.at("size"));
    CAPTURE(size.pre_norm);
    const LayoutMap layouts(create_mesh({{"batch", 2}}));
    const Functional model = gpt_model(size);
    model.compile(gpt_training(layouts));
    check_losses(model, trace, 0, trace.at("losses").size());
    check_greedy(model, trace);
  }
}

TEST_CASE("gpt: at full size twenty losses and the most probable words after ten equal Keras'") {
  const Json& trace = golden().at("mini");
  const LayoutMap layouts(create_mesh({{"batch", 1}}));
  const Functional model = gpt_model(size_of(trace.at("size")));
  model.compile(gpt_training(layouts));
  check_losses(model, trace, 0, 10);
  check_greedy(model, trace);
  check_losses(model, trace, 10, 10);
}

// In float32 Keras' own losses diverge by more than 1e-5 before the fiftieth step.
TEST_CASE("gpt: at full size fifty losses drift no further than Keras' own do", "[nightly]") {
  const Json& trace = golden().at("mini");
  const Functional model = gpt_model(size_of(trace.at("size")));
  model.compile(gpt_training(LayoutMap(create_mesh({{"batch", 1}}))));
  check_drift(model, trace, 50);
}

TEST_CASE("gpt: sixty losses drift no further than Keras' own do") { check_long_drift(60); }

TEST_CASE("gpt: 300 losses drift no further than Keras' own do", "[nightly]") {
  check_long_drift(300);
}

TEST_CASE("gpt: the real reviews give Keras' vocabulary and token ids", "[imdb]") {
  const std::string folder = real_data_folder();
  if (folder.empty() || !std::filesystem::exists(folder + "/imdb/aclImdb_v1.tar.gz")) {
    return skip("there is no IMDB in $TESSERA_DATA or ../shared/data");
  }
  app::CommonOptions common;
  common.data_dir = folder;
  common.verbose = 0;
  const Corpus corpus = read_corpus(common, {.length = 80, .vocabulary = 20000});
  CHECK(corpus.data.size() == 50000);
  std::string words;
  for (const std::string& word : corpus.vocabulary) words += word + "\n";
  const Json& expected = golden().at("reviews");
  CHECK(std::ssize(corpus.vocabulary) == expected.at("words").get<int64_t>());
  CHECK(sha256(words) == expected.at("vocabulary_sha256").get<std::string>());
  std::vector<int64_t> rows(1000);
  std::iota(rows.begin(), rows.end(), 0);
  const Examples examples = corpus.data.get(rows);
  // The last word of a row is its last label.
  const at::Tensor ids = at::cat({examples.x[0], examples.y[0].narrow(1, 79, 1)}, 1).contiguous();
  CHECK(ids.sizes() == at::IntArrayRef({1000, 81}));
  const std::string bytes(static_cast<const char*>(ids.data_ptr()), ids.nbytes());
  CHECK(sha256(bytes) == expected.at("ids_sha256").get<std::string>());
}

TEST_CASE("gpt: texts are split into Keras' words") {
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

}  // namespace gpt_keras_test
