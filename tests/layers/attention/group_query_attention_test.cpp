#include <tessera/layers/attention/group_query_attention.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/keras_layers.hpp"
#include "tests/support/layer_check.hpp"

namespace group_query_attention_test {

using namespace tessera;
using Catch::Matchers::Contains;
using test::error_line;

TEST_CASE("GroupQueryAttention matches Keras on any mesh") {
  test::check_layers(
      test::golden_part("keras_sequences.json", "GroupQueryAttention"), [](size_t row) {
        return test::other_than_keras("keras_sequences.json", "GroupQueryAttention", row);
      });
}

TEST_CASE("GroupQueryAttention under every layout") {
  test::run_golden_layer_test(
      {.make = [] { return GroupQueryAttention(3, 4, 2, {.dropout = 0.2, .use_bias = false}); },
       .input = {{2, 3, 4}},
       .output = {2, 3, 4},
       .weights = {{"query/kernel", {4, 4, 3}},
                   {"key/kernel", {4, 2, 3}},
                   {"value/kernel", {4, 2, 3}},
                   {"attention_output/kernel", {4, 3, 4}}},
       .more_inputs = {{{2, 5, 4}}}});
}

TEST_CASE("GroupQueryAttention refuses invalid arguments in one line") {
  CHECK_THAT(error_line([] { GroupQueryAttention(3, 4, 3, {.name = "a"}); }),
             Contains("[GroupQueryAttention a]") && Contains("a multiple"));
  CHECK_THAT(error_line([] { GroupQueryAttention(0, 4, 2); }), Contains("head_dim"));
  CHECK_THAT(error_line([] { GroupQueryAttention(3, 4, 2, {.sliding_window = 0}); }),
             Contains("sliding_window"));
}

}  // namespace group_query_attention_test
