#include <tessera/datasets/pack_documents.hpp>

#include <map>
#include <numeric>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"

namespace pack_documents_test {

using namespace tessera;
using Catch::Matchers::Contains;

namespace {

Examples all_rows(const TensorDataset& data) {
  std::vector<int64_t> rows(static_cast<size_t>(data.size()));
  std::iota(rows.begin(), rows.end(), 0);
  return data.get(rows);
}

at::Tensor table(const std::vector<int64_t>& numbers, int64_t length) {
  return at::tensor(numbers, at::kLong).view({-1, length});
}

}  // namespace

TEST_CASE("pack_documents fills rows, and gives prompts and padding no weight") {
  const TensorDataset data = pack_documents(
      {{{1, 2, 3, 4}}, {{11, 12, 13, 14}, 2}, {{21, 22, 23}, 3}, {{31, 32}}, {{41, 42, 43}}},
      {.length = 5, .padding_id = 9});
  const Examples rows = all_rows(data);
  CHECK(data.name() == "documents");
  REQUIRE(rows.x.size() == 2);
  CHECK(at::equal(rows.x[0], table({1, 2, 3, 21, 22, 11, 12, 13, 31, 9, 41, 42, 9, 9, 9}, 5)));
  CHECK(at::equal(rows.y[0], table({2, 3, 4, 22, 23, 12, 13, 14, 32, 9, 42, 43, 9, 9, 9}, 5)));
  CHECK(at::equal(rows.x[1], table({1, 1, 1, 2, 2, 1, 1, 1, 2, 0, 1, 1, 0, 0, 0}, 5)));
  CHECK(at::equal(rows.sample_weight[0].to(at::kLong),
                  table({1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 1, 1, 0, 0, 0}, 5)));
}

TEST_CASE("pack_documents splits long documents, whose prompts end where they did") {
  std::vector<int64_t> tokens(9);
  std::iota(tokens.begin(), tokens.end(), 1);
  const Examples rows = all_rows(pack_documents({{tokens, 5}, {{50, 51}}}, {.length = 3}));
  CHECK(at::equal(rows.x[0], table({1, 2, 3, 4, 5, 6, 7, 8, 50}, 3)));
  CHECK(at::equal(rows.y[0], table({2, 3, 4, 5, 6, 7, 8, 9, 51}, 3)));
  CHECK(at::equal(rows.x[1], table({1, 1, 1, 1, 1, 1, 1, 1, 2}, 3)));
  CHECK(at::equal(rows.sample_weight[0].to(at::kLong), table({0, 0, 0, 0, 1, 1, 1, 1, 1}, 3)));
}

TEST_CASE("pack_documents loses no token of many documents, and needs few rows") {
  constexpr int64_t length = 16;
  std::vector<TokenDocument> documents;
  std::map<std::pair<int64_t, int64_t>, int64_t> expected;  // token and next one
  int64_t steps = 0;
  for (int64_t i = 0; i < 300; ++i) {
    TokenDocument document;
    const int64_t size = 2 + i * 7919 % 13;
    for (int64_t t = 0; t < size; ++t) document.tokens.push_back(1 + i * 100 + t);
    for (size_t t = 0; t + 1 < document.tokens.size(); ++t, ++steps) {
      ++expected[{document.tokens[t], document.tokens[t + 1]}];
    }
    documents.push_back(document);
  }
  const Examples rows = all_rows(pack_documents(documents, {.length = length}));
  std::map<std::pair<int64_t, int64_t>, int64_t> actual;
  for (int64_t row = 0; row < rows.rows(); ++row) {
    for (int64_t step = 0; step < length; ++step) {
      if (rows.x[1][row][step].item<int64_t>() == 0) continue;
      ++actual[{rows.x[0][row][step].item<int64_t>(), rows.y[0][row][step].item<int64_t>()}];
    }
  }
  CHECK(actual == expected);
  CHECK(rows.rows() <= steps / length * 11 / 10);
  CHECK(rows.sample_weight[0].sum().item<double>() == double(steps));
}

TEST_CASE("pack_documents gives weight to the tokens that are learned") {
  const std::vector<bool> answers = {true, false, true, true, false};
  const Examples rows = all_rows(
      pack_documents({{.tokens = {1, 2, 3, 4, 5}, .is_learned = answers},
                      {.tokens = {6, 7, 8}, .prompt = 2, .is_learned = {true, true, true}}},
                     {.length = 6}));
  CHECK(at::equal(rows.x[0], table({1, 2, 3, 4, 6, 7}, 6)));
  CHECK(at::equal(rows.sample_weight[0].to(at::kLong), table({0, 1, 1, 0, 0, 1}, 6)));
  CHECK_THROWS_WITH(pack_documents({{.tokens = {1, 2}, .is_learned = {true}}}, {.length = 4}),
                    Contains("document 0") && Contains("each of 2 tokens"));
}

TEST_CASE("pack_documents refuses documents without a next token and prompts that do not fit") {
  CHECK(pack_documents({}, {.length = 4}).size() == 0);
  CHECK_THROWS_WITH(pack_documents({{{1, 2}}}, {}), Contains("length is at least 1"));
  CHECK_THROWS_WITH(pack_documents({{{1, 2}}, {{1}}}, {.length = 4}),
                    Contains("document 1") && Contains("at least two tokens"));
  CHECK_THROWS_WITH(pack_documents({{{1, 2}, 3}}, {.length = 4}), Contains("prompt is in [0, 2]"));
  CHECK_THROWS_WITH(pack_documents({{{1, 2}, -1}}, {.length = 4}), Contains("prompt"));
}

}  // namespace pack_documents_test
