#include <tessera/framework/base/error.hpp>

#include "tests/parameter_server/fit_jobs.hpp"

namespace fit_test {

using namespace tessera;
using namespace tessera::test::fit_jobs;
using Catch::Matchers::Contains;
using strategy::FixedShardsPartitioner;

namespace {

/// Adds numbers that it makes itself to its outputs and its loss.
class Shifted final : public Model {
 public:
  Shifted() : Model(LayerOptions()) {}
  std::string class_name() const override { return "Shifted"; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override {
    return dense_(inputs[0], context) + ones({5});
  }
  DTensor compute_loss(const Batch& batch, const std::vector<DTensor>& y_pred) override {
    return Trainer::compute_loss(batch, y_pred) + ops::mean(y_pred[0] * ones({batch.rows, 1}));
  }

 private:
  LayerHandle dense_ = track(Dense(5, {.kernel_initializer = GlorotUniform({.seed = 5})}));
};

}  // namespace

TEST_CASE("parameter servers: fit with one worker equals fit on one device", "[fit]") {
  const auto [shards, devices] = GENERATE(table<int64_t, int64_t>({{1, 1}, {2, 1}, {3, 2}}));
  CAPTURE(shards, devices);
  const Fit fit = [](const ModelHandle& model) {
    return model.fit(test::small_data(rows), options_of());
  };
  const JobOutcome job = with_servers({.workers = 1,
                                       .servers = 2,
                                       .partitioner = FixedShardsPartitioner(shards),
                                       .devices_per_worker = devices},
                                      fit);
  CHECK(job.errors.all() == "");
  check_equal(job.chief, ordinary(fit));
  REQUIRE(job.workers.size() == 1);
  CHECK(job.workers[0].to_json() == job.chief.history.to_json());
}

TEST_CASE("parameter servers: all of fit's ways to weight and select rows", "[fit]") {
  std::vector<FitOptions> ways(4, options_of());
  ways[0].validation_data = {};
  ways[0].validation_split = 0.3;
  ways[1].class_weight = {{1, 2.0}, {3, 0.5}};
  ways[1].shuffle = false;
  ways[2].sample_weight = at::arange(1, rows + 1, at::kDouble) / 10;
  ways[2].steps_per_epoch = 3;
  ways[3].initial_epoch = 1;
  ways[3].validation_steps = 2;
  ways[3].validation_batch_size = 6;
  ways[3].validation_freq = 2;
  const size_t way = GENERATE(0, 1, 2, 3);
  CAPTURE(way);
  const Fit fit = [&](const ModelHandle& model) {
    return model.fit(test::small_data(rows), ways[way]);
  };
  const JobOutcome job = with_servers({}, fit);
  CHECK(job.errors.all() == "");
  check_equal(job.chief, ordinary(fit));
}

TEST_CASE("parameter servers: dropout and moving averages follow the steps", "[fit]") {
  const Make make = []() -> ModelHandle {
    const DenseOptions hidden{.activation = "relu",
                              .kernel_initializer = GlorotUniform({.seed = 5}),
                              .kernel_regularizer = L2(1e-3)};
    const Sequential model({Dense(12, hidden), BatchNormalization(), Dropout(0.3),
                            Dense(5, {.kernel_initializer = GlorotUniform({.seed = 6})})});
    CompileOptions compile = test::small_compile({});
    compile.optimizer = AdamW(1e-2, {.weight_decay = 0.01, .clipnorm = 0.5, .use_ema = true});
    model.compile(compile);
    return model;
  };
  const Fit fit = [](const ModelHandle& model) {
    return model.fit(test::small_data(rows), options_of());
  };
  const JobOutcome job =
      with_servers({.workers = 1, .partitioner = FixedShardsPartitioner(2)}, fit, make);
  CHECK(job.errors.chief == "");
  check_equal(job.chief, ordinary(fit, make), 1e-5);
}

TEST_CASE("parameter servers: values that a step makes are on the worker's mesh", "[fit]") {
  const Make make = [] {
    const ModelHandle model(std::make_shared<Shifted>());
    model.compile(test::small_compile({}));
    return model;
  };
  const Fit fit = [](const ModelHandle& model) {
    return model.fit(test::small_data(rows), options_of());
  };
  const int64_t devices = GENERATE(1, 2);
  CAPTURE(devices);
  const JobOutcome job = with_servers({.workers = 1, .devices_per_worker = devices}, fit, make);
  CHECK(job.errors.all() == "");
  check_equal(job.chief, ordinary(fit, make), 1e-5);
}

TEST_CASE("parameter servers: several fits, with changes between them", "[fit]") {
  const Fit fit = [](const ModelHandle& model) {
    FitOptions options = options_of();
    options.epochs = 1;
    model.fit(test::small_data(rows), options);
    // On the other tasks this changes values that nobody reads.
    model->optimizer()->set_learning_rate(5e-3);
    std::vector<at::Tensor> weights = model.get_weights();
    for (at::Tensor& weight : weights) weight = at::mul(weight, 0.5);
    model.set_weights(weights);
    return model.fit(test::small_data(rows, 3), options_of());
  };
  const JobOutcome job = with_servers({.partitioner = FixedShardsPartitioner(2)}, fit);
  CHECK(job.errors.all() == "");
  check_equal(job.chief, ordinary(fit));
}

TEST_CASE("parameter servers: a model recompiled between fits, and then as before", "[fit]") {
  const Fit fit = [](const ModelHandle& model) {
    const OptimizerHandle first = Adam(1e-2), second = SGD(0.1);
    FitOptions options = options_of();
    options.epochs = 1;
    const auto fit_with = [&](const OptimizerHandle& optimizer) {
      CompileOptions compile = test::small_compile({});
      compile.optimizer = optimizer;
      model.compile(compile);
      return model.fit(test::small_data(rows), options);
    };
    fit_with(first);
    fit_with(second);
    return fit_with(first);
  };
  const JobOutcome job = with_servers({.partitioner = FixedShardsPartitioner(2)}, fit);
  CHECK(job.errors.all() == "");
  check_equal(job.chief, ordinary(fit));
}

TEST_CASE("parameter servers: streams are read by step number", "[fit]") {
  const Fit fit = [](const ModelHandle& model) {
    const GeneratorDataset stream(
        [] {
          return [step = 0]() mutable -> std::optional<Examples> {
            if (step == 6) return std::nullopt;
            const TensorDataset all = test::small_data(8, 100 + step++);
            return all.get(std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
          };
        },
        {.steps = 6});
    return model.fit(stream, {.epochs = 2, .verbose = 0, .steps_per_epoch = 4});
  };
  const JobOutcome job = with_servers({}, fit);
  CHECK(job.errors.chief == "");
  check_equal(job.chief, ordinary(fit));
}

TEST_CASE("parameter servers: passes over a stream of unknown length go on", "[fit]") {
  // The 6 batches make 4 epochs: of 4 and 2 in turn, of 3 each, and of 6, whose end is the data's.
  const int64_t steps_per_epoch = GENERATE(4, 3, 6);
  CAPTURE(steps_per_epoch);
  const Fit fit = [&](const ModelHandle& model) {
    const GeneratorDataset stream([] {
      return [step = 0]() mutable -> std::optional<Examples> {
        if (step == 6) return std::nullopt;
        const TensorDataset all = test::small_data(8, 100 + step++);
        return all.get(std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
      };
    });
    return model.fit(stream, {.epochs = 4,
                              .verbose = 0,
                              .validation_data = stream,
                              .steps_per_epoch = steps_per_epoch,
                              .validation_steps = 7});
  };
  const JobOutcome job = with_servers({}, fit);
  CHECK(job.errors.all() == "");
  check_equal(job.chief, ordinary(fit));
  CHECK(job.chief.history.steps.size() == (steps_per_epoch == 6 ? 24 : 12));
}

TEST_CASE("parameter servers: what fit does not support is refused on every task", "[fit]") {
  const auto error_with = [](const std::function<void(CompileOptions&)>& change) {
    const Make make = [&]() -> ModelHandle {
      const Sequential model = test::small_model();
      CompileOptions compile = test::small_compile({});
      change(compile);
      model.compile(compile);
      return model;
    };
    const Fit fit = [](const ModelHandle& model) {
      return model.fit(test::small_data(rows), options_of());
    };
    const JobOutcome job = with_servers({}, fit, make);
    for (const std::string& error : job.errors.workers) CHECK(error == job.errors.chief);
    for (const std::string& error : job.errors.servers) CHECK(error == job.errors.chief);
    return job.errors.chief;
  };
  CHECK_THAT(error_with([](CompileOptions& compile) {
               compile.optimizer = SGD(0.1, {.gradient_accumulation_steps = 2});
             }),
             Contains("every step sends its gradients. Received: gradient_accumulation_steps=2"));
  CHECK_THAT(error_with([](CompileOptions& compile) {
               compile.mesh = create_mesh({{"batch", 2}});
             }),
             Contains("must have the strategy's layouts. Received: hidden_1/kernel"));
}

}  // namespace fit_test
