#include <tessera/framework/nn/internal/random_stream.hpp>
#include <tessera/framework/training/capture/step_capture.hpp>

#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/ops/random.hpp>

#include "tests/training/recorded.hpp"

namespace recorded_code_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

/// Doubles its input by user-defined code.
class Twice : public Layer {
 public:
  using Body = std::function<DTensor(const DTensor&, const CallContext&)>;
  explicit Twice(Body body = {}) : Layer({.dtype = "float64"}), body_(std::move(body)) {}
  std::string class_name() const override { return "Twice"; }
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override {
    return body_ ? body_(inputs[0], context) : inputs[0] + inputs[0];
  }

 private:
  Body body_;
};

Sequential with_own_layer(Twice::Body body = {}) {
  Sequential model = small_model();
  model.add(make_layer<Twice>(std::move(body)));
  return model;
}

Outcome recorded(const Twice::Body& body) {
  CompileOptions options = small_compile(one_device());
  options.record_steps = true;
  return trained(with_own_layer(body), options, 2);
}

}  // namespace

TEST_CASE("user-defined code is recorded only with record_steps") {
  CompileOptions options = small_compile(one_device());
  const Outcome eager = trained(with_own_layer(), options, 2);
  CHECK(eager.records.replayed == 0);
  CHECK_THAT(eager.records.why, Contains("layer Twice (twice)") && Contains("record_steps"));
  const Outcome replayed = recorded({});
  CHECK(replayed.records.replayed > 0);
  check_equal(replayed, eager);
  options = small_compile(one_device());
  options.loss_weights = 1;
  options.record_steps = false;
  CHECK(trained(small_model(), options, 2).records.replayed == 0);
}

namespace {

class ReplayedTwice final : public Twice {
 public:
  using Twice::Twice;
  bool can_be_replayed() const override { return true; }
};

/// Derived from a class of Tessera's that can be replayed.
class OwnSequential final : public SequentialModel {
 public:
  using SequentialModel::SequentialModel;
};

class OwnLoss final : public Loss {
 public:
  OwnLoss() : Loss(Reduction::sum_over_batch_size, "own") {}
  std::string class_name() const override { return "OwnLoss"; }
  Json config() const override { return Json::object(); }
  DTensor call(const DTensor&, const DTensor& y_pred) const override {
    return ops::mean(ops::square(y_pred), {-1});
  }
};

class OwnPenalty final : public Regularizer {
 public:
  std::string class_name() const override { return "OwnPenalty"; }
  Json config() const override { return Json::object(); }
  DTensor operator()(const DTensor& x) const override { return ops::sum(ops::square(x)); }
};

}  // namespace

TEST_CASE("a user-defined class may declare that it can be replayed") {
  Sequential model = small_model();
  model.add(make_layer<ReplayedTwice>());
  const Outcome replayed = trained(model, small_compile(one_device()), 2);
  CHECK(replayed.records.replayed > 0);
  check_equal(replayed, trained(with_own_layer(), small_compile(one_device()), 2));
}

TEST_CASE("derived classes are user-defined code, whatever their base declares") {
  CHECK(Sequential({})->can_be_replayed());
  CHECK_FALSE(OwnSequential({}, {}).can_be_replayed());
  const auto why = [](const Sequential& model, const LossHandle& loss) {
    CompileOptions options = small_compile(one_device());
    options.loss = loss;
    options.metrics = {};
    return trained(model, options, 2).records.why;
  };
  CHECK_THAT(why(small_model(), LossHandle(std::make_shared<OwnLoss>())),
             Contains("the loss OwnLoss"));
  const RegularizerHandle penalty(std::make_shared<OwnPenalty>());
  CHECK_THAT(why(Sequential({Dense(5, {.kernel_regularizer = penalty, .dtype = "float64"})}),
                 SparseCategoricalCrossentropy({.from_logits = true})),
             Contains("the regularizer of dense/kernel"));
}

TEST_CASE("a custom activation is user-defined code") {
  Sequential model(
      {Dense(5, {.activation = [](const DTensor& x) { return x * 2; }, .dtype = "float64"})});
  CHECK_THAT(trained(model, small_compile(one_device()), 2).records.why,
             Contains("an activation function"));
}

TEST_CASE("operations that cannot be replayed end the recording, and steps stay eager") {
  const auto why = [](const Twice::Body& body) {
    const Outcome outcome = recorded(body);
    CHECK(outcome.records.replayed == 0);
    CHECK(outcome.losses.size() == 14);
    return outcome.records.why;
  };
  CHECK_THAT(why([](const DTensor& x, const CallContext&) {
               return x * ops::sum(x).full().item<double>();
             }),
             Contains("read on the host"));
  CHECK_THAT(why([](const DTensor& x, const CallContext&) {
               return x + Variable("fresh", filled({5}, 1, at::kDouble), false).value();
             }),
             Contains("a Variable was made"));
  const Variable other("other", filled({5}, 1, at::kDouble), false);
  CHECK_THAT(why([&](const DTensor& x, const CallContext&) { return x + other.value(); }),
             Contains("not one of the model's weights"));
  CHECK_THAT(why([](const DTensor& x, const CallContext& context) {
               if (!context.random) return x;
               return ops::dropout(x, 0.5, ops::seed_input(context.random->next("own"), x.mesh()));
             }),
             Contains("next_input()"));
  const auto own_metric = make_metric("mean_squared_error", "own");
  CHECK_THAT(why([&](const DTensor& x, const CallContext&) {
               own_metric->reset();
               return x;
             }),
             Contains("a metric was reset"));
  CHECK_THAT(why([](const DTensor& x, const CallContext& context) {
               if (!context.random) return x;
               RandomStream elsewhere(global_seed(), 12345);
               return ops::dropout(x, 0.5, elsewhere.next_input("own", x.mesh()));
             }),
             Contains("another step"));
  CHECK_THAT(why([](const DTensor& x, const CallContext&) {
               return x + DTensor(x.sharding(), x.blocks());
             }),
             Contains("no operation made"));
}

namespace {

/// A custom step: the stock one, and a count.
class Counting : public SequentialModel {
 public:
  using SequentialModel::SequentialModel;
  StepValues train_step(const Batch& batch) override {
    const DTensor loss = SequentialModel::train_step(batch).loss();
    steps.assign_add(filled({}, 1, at::kDouble));
    return loss;
  }
  Variable steps = Variable("steps", filled({}, 0, at::kDouble));
  std::vector<Variable> weights() const override {
    std::vector<Variable> all = SequentialModel::weights();
    all.push_back(steps);
    return all;
  }
};

}  // namespace

TEST_CASE("a custom step and the stock one inside it are recorded separately") {
  const auto count = [](bool eagerly) {
    const auto model = std::make_shared<Counting>(
        std::vector<LayerHandle>{Dense(5, {.name = "logits", .dtype = "float64"})},
        SequentialOptions());
    CompileOptions options = small_compile(one_device());
    options.run_eagerly = eagerly;
    options.record_steps = true;
    model->compile(options);
    const Examples batch = rows_of(small_data(100), {0, 1, 2, 3});
    for (int i = 0; i < 5; ++i) model->train_on_batch(batch);
    for (int i = 0; i < 5; ++i) {
      read_loss(
          model->train_step(pack_batch(rows_of(small_data(100), {0, 1, 2, 3}), options.layouts))
              .loss());
    }
    CHECK((model->step_records().replayed > 3) != eagerly);
    CHECK(model->optimizer()->steps() == 10);
    return model->steps.value().item();
  };
  CHECK(count(true) == 10);
  CHECK(count(false) == 10);
}

TEST_CASE("user-defined functions in a metric are noticed") {
  double scale = 1;
  const auto metric = std::make_shared<MeanMetricWrapper>(
      "Scaled", Json{{"name", "scaled"}},
      [&](const DTensor&, const DTensor& y_pred) { return ops::mean(y_pred, {-1}) * scale; });
  CompileOptions options = small_compile(one_device());
  options.metrics = {MetricHandle(metric)};
  CHECK_THAT(trained(small_model(), options, 2).records.why, Contains("metric Scaled"));
}

}  // namespace recorded_code_test
