#include <ATen/ATen.h>

#include <tessera/framework/nn/initializers/constraints.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>
#include <tessera/framework/nn/initializers/regularizers.hpp>
#include <tessera/layers/core/dense.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace weights_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

DenseOptions options_of(const std::string& initializer, const std::string& name = "hidden") {
  return {.activation = "relu",
          .kernel_initializer = initializer,
          .bias_initializer = "random_normal",
          .kernel_regularizer = "l2",
          .bias_regularizer = L1(0.1),
          .activity_regularizer = "l1",
          .kernel_constraint = MaxNorm(),
          .bias_constraint = "non_neg",
          .name = name};
}

/// Returns the kernel and bias as first drawn, in full.
std::vector<at::Tensor> drawn(const DenseOptions& options, const Layout& kernel,
                              const Layout& bias) {
  const LayerHandle layer = Dense(5, options);
  layer->build({{-1, 7}});
  std::vector<Variable> weights = layer->weights();
  weights[0].place({weights[0].shape(), kernel});
  weights[1].place({weights[1].shape(), bias});
  return {weights[0].value().full().clone(), weights[1].value().full().clone()};
}

std::vector<at::Tensor> drawn(const DenseOptions& options) {
  const Mesh mesh = virtual_mesh({1});
  return drawn(options, Layout::replicated(mesh, 2), Layout::replicated(mesh, 1));
}

}  // namespace

TEST_CASE("initial weights depend on neither mesh nor layout") {
  for (const char* initializer : {"glorot_uniform", "he_normal", "truncated_normal", "orthogonal",
                                  "random_uniform", "lecun_normal", "variance_scaling"}) {
    const std::vector<at::Tensor> expected = drawn(options_of(initializer));
    for (const std::vector<int64_t>& sizes :
         std::vector<std::vector<int64_t>>{{2}, {3}, {8}, {2, 2}, {2, 3}}) {
      const Mesh mesh = virtual_mesh(sizes);
      const std::vector<Layout> biases = all_layouts(mesh, 1);
      size_t next = 0;
      for (const Layout& kernel : all_layouts(mesh, 2)) {
        const Layout& bias = biases[next++ % biases.size()];
        CAPTURE(initializer, short_name(mesh), kernel.describe(), bias.describe());
        const std::vector<at::Tensor> values = drawn(options_of(initializer), kernel, bias);
        CHECK(difference(values[0], expected[0]) == "");
        CHECK(difference(values[1], expected[1]) == "");
      }
    }
  }
}

TEST_CASE("initial weights depend on the global seed, the path and the initializer's seed") {
  const auto same = [](const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
    return difference(a[0], b[0]).empty() && difference(a[1], b[1]).empty();
  };
  const int64_t previous = global_seed();
  const auto first = drawn(options_of("he_normal"));
  CHECK(same(first, drawn(options_of("he_normal"))));
  CHECK_FALSE(same(first, drawn(options_of("he_normal", "other"))));
  CHECK(difference(first[0].slice(0, 0, 1).reshape({5}), first[1]) != "");
  set_random_seed(previous + 1);
  CHECK_FALSE(same(first, drawn(options_of("he_normal"))));
  DenseOptions seeded = options_of("zeros");
  seeded.kernel_initializer = HeNormal({.seed = 3});
  seeded.bias_initializer = RandomNormal({.seed = 4});
  const auto fixed = drawn(seeded);
  set_random_seed(previous);
  CHECK(same(fixed, drawn(seeded)));
  CHECK(same(first, drawn(options_of("he_normal"))));
}

}  // namespace weights_test
