#include <tessera/framework/comm/world_size_invariant.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/optimizers/adam.hpp>

#include <ATen/ATen.h>

#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace adam_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

TEST_CASE("Adam with either epsilon follows its formula, in every float dtype") {
  const AdamOptions keras{.epsilon = 1e-3};
  const AdamOptions corrected{.epsilon = 1e-3, .epsilon_on_corrected_root = true};
  for (const AdamOptions& options : {keras, corrected}) {
    for (auto [dtype, tolerance] : {std::pair(at::kDouble, 1e-12),
                                    {at::kFloat, 1e-6},
                                    {at::kBFloat16, 2e-2},
                                    {at::kHalf, 2e-2}}) {
      Variable w("dense/kernel", pack(at::ones({8, 4}, dtype), default_layout(2)));
      const Adam adam(0.01, options);
      at::Tensor expected = at::ones({8, 4}, at::kDouble);
      at::Tensor m = at::zeros_like(expected);
      at::Tensor v = at::zeros_like(expected);
      for (int t = 1; t <= 5; ++t) {
        const at::Tensor g = (at::linspace(-0.05, 0.04, 32, at::kDouble) * t).reshape({8, 4});
        adam->apply({pack(g.to(dtype), w.layout())}, {w});
        m = 0.9 * m + 0.1 * g;
        v = 0.999 * v + 0.001 * g * g;
        const double root = std::sqrt(1 - std::pow(0.999, t));
        const at::Tensor denominator =
            options.epsilon_on_corrected_root ? v.sqrt() / root + 1e-3 : (v.sqrt() + 1e-3) / root;
        expected = expected - 0.01 / (1 - std::pow(0.9, t)) * m / denominator;
      }
      CHECK(difference(w.value().full().to(at::kDouble), expected, tolerance) == "");
    }
  }
}

TEST_CASE("world_size_invariant: Adam updates a weight to the same bits whole and in shards") {
  const WorldSizeInvariantScope scope;
  const Mesh mesh = create_mesh({{"batch", 8}}, virtual_cpus(8));
  for (auto [dtype, amsgrad] : {std::pair(at::kFloat, false), {at::kDouble, true}}) {
    // Shards of 20 and 21 elements end in parts of ATen's vectors.
    const at::Tensor start = at::randn({166}, dtype), gradient = at::randn_like(start);
    const auto updated = [&, amsgrad = amsgrad](const LayoutSpec& axes) {
      const Layout layout(axes, mesh);
      Variable w("dense/kernel", pack(start, layout));
      const Adam adam(0.01, {.amsgrad = amsgrad});
      for (int t = 1; t <= 10; ++t) adam->apply({pack(gradient * (7 - t), layout)}, {w});
      std::vector<at::Tensor> all = {w.value().full()};
      for (const Variable& slot : adam->variables()) all.push_back(slot.value().full());
      return at::stack(all);
    };
    const at::Tensor whole = updated({unsharded});
    CHECK(whole.size(0) == (amsgrad ? 4 : 3));
    CHECK(at::equal(updated({"batch"}), whole));
  }
}

}  // namespace adam_test
