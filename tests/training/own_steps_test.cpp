// Training steps of a user's own: named values, trackers, optimizers, random numbers.
#include <tessera/tessera.hpp>

#include <cstdlib>
#include <set>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace own_steps_test {

using namespace tessera;
using Catch::Contains;
using test::difference;

namespace {

constexpr const char* dtype = "float64";
const LayerOptions plain{.dtype = dtype};

/// Two models that are trained against each other; there is no call().
class Gan final : public Model {
 public:
  Gan() : Model(plain) {
    track("judge", judge_);
    track("maker", maker_);
  }
  std::string class_name() const override { return "Gan"; }
  std::vector<MetricHandle> trackers() const override { return {spread_}; }

  StepValues train_step(const Batch& batch) override {
    const CallContext context = training_context();
    const DTensor noise = ops::random_normal({batch.rows, 3}, seeds_.next(), 0.0, 1.0, at::kDouble);
    DTensor d_loss, g_loss;
    {
      GradientTape tape;
      const DTensor on_real = judge_(batch.x[0], context);
      const DTensor on_made = judge_(maker_(noise, context), context);
      d_loss = ops::mean(ops::softplus(-on_real)) + ops::mean(ops::softplus(on_made));
      const std::vector<Variable> weights = judge_.trainable_weights();
      d_optimizer_->apply_gradients(tape.gradient(d_loss, weights), weights);
    }
    {
      GradientTape tape;
      const DTensor made = maker_(noise, context);
      g_loss = ops::mean(ops::softplus(-judge_(made, context)));
      const std::vector<Variable> weights = maker_.trainable_weights();
      g_optimizer_->apply_gradients(tape.gradient(g_loss, weights), weights);
      spread_.update(ops::abs(made));
    }
    return {{"d_loss", d_loss}, {"g_loss", g_loss}};
  }

 private:
  Sequential judge_{{Dense(8, {.activation = "tanh", .name = "hidden", .dtype = dtype}),
                     Dropout(0.5, {.dtype = dtype}), Dense(1, {.name = "out", .dtype = dtype})},
                    {.name = "judge"}};
  Sequential maker_{{Dense(4, {.activation = "tanh", .name = "hidden", .dtype = dtype}),
                     Dense(2, {.name = "out", .dtype = dtype})},
                    {.name = "maker"}};
  OptimizerHandle d_optimizer_ = Adam(0.01);
  OptimizerHandle g_optimizer_ = SGD(0.1, {.momentum = 0.9});
  SeedGenerator seeds_{7};
  Mean spread_{{.name = "spread"}};
};

struct Trained {
  History history;
  StepRecords records;
  std::vector<at::Tensor> weights;
};

Trained trained_gan(const CompileOptions& options) {
  set_random_seed(3);
  Gan gan;
  gan.compile(options);
  const at::Tensor x = at::sin(at::arange(44, at::kDouble)).reshape({22, 2});
  Trained result;
  result.history = gan.fit(DatasetHandle(x), {.batch_size = 4, .epochs = 3, .verbose = 0});
  result.records = gan.step_records();
  result.weights = gan.get_weights();
  return result;
}

void check_same(const Trained& a, const Trained& b) {
  REQUIRE(a.weights.size() == b.weights.size());
  for (size_t i = 0; i < a.weights.size(); ++i)
    CHECK(difference(a.weights[i], b.weights[i], 1e-12, 1e-12) == "");
  for (const auto& [name, values] : a.history.history) {
    CAPTURE(name);
    for (size_t e = 0; e < values.size(); ++e) {
      CHECK(b.history.at(name)[e] == Approx(values[e]).epsilon(1e-12));
    }
  }
}

LayoutMap layouts(const MeshDims& dims) {
  LayoutMap map(create_mesh(dims));
  if (dims.size() > 1) map[".*hidden/kernel"] = {unsharded, "model"};
  return map;
}

/// Sets $TESSERA_RECORD_STEPS while alive.
class RecordStepsVariable {
 public:
  explicit RecordStepsVariable(const char* mode) { ::setenv("TESSERA_RECORD_STEPS", mode, 1); }
  ~RecordStepsVariable() { ::unsetenv("TESSERA_RECORD_STEPS"); }
};

/// Returns its inputs' means as named values.
class Means final : public Model {
 public:
  explicit Means(std::string name = "mean") : Model(plain), value_(std::move(name)) {}
  std::string class_name() const override { return "Means"; }
  std::vector<MetricHandle> trackers() const override { return {largest_}; }
  StepValues train_step(const Batch& batch) override {
    largest_.update(batch.x[0]);
    return {{value_, ops::mean(batch.x[0])}, {"loss", ops::mean(ops::square(batch.x[0]))}};
  }
  StepValues test_step(const Batch& batch) override {
    return {{"mean", ops::mean(batch.x[0])}, {"twice", 2 * ops::mean(batch.x[0])}};
  }

 private:
  std::string value_;
  Mean largest_{{.name = "tracked"}};
};

}  // namespace

TEST_CASE("a model without call() and with two optimizers trains by its step, on any mesh") {
  const Trained eager = trained_gan({.run_eagerly = true, .mesh = create_mesh({{"batch", 1}})});
  CHECK_THROWS_AS(eager.history.at("loss"), StateError);
  for (const char* name : {"d_loss", "g_loss", "spread"}) {
    CAPTURE(name);
    const std::vector<double>& values = eager.history.at(name);
    CHECK(values.size() == 3);
    CHECK(values[0] != values[2]);
  }
  CHECK(eager.history.steps.size() == 18);
  for (const MeshDims& dims :
       {MeshDims{{"batch", 1}}, MeshDims{{"batch", 2}}, MeshDims{{"batch", 2}, {"model", 2}}}) {
    CAPTURE(dims.size(), dims[0].second);
    const Trained recorded = trained_gan({.record_steps = true, .layouts = layouts(dims)});
    CHECK(recorded.records.why == "");
    CHECK(recorded.records.replayed > 8);
    check_same(recorded, eager);
  }
}

TEST_CASE("named values are means over the rows of an epoch, and trackers begin anew") {
  Means model;
  model.compile({});
  const at::Tensor x = at::arange(10, at::kDouble).reshape({5, 2});
  const History history = model.fit(DatasetHandle(x), {.batch_size = 2, .epochs = 2, .verbose = 0});
  for (size_t epoch : {0, 1}) {
    CHECK(history.at("mean")[epoch] == Approx(4.5));
    CHECK(history.at("loss")[epoch] == Approx(28.5));
    CHECK(history.at("tracked")[epoch] == Approx(4.5));
  }
  const Logs logs = model.evaluate(DatasetHandle(x), {.batch_size = 2, .verbose = 0});
  REQUIRE(logs.size() == 3);
  CHECK(find_value(logs, "mean") == Approx(4.5));
  CHECK(find_value(logs, "twice") == Approx(9));
  CHECK(model.metrics_names() == std::vector<std::string>{"mean", "tracked", "twice"});
}

TEST_CASE("named values of a resumed epoch go on") {
  const at::Tensor x = at::arange(12, at::kDouble).reshape({6, 2});
  Json totals;
  Means first;
  first.compile({});
  first.train_on_batch(Examples{.x = {x.slice(0, 0, 4)}});
  totals = first.metric_totals();
  Means second;
  second.compile({});
  LambdaCallbackOptions resume;
  resume.on_train_begin = [&] {
    second.set_fit_position({.epoch = 0, .step = 1});
    second.restore_metric_totals(totals);
  };
  const History history = second.fit(
      DatasetHandle(x),
      {.batch_size = 4, .verbose = 0, .callbacks = {LambdaCallback(resume)}, .shuffle = false});
  CHECK(history.at("mean")[0] == Approx(5.5));
  CHECK(history.at("tracked")[0] == Approx(5.5));
}

TEST_CASE("values that a step cannot return are refused by name") {
  const at::Tensor x = at::ones({4, 2}, at::kDouble);
  Means taken("tracked");
  taken.compile({});
  CHECK_THROWS_WITH(taken.train_on_batch(Examples{.x = {x}}), Contains("both have \"tracked\""));
  CHECK_THROWS_WITH(StepValues({{"a", ones({})}, {"a", ones({})}}), Contains("two called \"a\""));
  CHECK_THROWS_WITH(StepValues(std::vector<std::pair<std::string, DTensor>>()),
                    Contains("no values"));
  CHECK(StepValues({{"a", ones({})}, {"b", zeros({})}}).loss().item() == 1);
  CHECK(StepValues({{"a", ones({})}, {"loss", zeros({})}}).loss().item() == 0);
}

TEST_CASE("a model without call() and without a step of its own says so") {
  class Empty final : public Model {
   public:
    Empty() : Model(LayerOptions()) {}
    std::string class_name() const override { return "Empty"; }
  };
  Empty model;
  model.compile({.optimizer = "sgd", .loss = "mse"});
  CHECK_THROWS_WITH(model.fit(at::ones({4, 2}), at::ones({4, 1}), {.verbose = 0}),
                    Contains("neither call() nor call_all()"));
}

TEST_CASE("a recorded step is compared with its code on request") {
  double factor = 1;
  class Scaled final : public Layer {
   public:
    explicit Scaled(const double& factor) : Layer(plain), factor_(factor) {}
    std::string class_name() const override { return "Scaled"; }

   protected:
    DTensor call(const Inputs& inputs, const CallContext&) override { return inputs[0] * factor_; }

   private:
    const double& factor_;
  };
  const RecordStepsVariable mode("check:3");
  Sequential model({Dense(2, {.name = "out", .dtype = dtype}), Dropout(0.5, {.dtype = dtype}),
                    make_layer<Scaled>(factor)});
  model.compile({.optimizer = SGD(0.1), .loss = "mse", .record_steps = true});
  const at::Tensor x = at::sin(at::arange(8, at::kDouble)).reshape({4, 2});
  for (int i = 0; i < 12; ++i) model.train_on_batch(x, x);
  CHECK(model.step_records().checked == 3);
  CHECK(model.step_records().replayed == 7);
  factor = 2;
  CHECK_THROWS_WITH(
      [&] {
        for (int i = 0; i < 3; ++i) model.train_on_batch(x, x);
      }(),
      Contains("a recorded step does what the code does. Received: operation") &&
          Contains("in scaled: "));
}

TEST_CASE("an unknown mode of recording is refused") {
  const RecordStepsVariable mode("check:0");
  Sequential model({Dense(2)});
  CHECK_THROWS_WITH(model.compile({.optimizer = "sgd", .loss = "mse"}),
                    Contains("never, always, check or check:N"));
}

TEST_CASE("a SeedGenerator outside of steps draws on, each generator from its seed") {
  SeedGenerator a(1), b(1), c(2);
  const at::Tensor first = a.next().full(), second = a.next().full();
  CHECK_FALSE(at::equal(first, second));
  CHECK(at::equal(b.next().full(), first));
  CHECK_FALSE(at::equal(c.next().full(), first));
}

}  // namespace own_steps_test
