// Steps of SGD, Adam and AdamW against Keras, in every layout.
#include <tessera/framework/tensor/create.hpp>
#include <tessera/optimizers/optimizers.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/layouts.hpp"

namespace keras_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

OptimizerHandle make_case(const std::string& name, const Json& o) {
  const double decay = option(o, "weight_decay", name == "AdamW" ? 0.004 : 0.0);
  if (name == "SGD") {
    return SGD(option(o, "learning_rate", 0.01), {.momentum = option(o, "momentum", 0.0),
                                                  .nesterov = option(o, "nesterov", false),
                                                  .weight_decay = decay});
  }
  const AdamOptions options{.beta_1 = option(o, "beta_1", 0.9),
                            .beta_2 = option(o, "beta_2", 0.999),
                            .epsilon = option(o, "epsilon", 1e-7),
                            .amsgrad = option(o, "amsgrad", false)};
  const double rate = option(o, "learning_rate", 0.001);
  if (name == "AdamW") return AdamW(rate, {.weight_decay = decay, .amsgrad = options.amsgrad});
  return Adam(rate, {.beta_1 = options.beta_1,
                     .beta_2 = options.beta_2,
                     .epsilon = options.epsilon,
                     .amsgrad = options.amsgrad,
                     .weight_decay = decay});
}

/// The layouts of one run: the kernel's placement and those of the gradients.
struct Where {
  Placement kernel, bias;
  Layout kernel_gradient, bias_gradient;
};

/// Returns a gradient in a layout; partial sums over the mesh's first dimension are uneven.
DTensor in_layout(const at::Tensor& full, const Layout& layout) {
  const ShardingPtr sharding = intern(full.sizes().vec(), full.scalar_type(), layout);
  const auto addends = layout.is_partial() ? double(sharding->groups[0]) : 1.0;
  Blocks blocks;
  for (const BlockInfo& block : sharding->blocks) {
    const bool first = !layout.is_partial() || block.group[0] == 0;
    blocks.push_back(cut(full, block.intervals) * (first ? 1 - (addends - 1) / 4 : 0.25));
  }
  return DTensor(sharding, std::move(blocks));
}

void check_case(const Json& golden, const Where& where) {
  const Json& all = keras_core("optimizers");
  const OptimizerHandle optimizer = make_case(golden.at("name"), golden.at("options"));
  std::vector<Variable> variables;
  for (size_t v = 0; v < 2; ++v) {
    const Placement& placement = v == 0 ? where.kernel : where.bias;
    variables.emplace_back(v == 0 ? "dense/kernel" : "dense/bias",
                           pack(golden_tensor(all.at("first")[v]), placement.layout));
    variables.back().place(placement);
  }
  const auto marks = all.at("marks").get<std::vector<int64_t>>();
  size_t mark = 0;
  for (const Json& step : all.at("gradients")) {
    optimizer->apply({in_layout(golden_tensor(step[0]), where.kernel_gradient),
                      in_layout(golden_tensor(step[1]), where.bias_gradient)},
                     variables);
    if (optimizer->iterations() != marks[mark]) continue;
    for (size_t v = 0; v < 2; ++v) {
      const at::Tensor expected = golden_tensor(golden.at("after")[mark][v]);
      CHECK(difference(variables[v].value().full(), expected, 1e-6, 1e-6) == "");
    }
    ++mark;
  }
  CHECK(mark == marks.size());
}

std::vector<Where> placements() {
  const Mesh one = create_mesh({{"batch", 1}});
  const Mesh grid = create_mesh({{"batch", 2}, {"model", 2}});
  const Mesh three = create_mesh({{"batch", 3}});
  const auto where = [](const Layout& kernel, const Layout& bias) {
    return Where{{{6, 4}, kernel}, {{4}, bias}, kernel, bias};
  };
  std::vector<Where> all = {
      where(Layout::replicated(one, 2), Layout::replicated(one, 1)),
      where(Layout({unsharded, "model"}, grid), Layout({"model"}, grid)),
      where(Layout({"batch", "model"}, grid), Layout({"model"}, grid)),
      where(Layout({AxisSpec{"batch", "model"}, unsharded}, grid), Layout::replicated(grid, 1)),
      where(Layout({unsharded, "batch"}, three), Layout({"batch"}, three)),
  };
  // Data parallel: gradients are partial sums over batch, weights replicated or sharded over batch.
  for (const char* rows : {unsharded, "batch"}) {
    Where data = where(Layout({rows, unsharded}, grid), Layout::replicated(grid, 1));
    data.kernel_gradient = Layout::replicated(grid, 2).with_partial(1, Reduce::sum);
    data.bias_gradient = Layout::replicated(grid, 1).with_partial(1, Reduce::sum);
    all.push_back(data);
  }
  Where zero = where(Layout({unsharded, "model"}, grid), Layout::replicated(grid, 1));
  zero.kernel.slots = Layout({"batch", "model"}, grid);
  zero.bias.slots = Layout({"batch"}, grid);
  zero.kernel_gradient = zero.kernel.layout.with_partial(1, Reduce::sum);
  all.push_back(zero);
  return all;
}

}  // namespace

TEST_CASE("ten steps of every optimizer match Keras in every layout") {
  for (BlockPolicy policy : policies) {
    const BlockPolicyScope scope(policy);
    for (const Where& where : placements()) {
      for (const Json& golden : keras_core("optimizers").at("cases")) {
        INFO(golden.at("name") << " " << golden.at("options").dump() << " kernel "
                               << where.kernel.layout.describe() << " gradient "
                               << where.kernel_gradient.describe() << " "
                               << test::to_string(policy));
        check_case(golden, where);
      }
    }
  }
}

}  // namespace keras_test
