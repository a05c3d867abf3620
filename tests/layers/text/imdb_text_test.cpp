#include <cstdlib>
#include <numeric>

#include <ATen/ATen.h>

#include <tessera/datasets/files/imdb_files.hpp>
#include <tessera/datasets/imdb.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/layers/text/text_vectorization.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/skip.hpp"

namespace imdb_text_test {

using namespace tessera;
using namespace tessera::detail;
using test::difference;

namespace {

constexpr double tolerance = 1e-6;

/// Returns the path of the original archive if this machine has it, else "".
std::string true_archive() {
  const char* variable = std::getenv("TESSERA_DATA");
  for (const std::string& folder : {std::string(variable == nullptr ? "" : variable),
                                    std::string(TESSERA_TEST_DIR "/../../shared/data")}) {
    const std::string path = folder.empty() ? "" : find_reviews(folder);
    if (!path.empty()) return path;
  }
  return "";
}

/// Returns a row of 1200 columns, given the nonzero ones.
at::Tensor row_of(const Json& nonzero) {
  at::Tensor row = at::zeros({1200});
  for (const auto& [column, value] : nonzero.items()) row[std::stoi(column)] = value.get<float>();
  return row;
}

std::string join_lines(const std::vector<std::string>& tokens) { return join(tokens, "\n") + "\n"; }

}  // namespace

TEST_CASE("tf-idf of the real reviews matches TensorFlow", "[imdb]") {
  const std::string archive = true_archive();
  if (archive.empty()) return test::skip("there is no IMDB in $TESSERA_DATA or ../shared/data");
  const auto reviews = datasets::imdb({.path = archive});
  const Json golden = read_json_file(test::golden_path("imdb_text.json").string());
  const TextVectorization vectorize({.max_tokens = 1200, .output_mode = "tf_idf"});
  int64_t told = 0;
  vectorize.adapt(reviews, {.progress = [&](int64_t done, int64_t) { told = done; }});
  CHECK(told == reviews->size());
  CHECK(join_lines(vectorize.get_vocabulary()) ==
        test::read_file(test::golden_path("imdb_vocabulary.txt")));
  const at::Tensor idf = at::tensor(golden.at("idf").get<std::vector<float>>());
  CHECK(difference(at::tensor(vectorize.idf_weights()), idf, tolerance) == "");

  const auto rows = vectorize.dataset(reviews);
  REQUIRE(rows->size() == 25000);
  for (const auto& [row, nonzero] : golden.at("sample_rows").items()) {
    const std::vector<int64_t> number = {std::stoi(row)};
    const Examples example = rows->get(number);
    CHECK(difference(example.x[0][0], row_of(nonzero), tolerance) == "");
    const std::vector<std::string> text = {std::string(reviews->text(number[0]))};
    CHECK(difference(vectorize(text), example.x[0]) == "");
  }
  std::vector<int64_t> all(25000);
  std::iota(all.begin(), all.end(), 0);
  const double sum = rows->get(all).x[0].sum(at::kDouble).item<double>();
  CHECK(sum == Approx(golden.at("row_sum").get<double>()).epsilon(tolerance));
}

TEST_CASE("tricky texts become TensorFlow's rows") {
  const Json golden = read_json_file(test::golden_path("imdb_text.json").string());
  std::string lines = test::read_file(test::golden_path("imdb_vocabulary.txt"));
  lines.pop_back();
  std::string weights;
  for (const Json& weight : golden.at("idf")) {
    weights += (weights.empty() ? "" : "\n") + weight.dump();
  }
  const TextVectorization vectorize({.max_tokens = 1200, .output_mode = "tf_idf"});
  vectorize->load_assets({{"vocabulary.txt", lines}, {"idf_weights.txt", weights}});
  for (const Json& tricky : golden.at("tricky")) {
    const std::string text = tricky.at("text").get<std::string>();
    CAPTURE(text);
    const at::Tensor row = vectorize(std::vector{text})[0];
    CHECK(difference(row, row_of(tricky.at("nonzero")), tolerance) == "");
  }
}

}  // namespace imdb_text_test
