#include <tessera/tessera.hpp>

#include <numeric>

#include <ATen/ATen.h>

#include <tessera/framework/comm/comm_log.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/small_model.hpp"

namespace optimizer_options_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// Returns the weights after two epochs of 32 rows, in order.
std::vector<at::Tensor> trained(const OptimizerHandle& optimizer, int64_t batch_size,
                                const LayoutMap& layouts) {
  const Sequential model = test::small_model();
  CompileOptions compile = test::small_compile(layouts);
  compile.optimizer = optimizer;
  model.compile(compile);
  model.fit(test::small_data(32),
            {.batch_size = batch_size, .epochs = 2, .verbose = 0, .shuffle = false});
  return test::full_weights(model);
}

std::string differs(const std::vector<at::Tensor>& actual,
                    const std::vector<at::Tensor>& expected) {
  if (actual.size() != expected.size()) return "another number of weights";
  std::string text;
  for (size_t i = 0; i < actual.size(); ++i) {
    text += test::difference(actual[i], expected[i], 1e-9, 1e-12);
  }
  return text;
}

std::vector<LayoutMap> layout_maps() {
  return {test::small_layouts("data", create_mesh({{"batch", 4}})),
          test::small_layouts("fsdp", create_mesh({{"batch", 2}})),
          test::small_layouts("model", create_mesh({{"batch", 2}, {"model", 2}}))};
}

}  // namespace

TEST_CASE("accumulated small batches train like large ones") {
  for (const LayoutMap& layouts : layout_maps()) {
    CAPTURE(layouts.mesh().describe());
    const auto large = trained(Adam(1e-2, {.global_clipnorm = 0.3}), 16, layouts);
    const Adam accumulating(1e-2, {.global_clipnorm = 0.3, .gradient_accumulation_steps = 4});
    CHECK(differs(trained(accumulating, 4, layouts), large) == "");
    CHECK(accumulating->iterations() == 4);
    CHECK(accumulating->steps() == 16);
  }
}

TEST_CASE("accumulated gradients are all-reduced once for an update") {
  const auto log_of = [](const LayoutMap& layouts, const OptimizerHandle& optimizer) {
    const Sequential model = test::small_model();
    CompileOptions compile = test::small_compile(layouts);
    compile.optimizer = optimizer;
    compile.metrics = {};
    model.compile(compile);
    CommLog log;
    const CommLogScope scope(log);
    model.fit(test::small_data(32), {.batch_size = 8, .epochs = 1, .verbose = 0});
    return log;
  };
  const auto count = [](const CommLog& log, CommOp op, const std::string& dims) {
    int64_t sum = 0;
    for (const CommEntry& entry : log.entries()) {
      const bool weight = entry.place.find('/') != std::string::npos;
      sum += entry.op == op && entry.dims == dims && weight;
    }
    return sum;
  };
  // Three layers have a kernel and a bias each.
  const LayoutMap data = test::small_layouts("data", create_mesh({{"batch", 4}}));
  CHECK(count(log_of(data, Adam(1e-2)), CommOp::all_reduce, "batch") == 4 * 6);
  const Adam accumulating(1e-2, {.gradient_accumulation_steps = 4});
  CHECK(count(log_of(data, accumulating), CommOp::all_reduce, "batch") == 6);
  for (const Variable& owned : accumulating->variables()) {
    CHECK(owned.has_value() == (owned.path().find("accumulator") == std::string::npos));
  }
  // Sharded gradients are reduced to their shards in each step, so that none is held whole, and
  // over replicas once.
  LayoutMap hybrid(create_mesh({{"replica", 2}, {"batch", 2}}));
  hybrid.set_data("x", {AxisSpec{"replica", "batch"}, unsharded});
  hybrid.fully_shard("batch");
  const CommLog log = log_of(hybrid, Adam(1e-2, {.gradient_accumulation_steps = 4}));
  CHECK(count(log, CommOp::reduce_scatter, "batch") == 4 * 6);
  CHECK(count(log, CommOp::all_reduce, "replica") == 6);
  // A gradient that is to stay whole is summed whole.
  LayoutMap whole(create_mesh({{"batch", 4}}));
  whole.fully_shard({"batch", false, true});
  const CommLog late = log_of(whole, Adam(1e-2, {.gradient_accumulation_steps = 4}));
  CHECK(count(late, CommOp::reduce_scatter, "batch") == 6);
}

TEST_CASE("accumulation goes on from a checkpoint: with the same bits, or on another mesh") {
  const std::vector<LayoutMap> maps = layout_maps();
  for (size_t m = 0; m < maps.size(); ++m) {
    const LayoutMap& layouts = maps[m];
    CAPTURE(layouts.mesh().describe());
    const auto run = [&](int64_t stop, const LayoutMap& then) {
      const test::TempFolder folder;
      const auto compiled = [&](const LayoutMap& on) {
        const Sequential model = test::small_model();
        CompileOptions compile = test::small_compile(on);
        compile.optimizer = SGD(0.1, {.gradient_accumulation_steps = 4});
        model.compile(compile);
        model.build({4, 18});
        return model;
      };
      Sequential model = compiled(layouts);
      for (int64_t step = 0; step < 8; ++step) {
        std::vector<int64_t> rows(4);
        std::iota(rows.begin(), rows.end(), 4 * step);
        if (step == stop) {
          Checkpoint(model).save((folder / "half").string());
          model = compiled(then);
          Checkpoint(model).restore((folder / "half").string());
        }
        model.train_on_batch(test::small_data(32).get(rows));
      }
      return test::full_weights(model);
    };
    const std::vector<at::Tensor> through = run(-1, layouts);
    for (int64_t stop : {2, 7}) {
      const std::vector<at::Tensor> resumed = run(stop, layouts);
      for (size_t w = 0; w < through.size(); ++w) CHECK(at::equal(resumed[w], through[w]));
      CHECK(differs(run(stop, maps[(m + 1) % maps.size()]), through) == "");
    }
  }
}

TEST_CASE("a loss scale changes no weight") {
  for (const LayoutMap& layouts : layout_maps()) {
    CAPTURE(layouts.mesh().describe());
    const auto plain = trained(SGD(0.1), 8, layouts);
    CHECK(differs(trained(SGD(0.1, {.loss_scale_factor = 256}), 8, layouts), plain) == "");
  }
}

TEST_CASE("training ends with the moving averages of the weights") {
  for (const LayoutMap& layouts : layout_maps()) {
    CAPTURE(layouts.mesh().describe());
    const SGD sgd(0.1, {.momentum = 0.9, .use_ema = true, .ema_momentum = 0.5});
    const std::vector<at::Tensor> means = trained(sgd, 8, layouts);
    std::vector<at::Tensor> averages;
    for (const Variable& variable : sgd->variables()) {
      const std::string& path = variable.path();
      if (path.substr(path.rfind('/')) == "/average") averages.push_back(variable.value().full());
    }
    CHECK(differs(means, averages) == "");
    CHECK(differs(means, trained(SGD(0.1, {.momentum = 0.9}), 8, layouts)) != "");
  }
}

TEST_CASE("without a step the weights stay unchanged") {
  const Sequential model = test::small_model();
  CompileOptions compile = test::small_compile(layout_maps()[0]);
  compile.optimizer = SGD(0.1, {.use_ema = true});
  model.compile(compile);
  model.evaluate(test::small_data(8), {.verbose = 0});
  const std::vector<at::Tensor> before = test::full_weights(model);
  model.fit(test::small_data(8), {.epochs = 2, .verbose = 0, .initial_epoch = 2});
  CHECK(differs(test::full_weights(model), before) == "");
}

TEST_CASE("the average of a weight that is trained later begins with its value") {
  for (const LayoutMap& layouts : layout_maps()) {
    CAPTURE(layouts.mesh().describe());
    const Sequential model = test::small_model();
    model->build({{-1, 18}});
    CompileOptions compile = test::small_compile(layouts);
    compile.optimizer = SGD(0, {.use_ema = true});
    model.layers()[1]->set_trainable(false);
    for (int fit = 0; fit < 2; ++fit) {
      model.compile(compile);
      const std::vector<at::Tensor> before = test::full_weights(model);
      model.fit(test::small_data(8), {.verbose = 0});
      CHECK(differs(test::full_weights(model), before) == "");
      model.layers()[1]->set_trainable(true);
    }
  }
}

}  // namespace optimizer_options_test
