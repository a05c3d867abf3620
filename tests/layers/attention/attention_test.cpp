#include <tessera/layers/attention/attention.hpp>

#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/keras_layers.hpp"
#include "tests/support/layer_check.hpp"

namespace attention_test {

using namespace tessera;
using Catch::Matchers::Contains;
using test::error_line;

TEST_CASE("Attention and AdditiveAttention are Keras' on any mesh") {
  test::check_layers(test::golden_part("keras_sequences.json", "Attention"));
}

TEST_CASE("AdditiveAttention under every layout") {
  test::run_golden_layer_test({.make = [] { return AdditiveAttention({.dropout = 0.2}); },
                         .input = {{2, 3, 4}},
                         .output = {2, 3, 5},
                         .weights = {{"scale", {4}}},
                         .more_inputs = {{{2, 2, 5}}, {{2, 2, 4}}}});
}

TEST_CASE("Attention and AdditiveAttention refuse what they cannot take, in one line") {
  CHECK_THAT(error_line([] { Attention({.dropout = 1.0, .name = "a"}); }),
             Contains("[Attention a, dropout]"));
  CHECK_THAT(error_line([] {
               LayerHandle(AdditiveAttention({.name = "a"}))(
                   Inputs{ones({2, 3, 4}), ones({2, 5, 3})});
             }),
             Contains("[AdditiveAttention a]") && Contains("(2, 5, 3)"));
}

}  // namespace attention_test
