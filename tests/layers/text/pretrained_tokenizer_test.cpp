#include <tessera/layers/text/pretrained_tokenizer.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/io/export.hpp>
#include <tessera/framework/model/sequential.hpp>
#include <tessera/framework/nn/losses/losses.hpp>
#include <tessera/layers/layers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace pretrained_tokenizer_test {

using namespace tessera;
using namespace tessera::detail;
using test::difference;

namespace {

const std::vector<std::string> texts = {"The quick brown fox", "",
                                        "Größe, naïve café and 1234 more words"};

/// BERT's kind of tokenizer, without its own truncation and padding (golden/make_tokenizers.py).
Tokenizer bert() {
  const Json golden = read_json_file(test::golden_path("tokenizers.json").string());
  Tokenizer made = Tokenizer::from_json(to_json_text(golden["tokenizers"]["bert"]["json"]));
  made.set_truncation(std::nullopt);
  made.set_padding(std::nullopt);
  return made;
}

/// Returns the ids of texts, padded by 0 to `length`.
at::Tensor expected_ids(int64_t length) {
  at::Tensor ids = at::zeros({static_cast<int64_t>(texts.size()), length}, at::kLong);
  for (size_t row = 0; row < texts.size(); ++row) {
    const std::vector<int32_t> list = bert().encode(texts[row]).ids;
    for (size_t i = 0; i < list.size(); ++i) {
      ids[static_cast<int64_t>(row)][static_cast<int64_t>(i)] = list[i];
    }
  }
  return ids;
}

int64_t longest() { return static_cast<int64_t>(bert().encode(texts[2]).ids.size()); }

}  // namespace

TEST_CASE("a layer pads token ids to the longest text's length") {
  const PretrainedTokenizer tokenize(bert());
  const TokenBatch batch = tokenize.encode(texts);
  CHECK(difference(batch.ids, expected_ids(longest())) == "");
  CHECK(difference(batch.attention_mask, expected_ids(longest()).ne(0).to(at::kLong)) == "");
  CHECK(batch.type_ids.sum().item<int64_t>() == 0);
  CHECK(difference(tokenize(texts), batch.ids) == "");
}

TEST_CASE("a layer with a length truncates and pads") {
  const PretrainedTokenizer tokenize(bert(), {.length = 6});
  const at::Tensor ids = tokenize(texts);
  CHECK(ids.sizes() == at::IntArrayRef({3, 6}));
  // Longer texts end with the special token, too.
  CHECK(ids[2][5].item<int64_t>() == bert().token_id("[SEP]"));
  CHECK(difference(ids[1], at::tensor({2, 3, 0, 0, 0, 0}, at::kLong)) == "");
  CHECK_THROWS_AS(PretrainedTokenizer(bert(), {.length = 0}), ConfigError);
  Tokenizer left = bert();
  left.set_padding(Padding{.direction = "left"});
  CHECK_THROWS_AS(PretrainedTokenizer(left), ConfigError);
}

TEST_CASE("a batch in a layout is the batch on one device") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"feature", 3}});
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  for (const std::optional<int64_t> length :
       {std::optional<int64_t>(), std::optional<int64_t>(7)}) {
    const PretrainedTokenizer tokenize(bert(), {.length = length});
    const std::shared_ptr<TextLayer> layer = tokenize;
    for (const Layout& layout : test::all_layouts(mesh, 2)) {
      CAPTURE(layout.describe());
      CHECK(test::wrong_shards(layer->transform(views, layout), tokenize(texts)) == "");
    }
    CHECK_THROWS_AS(layer->transform(views, Layout::replicated(mesh, 1)), LayoutError);
  }
}

TEST_CASE("a dataset holds token ids, and their mask if asked for") {
  const TextDataHandle data(texts, at::tensor({1, 0, 1}));
  const PretrainedTokenizer tokenize(bert());
  const auto plain = tokenize.dataset(data);
  CHECK(plain->size() == 3);
  const std::vector<int64_t> rows = {2, 0};
  Examples examples = plain->get(rows);
  REQUIRE(examples.x.size() == 1);
  const at::Tensor expected = expected_ids(longest()).index_select(0, at::tensor(rows));
  CHECK(difference(examples.x[0], expected) == "");
  CHECK(difference(examples.y[0], at::tensor({1, 1})) == "");
  examples = tokenize.dataset(data, {.attention_mask = true})->get(rows);
  REQUIRE(examples.x.size() == 2);
  CHECK(difference(examples.x[1], expected.ne(0).to(at::kLong)) == "");
  CHECK_THROWS_AS(plain->get(std::vector<int64_t>{3}), ShapeError);
}

TEST_CASE("an export contains the tokenizer") {
  const test::TempFolder folder;
  const PretrainedTokenizer tokenize(bert(), {.length = 8, .name = "words"});
  Sequential model({Embedding(tokenize.tokenizer().vocabulary_size(), 4, {.mask_zero = true}),
                    GlobalAveragePooling1D(), Dense(2)});
  model.compile(
      {.optimizer = "adam", .loss = SparseCategoricalCrossentropy({.from_logits = true})});
  model.fit(tokenize.dataset(TextDataHandle(texts, at::tensor({1, 0, 1}))), {.verbose = 0});
  const std::string path = folder / "model";
  export_model(model, path, {.text = tokenize, .sample = {"The quick brown fox"}});
  const ExportedModel loaded = load_export(path);
  const PretrainedTokenizer read(loaded.text);
  CHECK(difference(read(texts), tokenize(texts)) == "");
  CHECK(loaded.predict(texts).sizes() == at::IntArrayRef({3, 2}));
}

}  // namespace pretrained_tokenizer_test
