// Options that all optimizers share through BaseOptions: clipping, accumulation, moving averages,
// the loss scale and decay, with their communication.
#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/optimizers/optimizers.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/optimizer_cases.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace options_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

Variable weight_at(const std::string& path, const Layout& layout,
                   std::optional<Layout> slots = std::nullopt) {
  Variable made(path, pack(at::ones({8, 4}), layout));
  made.place({made.shape(), layout, std::nullopt, slots});
  return made;
}

DTensor pending_ones(const Mesh& mesh, DimMask dims) {
  return filled({8, 4}, 1, at::kFloat, Layout::replicated(mesh, 2).with_partial(dims, Reduce::sum));
}

int64_t bytes_here(const Variable& variable) {
  int64_t bytes = 0;
  for (const at::Tensor& block : variable.value().blocks()) {
    bytes += static_cast<int64_t>(block.nbytes());
  }
  return bytes;
}

}  // namespace

TEST_CASE("without options a step costs no more than before") {
  const Mesh mesh = create_mesh({{"batch", 4}});
  Variable w = weight_at("kernel", Layout::replicated(mesh, 2));
  const Adam adam;
  CommLog log;
  const CommLogScope scope(log);
  adam->apply({pending_ones(mesh, 1)}, {w});
  CHECK(log.to_string().find("all_reduce") != std::string::npos);
  CHECK(log.entries().size() == 1);
  CHECK(adam->variables().size() == 2);
}

TEST_CASE("a global norm costs one all-reduce for each set of dimensions that shard weights") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  const std::vector<Layout> layouts = {Layout::replicated(mesh, 2),
                                       Layout({unsharded, "model"}, mesh),
                                       Layout({"model", unsharded}, mesh),
                                       Layout({"model", "batch"}, mesh),
                                       Layout({AxisSpec{"batch", "model"}, unsharded}, mesh),
                                       Layout::replicated(mesh, 2)};
  std::vector<Variable> variables;
  for (const Layout& layout : layouts) {
    variables.push_back(weight_at(str("w", variables.size()), layout));
  }
  // Reducing a value once updates all its handles.
  const auto gradients = [&] {
    std::vector<DTensor> fresh;
    for (size_t i = 0; i < variables.size(); ++i) fresh.push_back(pending_ones(mesh, 1));
    return fresh;
  };
  for (const SGDOptions& options : {SGDOptions{.global_clipnorm = 1}, {.clipnorm = 1}}) {
    const SGD sgd(0.1, options), plain(0.1);
    CommLog with, without;
    {
      const CommLogScope scope(without);
      plain->apply(gradients(), variables);
    }
    const CommLogScope scope(with);
    sgd->apply(gradients(), variables);
    CHECK(with.entries().size() == without.entries().size() + 2);
    CHECK(with.count(CommOp::all_reduce, "model") ==
          without.count(CommOp::all_reduce, "model") + 1);
    CHECK(with.count(CommOp::all_reduce, "batch,model") ==
          without.count(CommOp::all_reduce, "batch,model") + 1);
  }
}

TEST_CASE("with ZeRO all optimizer state is sharded like the slots") {
  const BlockPolicyScope policy(BlockPolicy::per_device);
  const Mesh mesh = create_mesh({{"batch", 4}, {"model", 2}});
  const Layout layout = Layout({unsharded, "model"}, mesh);
  const Layout slots = Layout({"batch", "model"}, mesh);
  Variable w = weight_at("kernel", layout, slots);
  const Adam adam(0.1, {.global_clipnorm = 1, .use_ema = true, .gradient_accumulation_steps = 2});
  CommLog log;
  const CommLogScope scope(log);
  adam->apply({pending_ones(mesh, 1)}, {w});
  CHECK(log.entries().size() == 1);
  CHECK(log.count(CommOp::reduce_scatter, "batch") == 1);
  CHECK(adam->variables().size() == 4);
  for (const Variable& state : adam->variables()) {
    CHECK(state.value().layout() == slots);
    CHECK(bytes_here(state) == 8 * shard_bytes(w.shape(), w.dtype(), slots));
    CHECK(bytes_here(state) * 4 == bytes_here(w));
  }
  log.clear();
  adam->apply({pending_ones(mesh, 1)}, {w});
  CHECK(log.entries().size() == 3);
  CHECK(log.count(CommOp::reduce_scatter, "batch") == 1);
  CHECK(log.count(CommOp::all_reduce, "batch,model") == 1);
  CHECK(log.count(CommOp::all_gather, "batch") == 1);
  CHECK(w.value().layout() == layout);
  log.clear();
  adam->finalize_variable_values({w});
  CHECK(log.entries().size() == 1);
  CHECK(log.count(CommOp::all_gather, "batch") == 1);
}

TEST_CASE("all optimizer state is updated in place and has a path") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  Variable w = weight_at("dense/kernel", Layout::batch_sharded(mesh, "batch", 2));
  const RMSprop optimizer(0.1, {.momentum = 0.5,
                                .centered = true,
                                .use_ema = true,
                                .gradient_accumulation_steps = 2,
                                .name = "mine"});
  const DTensor gradient = pack(at::ones({8, 4}), w.layout());
  for (int step = 0; step < 2; ++step) optimizer->apply({gradient}, {w});
  std::vector<std::string> paths;
  std::vector<const void*> memory;
  for (const Variable& state : optimizer->variables()) {
    paths.push_back(state.path());
    memory.push_back(state.value().blocks()[0].data_ptr());
    CHECK_FALSE(state.trainable());
  }
  CHECK(paths ==
        std::vector<std::string>{"mine/dense/kernel/velocity", "mine/dense/kernel/momentum",
                                 "mine/dense/kernel/average_gradient", "mine/dense/kernel/average",
                                 "mine/dense/kernel/gradient_accumulator"});
  memory.push_back(w.value().blocks()[0].data_ptr());
  for (int step = 0; step < 4; ++step) optimizer->apply({gradient}, {w});
  std::vector<const void*> later;
  for (const Variable& state : optimizer->variables()) {
    later.push_back(state.value().blocks()[0].data_ptr());
  }
  later.push_back(w.value().blocks()[0].data_ptr());
  CHECK(later == memory);
  CHECK(difference(gradient.full(), at::ones({8, 4})) == "");
}

TEST_CASE("a gradient that shares the weight's memory is not changed during the step") {
  const Layout layout = Layout::replicated(create_mesh({{"batch", 1}}), 2);
  Variable w = weight_at("kernel", layout);
  const SGD sgd(0.5, {.weight_decay = 1, .use_ema = true});
  const DTensor gradient = w.value();
  sgd->apply({gradient}, {w});
  CHECK(difference(gradient.full(), at::ones({8, 4})) == "");
  CHECK(difference(w.value().full(), at::zeros({8, 4})) == "");
}

TEST_CASE("a planned step logs the communication of a real one and leaves the counters unchanged") {
  for (const Mesh& mesh : {virtual_mesh({4}), virtual_mesh({2, 3})}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const std::vector<WeightLayouts> weight_layouts = mixed_weight_layouts(mesh, seed);
      INFO(short_name(mesh) << " " << test::to_string(weight_layouts));
      const std::vector<Variable> weights = golden_weights(weight_layouts);
      const Adam adam(0.1, {.weight_decay = 0.1,
                            .global_clipnorm = 0.5,
                            .use_ema = true,
                            .gradient_accumulation_steps = 2});
      adam->build(weights);
      CommLog planned, real;
      {
        const AbstractScope plans_only(mesh);
        const CommLogScope scope(planned);
        adam->apply(golden_gradients(0, weight_layouts), weights);
      }
      CHECK(adam->steps() == 0);
      adam->apply(golden_gradients(0, weight_layouts), weights);
      const CommLogScope scope(real);
      adam->apply(golden_gradients(1, weight_layouts), weights);
      CHECK(planned.to_string() == real.to_string());
    }
  }
}

TEST_CASE("schedules and iterations follow updates") {
  Variable w = weight_at("kernel", Layout::replicated(create_mesh({{"batch", 1}}), 2));
  const SGD sgd(PiecewiseConstantDecay({1, 3}, {1.0, 0.5, 0.25}),
                {.gradient_accumulation_steps = 2});
  CHECK(sgd->has_schedule());
  std::vector<double> rates;
  for (int step = 0; step < 5; ++step) {
    rates.push_back(sgd->learning_rate());
    CHECK(sgd->iterations() == step / 2);
    CHECK(sgd->steps() == step);
    sgd->apply({pack(at::zeros({8, 4}), w.layout())}, {w});
  }
  CHECK(rates == std::vector<double>{1, 1, 1, 1, 0.5});
  sgd->set_steps(0);
  CHECK(sgd->learning_rate() == 1);
  sgd->set_learning_rate(ExponentialDecay(0.5, 1, 0.5));
  CHECK(sgd->learning_rate() == 0.5);
  CHECK_THROWS_WITH(sgd->set_learning_rate(0.1),
                    "[SGD] a number cannot replace a learning-rate schedule. Received: a number. "
                    "To fix: set another schedule, or create the optimizer with a number.");
  const SGD plain(0.1);
  plain->set_learning_rate(CosineDecay(0.2, 10));
  CHECK(plain->learning_rate() == Approx(0.2));
}

TEST_CASE("moving averages follow updates, and begin with the first") {
  for (const Mesh& mesh : {virtual_mesh({1}), virtual_mesh({3}), virtual_mesh({2, 2})}) {
    CAPTURE(short_name(mesh));
    for (const Layout& layout :
         {Layout::replicated(mesh, 2), Layout::batch_sharded(mesh, "x", 2)}) {
      Variable w = weight_at("kernel", layout);
      const SGD sgd(0.5, {.use_ema = true, .ema_momentum = 0.5, .gradient_accumulation_steps = 2});
      const auto average = [&] { return sgd->variables_of(w)[0].value().full(); };
      const auto step = [&] { sgd->apply({pack(at::ones({8, 4}), layout)}, {w}); };
      step();
      sgd->finalize_variable_values({w});
      CHECK(difference(w.value().full(), at::ones({8, 4})) == "");
      step();
      CHECK(difference(w.value().full(), at::full({8, 4}, 0.5)) == "");
      CHECK(difference(average(), at::full({8, 4}, 0.5)) == "");
      step();
      CHECK(difference(average(), at::full({8, 4}, 0.5)) == "");
      step();
      CHECK(difference(w.value().full(), at::zeros({8, 4})) == "");
      CHECK(difference(average(), at::full({8, 4}, 0.25)) == "");
      step();
      sgd->finalize_variable_values({w});
      CHECK(difference(w.value().full(), at::full({8, 4}, 0.25)) == "");
    }
  }
}

TEST_CASE("constraints are applied after updates") {
  const Layout layout = Layout::replicated(create_mesh({{"batch", 2}}), 1);
  Variable w(
      VariableSpec{.path = "w", .shape = {2}, .initializer = "ones", .constraint = "non_neg"});
  w.place({{2}, layout});
  w.assign(pack(at::tensor({-1.f, 1.f}), layout));
  const SGD sgd(1.0, {.gradient_accumulation_steps = 2});
  sgd->apply({pack(at::tensor({0.f, 1.f}), layout)}, {w});
  CHECK(difference(w.value().full(), at::tensor({-1.f, 1.f})) == "");
  sgd->apply({pack(at::tensor({0.f, 3.f}), layout)}, {w});
  CHECK(difference(w.value().full(), at::tensor({0.f, 0.f})) == "");
}

TEST_CASE("a scaled loss gives the unscaled gradients") {
  const Layout layout = Layout::replicated(create_mesh({{"batch", 1}}), 2);
  Variable w = weight_at("kernel", layout);
  const SGD sgd(0.1, {.loss_scale_factor = 1024});
  GradientTape tape;
  const DTensor loss = sgd->scale_loss(ops::sum(ops::mul(w.read(), w.read())));
  CHECK(loss.item() == 1024 * 32);
  sgd->apply(tape.gradient(loss, std::vector{w.value()}), {w});
  CHECK(difference(w.value().full(), at::full({8, 4}, 0.8), 1e-6) == "");
  const DTensor same = ops::sum(w.read());
  CHECK(SGD()->scale_loss(same).id() == same.id());
}

TEST_CASE("averages belong to the variables they were built for") {
  const Layout layout = Layout::replicated(create_mesh({{"batch", 1}}), 2);
  Variable w = weight_at("kernel", layout), other = weight_at("other", layout);
  const SGD sgd(0.1, {.use_ema = true});
  sgd->apply({pack(at::ones({8, 4}), layout)}, {w});
  CHECK_THROWS_WITH(sgd->finalize_variable_values({other}), Catch::Contains("[other]"));
  CHECK_NOTHROW(SGD()->finalize_variable_values({other}));
}

}  // namespace options_test
