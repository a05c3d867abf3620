#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/text/text_vectorization.hpp>

#include "tests/support/allocation_counter.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/thread_communicator.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace text_dataset_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

using Texts = std::vector<std::string>;

/// Returns texts of different lengths, the same in every call.
Texts some_texts(int64_t count) {
  Texts texts;
  for (int64_t i = 0; i < count; ++i) {
    std::string text;
    for (int64_t w = 0; w < i * 7 % 12; ++w) text += str("w", (i * 5 + w * w) % 11, " ");
    texts.push_back(text);
  }
  return texts;
}

TextVectorization adapted(const TextVectorizationOptions& options) {
  const TextVectorization layer(options);
  layer.adapt(some_texts(30));
  return layer;
}

std::vector<TextVectorizationOptions> modes() {
  return {{.max_tokens = 7, .output_mode = "tf_idf"},
          {.max_tokens = 15, .output_mode = "multi_hot", .pad_to_max_tokens = true},
          {.output_mode = "count"},
          {.output_sequence_length = 5},
          {}};
}

}  // namespace

TEST_CASE("a text dataset gives rows in any order with their labels") {
  const Texts texts = some_texts(50);
  for (const auto& options : modes()) {
    const TextVectorization layer = adapted(options);
    const auto data = layer.dataset({texts, at::arange(50)});
    const at::Tensor all = layer(texts);
    CHECK(data->size() == 50);
    CHECK(data->name() == "texts");
    CHECK(data->input_shapes() == std::vector<Shape>{{all.size(1)}});
    const std::vector<int64_t> rows = {49, 0, 7, 7, 31};
    const Examples examples = data->get(rows);
    const at::Tensor numbers = at::tensor(rows);
    CHECK(difference(examples.x[0], all.index_select(0, numbers)) == "");
    CHECK(difference(examples.y[0], numbers) == "");
    CHECK_THROWS_WITH(data->get(std::vector<int64_t>{50}), Contains("[0, 50)"));
    CHECK_THROWS_WITH(data->get(std::vector<int64_t>{-1}), Contains("-1"));
    CHECK(data->get({}).x[0].size(0) == 0);
    CHECK(layer.dataset(texts)->get(rows).y.empty());
  }
}

TEST_CASE("batches made shard by shard are the shards of full batches, in every layout") {
  const Texts texts = some_texts(13);
  const std::vector<int64_t> rows = {4, 12, 0, 5, 9, 9, 3};
  for (const auto& options : modes()) {
    const TextVectorization layer = adapted(options);
    const auto data = layer.dataset(texts);
    const at::Tensor full = data->get(rows).x[0];
    const Mesh mesh = create_mesh({{"batch", 2}, {"feature", 3}});
    for (const Layout& layout : test::all_layouts(mesh, 2)) {
      for (const BlockPolicy policy : test::policies) {
        CAPTURE(layout.describe(), test::to_string(policy));
        const BlockPolicyScope scope(policy);
        CHECK(test::wrong_shards(layer.transform(texts, layout), layer(texts)) == "");
        LayoutMap layouts(mesh);
        layouts.set_data("x", layout.spec());
        const Examples placed = data->get_placed(rows, layouts);
        CHECK(placed.x.empty());
        CHECK(placed.rows() == 7);
        CHECK(placed.placed_x[0].layout() == layout);
        CHECK(test::wrong_shards(placed.placed_x[0], full) == "");
      }
    }
    CHECK_THROWS_AS(layer.transform(texts, Layout::replicated(mesh, 1)), LayoutError);
  }
}

TEST_CASE("each process makes its own shards and skips texts that none of them need") {
  const Texts texts = some_texts(8);
  const TextVectorization layer({.standardize =
                                     [](std::string_view text) {
                                       test::expect(text != "foreign", "a foreign text is read");
                                       return std::string(text);
                                     },
                                 .output_mode = "count"});
  layer.adapt(texts);
  const at::Tensor full = layer(texts);
  const auto run = [&](int rank, const std::shared_ptr<Communicator>& communicator) {
    const Mesh mesh = test::rank_mesh({{"batch", 2}, {"feature", 2}}, communicator);
    Texts own(8, "foreign");
    for (size_t i = 4 * static_cast<size_t>(rank), end = i + 4; i < end; ++i) own[i] = texts[i];
    const DTensor made = layer.transform(own, Layout({"batch", "feature"}, mesh));
    test::expect(test::wrong_shards(made, full).empty(), "own shards");
  };
  CHECK_NOTHROW(test::run_ranks(2, run));
}

TEST_CASE("a feature-sharded batch takes the memory of its own columns only") {
  const int64_t width = 100'000;
  const TextVectorization layer(
      {.max_tokens = width, .output_mode = "count", .pad_to_max_tokens = true});
  layer.adapt({"a b c"});
  const auto data = layer.dataset(Texts(32, "a b c"));
  const std::vector<int64_t> rows = {0, 1, 2, 3, 4, 5, 6, 7};
  const int64_t bytes = 8 * width * 4;
  const test::AllocationCounter counter;
  LayoutMap layouts(create_mesh({{"feature", 4}}));
  layouts.set_data("x", {unsharded, "feature"});
  const BlockPolicyScope scope(BlockPolicy::per_device);
  const Examples placed = data->get_placed(rows, layouts);
  CHECK(counter.held() >= bytes);
  CHECK(counter.held() < bytes + bytes / 10);
  CHECK(placed.placed_x[0].local(3).sizes() == at::IntArrayRef({8, width / 4}));
}

}  // namespace text_dataset_test
