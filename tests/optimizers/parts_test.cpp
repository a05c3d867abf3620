// Gradients that are handed to an UpdateStrategy, and parts of variables that are updated by them
// elsewhere, as by a parameter server.
#include <functional>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/optimizer/internal/part_updater.hpp>
#include <tessera/framework/optimizer/internal/update_strategy.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/optimizers/optimizers.hpp>

#include "tests/optimizers/slots.hpp"
#include "tests/support/catch.hpp"

namespace parts_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

const Shape shape = {5, 3};

/// Calls a function instead of updating.
class FunctionStrategy : public UpdateStrategy {
 public:
  using Function = std::function<void(const std::vector<Variable>&, const std::vector<DTensor>&)>;
  explicit FunctionStrategy(Function function) : function_(std::move(function)) {}
  void update(const std::vector<Variable>& variables,
              const std::vector<DTensor>& gradients) override {
    function_(variables, gradients);
  }

 private:
  Function function_;
};

DTensor replicated(const at::Tensor& full) {
  return pack(full, Layout::replicated(default_mesh(), full.dim()));
}

at::Tensor draw(int64_t seed) {
  return stateless_normal(shape, {seed, 7}, 0, 1, at::kDouble).full();
}

std::vector<Variable> variables() {
  return {Variable("dense/kernel", replicated(draw(1))),
          Variable("dense/bias", replicated(draw(2)))};
}

/// Returns rows [0, 2) and [2, 5) of each.
std::vector<Variable> parts_of(const std::vector<Variable>& full) {
  std::vector<Variable> parts;
  for (const Variable& variable : full) {
    const at::Tensor value = variable.value().full();
    parts.emplace_back(variable.path(), replicated(value.slice(0, 0, 2)));
    parts.emplace_back(variable.path(), replicated(value.slice(0, 2, 5)));
  }
  return parts;
}

/// Uses the same optimizer in three roles: ordinary, where gradients are made, and where parts are
/// stored.
void check_parts(const std::function<OptimizerHandle()>& make, int64_t steps = 7) {
  std::vector<Variable> usual = variables(), here = variables();
  std::vector<Variable> parts = parts_of(usual);
  const OptimizerHandle ordinary = make(), sender = make(), keeper = make();
  PartUpdater updater(keeper);
  for (size_t i = 0; i < parts.size(); ++i) updater.build(parts[i], here[i / 2]);
  const auto hand_over = [&](const std::vector<Variable>& of, const std::vector<DTensor>& ready) {
    REQUIRE(of.size() == 2);
    std::vector<DTensor> cut;
    for (const DTensor& gradient : ready) {
      const at::Tensor full = gradient.full();
      cut.push_back(replicated(full.slice(0, 0, 2)));
      cut.push_back(replicated(full.slice(0, 2, 5)));
    }
    updater.apply(cut, parts);
  };
  sender->set_update_strategy(std::make_shared<FunctionStrategy>(hand_over));
  for (int64_t step = 0; step < steps; ++step) {
    const std::vector<DTensor> gradients = {replicated(draw(10 + step)),
                                            replicated(draw(90 + step))};
    ordinary->apply(gradients, usual);
    sender->apply(gradients, here);
  }
  CHECK(sender->steps() == ordinary->steps());
  CHECK(keeper->iterations() == ordinary->iterations());
  for (size_t i = 0; i < usual.size(); ++i) {
    const at::Tensor joined =
        at::cat({parts[2 * i].value().full(), parts[2 * i + 1].value().full()});
    CHECK(at::allclose(joined, usual[i].value().full(), 0, 1e-12));
    // Where gradients are made nothing changes.
    CHECK(at::equal(here[i].value().full(), variables()[i].value().full()));
  }
}

}  // namespace

TEST_CASE("parts updated by handed-over gradients equal the full variable", "[optimizers]") {
  check_parts([] { return Adam(0.1); });
  check_parts([] { return SGD(ExponentialDecay(0.1, 3, 0.5), {.momentum = 0.9}); });
  check_parts([] { return RMSprop(0.1, {.clipnorm = 0.5}); });
  check_parts([] { return Adam(0.1, {.global_clipnorm = 0.7}); });
  check_parts([] { return Adam(0.1, {.clipvalue = 0.2, .loss_scale_factor = 8}); });
  check_parts([] { return Adam(0.1, {.use_ema = true, .ema_overwrite_frequency = 3}); });
}

TEST_CASE("accumulated gradients are handed over once for all their steps", "[optimizers]") {
  check_parts([] { return Adam(0.1, {.gradient_accumulation_steps = 2}); }, 6);
}

TEST_CASE("a part decays like its full variable", "[optimizers]") {
  const auto make = [] {
    OptimizerHandle adam = AdamW(0.1, {.weight_decay = 0.3});
    adam->exclude_from_weight_decay({.var_names = {"bias"}});
    return adam;
  };
  check_parts(make);

  const OptimizerHandle by_variable = SGD(0.1, {.weight_decay = 0.5});
  std::vector<Variable> full = variables();
  by_variable->exclude_from_weight_decay({.var_list = {full[0]}});
  Variable part("dense/kernel", replicated(at::ones({2, 3}, at::kDouble)));
  PartUpdater updater(by_variable);
  updater.build(part, full[0]);
  updater.apply({replicated(at::zeros({2, 3}, at::kDouble))}, {part});
  CHECK(at::equal(part.value().full(), at::ones({2, 3}, at::kDouble)));
  CHECK_THROWS_AS(updater.build(part, full[0]), StateError);
}

TEST_CASE("an optimizer whose strategy is removed updates variables again", "[optimizers]") {
  std::vector<Variable> own = variables();
  const OptimizerHandle sgd = SGD(1.0);
  int64_t handed = 0;
  const auto count = [&](const auto&, const auto&) { ++handed; };
  sgd->set_update_strategy(std::make_shared<FunctionStrategy>(count));
  const std::vector<DTensor> gradients = {replicated(draw(3)), {}};
  sgd->apply(gradients, own);
  CHECK(handed == 1);
  sgd->set_update_strategy(nullptr);
  sgd->apply(gradients, own);
  CHECK(handed == 1);
  CHECK(at::allclose(own[0].value().full(), draw(1) - draw(3), 0, 1e-12));
}

TEST_CASE("parts of variables are refused by optimizers that need all of them") {
  const Mesh mesh = create_mesh({{"batch", 1}});
  const Variable full = test::matrix("hidden/kernel", Layout::replicated(mesh, 2));
  const Variable part("hidden/kernel",
                      pack(at::ones({2, 4}, at::kDouble), Layout::replicated(mesh, 2)));
  for (const OptimizerHandle& optimizer :
       {OptimizerHandle(Lamb()), OptimizerHandle(Muon()), OptimizerHandle(Adafactor())}) {
    CHECK_THROWS_WITH(PartUpdater(optimizer).build(part, full),
                      Catch::StartsWith("[" + optimizer->class_name() + "]") &&
                          Catch::Contains("(2, 4) of hidden/kernel (6, 4)"));
  }
  CHECK_NOTHROW(PartUpdater(Lamb()).build(full, full));
  CHECK_THROWS_AS(PartUpdater(Adafactor()).build(full, full), ConfigError);
  CHECK_THROWS_AS(PartUpdater(ScheduleFreeAdamW()).build(full, full), ConfigError);
  CHECK_NOTHROW(PartUpdater(Lion()).build(part, full));
}

}  // namespace parts_test
