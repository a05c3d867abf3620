#include <tessera/tessera.hpp>

#include <functional>
#include <map>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/initializers/regularizers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace compile_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

LayoutMap on_four() { return LayoutMap(create_mesh({{"batch", 4}})); }

std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    const std::string text = error.what();
    CHECK(text.find('\n') == std::string::npos);
    return text;
  }
  return "no error";
}

/// One input, with a regression output "age" and a classification output "kind".
Functional two_heads() {
  const Input x({3});
  const SymbolicTensor h = Dense(4, {.activation = "tanh", .name = "body"})(x);
  return Functional({x}, {Dense(1, {.name = "age"})(h), Dense(2, {.name = "kind"})(h)});
}

Examples two_labels(int64_t rows) {
  return {.x = {at::rand({rows, 3})}, .y = {at::rand({rows, 1}), at::randint(0, 2, {rows})}};
}

std::string compile_error(const CompileOptions& options) {
  return error_of([&] {
    const Functional model = two_heads();
    CompileOptions all = options;
    all.layouts = on_four();
    model.compile(all);
    model.fit(two_labels(8), {.batch_size = 4, .verbose = 0});
  });
}

const LossHandle sparse = SparseCategoricalCrossentropy({.from_logits = true});

/// A model of one layer with a custom training step.
class OwnStep : public Model {
 public:
  OwnStep() : dense_(track(Dense(1, {.kernel_initializer = "ones", .name = "dense"}))) {}
  std::string class_name() const override { return "OwnStep"; }

  StepValues train_step(const Batch& batch) override {
    GradientTape tape;
    const std::vector<DTensor> y_pred = outputs(batch.x, training_context());
    const DTensor loss = ops::scale(compute_loss(batch, y_pred), 2);
    minimize(loss, tape);
    update_metrics(batch, y_pred);
    return loss;
  }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override {
    return dense_(inputs[0], context);
  }

 private:
  LayerHandle dense_;
};

/// Two outputs without names.
class TwoOutputs : public Model {
 public:
  std::string class_name() const override { return "TwoOutputs"; }

 protected:
  std::vector<DTensor> call_all(const Inputs& inputs, const CallContext&) override {
    return {first_(inputs[0]), second_(inputs[0])};
  }

 private:
  LayerHandle first_ = track(Dense(1, {.name = "first"}));
  LayerHandle second_ = track(Dense(1, {.name = "second"}));
};

/// Adds the mean of its squares to the loss.
class Penalty : public Layer {
 public:
  std::string class_name() const override { return "Penalty"; }
  Shape output_shape(const Shapes& inputs) const override { return single_input(inputs); }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    add_loss(ops::mean(inputs[0] * inputs[0]));
    return inputs[0];
  }
};

}  // namespace

TEST_CASE("compile names unknown outputs and counts them") {
  CHECK_THAT(compile_error({.optimizer = "sgd", .loss = {{"aeg", "mse"}}}),
             Contains("[compile] loss names outputs of the model. Received: \"aeg\".") &&
                 Contains("write \"age\""));
  CHECK_THAT(compile_error({.optimizer = "sgd", .loss = "mse", .metrics = {{"knd", {"mae"}}}}),
             Contains("[compile] metrics names outputs") && Contains("write \"kind\""));
  CHECK_THAT(compile_error({.optimizer = "sgd", .loss = "mse", .loss_weights = {{"ages", 1.0}}}),
             Contains("[compile] loss_weights names outputs") && Contains("write \"age\""));
  CHECK_THAT(compile_error({.optimizer = "sgd", .loss = {"mse"}}),
             Contains("[compile] loss has one entry for each of the 2 outputs \"age\", \"kind\"") &&
                 Contains("Received: 1 entries"));
  CHECK_THAT(compile_error({.optimizer = "sgd", .loss = "mse", .loss_weights = {1, 2, 3}}),
             Contains("loss_weights") && Contains("3 entries"));
  CHECK_THAT(compile_error({.optimizer = "sgd", .loss = "mse", .weighted_metrics = {"mae"}}),
             Contains("weighted_metrics") && Contains("1 entries"));
  CHECK(compile_error({.optimizer = "sgd", .loss = {"mse", sparse}}) == "no error");
  CHECK(compile_error({.optimizer = "sgd", .loss = {{"kind", sparse}}}) == "no error");
}

TEST_CASE("labels and weights are counted by outputs") {
  const Functional model = two_heads();
  model.compile({.optimizer = "sgd", .loss = {"mse", sparse}, .layouts = on_four()});
  const FitOptions quiet{.batch_size = 4, .verbose = 0};
  Examples data = two_labels(8);
  data.y.pop_back();
  CHECK_THAT(error_of([&] { model.fit(data, quiet); }),
             Contains("labels for each of the 2 outputs") && Contains("Received: 1 labels"));
  data = two_labels(8);
  data.sample_weight = {at::rand({8}), at::rand({8}), at::rand({8})};
  CHECK_THAT(error_of([&] { model.fit(data, quiet); }), Contains("3 tensors for 2 outputs"));
  FitOptions weighted = quiet;
  weighted.class_weight = {{0, 2.0}};
  CHECK_THAT(error_of([&] { model.fit(two_labels(8), weighted); }),
             Contains("[class_weight] the model has a single output. Received: 2 labels."));
  CHECK_THAT(error_of([&] { model.predict(two_labels(8)); }),
             Contains("[predict] the model has one output. Received: 2 outputs."));
  const std::vector<at::Tensor> all = model.predict_all(two_labels(8));
  CHECK(all.size() == 2);
  CHECK(all[0].sizes() == at::IntArrayRef({8, 1}));
  CHECK(all[1].sizes() == at::IntArrayRef({8, 2}));
}

TEST_CASE("logs are named by output, alphabetically, without cost until they are read") {
  const Functional model = two_heads();
  model.compile({.optimizer = "sgd",
                 .loss = {"mse", sparse},
                 .metrics = {{"kind", {"accuracy", "acc"}}, {"age", "mae"}},
                 .weighted_metrics = {{"kind", {"accuracy"}}},
                 .layouts = on_four()});
  CHECK(model->metrics_names() == std::vector<std::string>{"loss"});
  const History history = model.fit(two_labels(8), {.batch_size = 4, .verbose = 0});
  const std::vector<std::string> names = {"age_loss",      "age_mae",   "kind_acc",
                                          "kind_accuracy", "kind_loss", "kind_weighted_accuracy",
                                          "loss"};
  std::vector<std::string> logged;
  for (const auto& [name, course] : history.history) logged.push_back(name);
  CHECK(logged == names);
  CHECK(model->metrics_names() == names);
}

TEST_CASE("unnamed outputs of a subclass are numbered") {
  const ModelHandle model(std::make_shared<TwoOutputs>());
  model.compile({.optimizer = "sgd", .loss = "mse", .layouts = on_four()});
  // The short batch counts by its rows in every loss.
  const Examples data{.x = {at::rand({7, 3})}, .y = {at::rand({7, 1}), at::rand({7, 1}) + 3}};
  const History history = model.fit(data, {.batch_size = 4, .verbose = 0, .shuffle = false});
  CHECK(history.at("output_1_loss").size() == 1);
  CHECK(history.at("loss")[0] ==
        Approx(history.at("output_1_loss")[0] + history.at("output_2_loss")[0]));
}

TEST_CASE("fit uses a custom training step") {
  const auto fit = [](const ModelHandle& model, double rate) {
    model.compile({.optimizer = SGD(rate), .loss = "mse", .layouts = on_four()});
    const at::Tensor x = at::arange(24).reshape({8, 3}).to(at::kFloat) / 24;
    const History history =
        model.fit(x, x.sum(1, true) * 2, {.batch_size = 4, .verbose = 0, .shuffle = false});
    return std::make_pair(history.steps, model.weights()[0].value().full());
  };
  const auto own = fit(ModelHandle(std::make_shared<OwnStep>()), 0.05);
  const auto plain =
      fit(Sequential({Dense(1, {.kernel_initializer = "ones", .name = "dense"})}), 0.1);
  for (size_t i = 0; i < 2; ++i) CHECK(own.first[i] == Approx(2 * plain.first[i]));
  CHECK(difference(own.second, plain.second, 1e-6) == "");
}

TEST_CASE("penalties are part of the loss, whatever the batch's size") {
  const Sequential model(
      {Dense(2, {.kernel_initializer = "ones", .kernel_regularizer = L2(0.25), .name = "dense"}),
       make_layer<Penalty>()});
  model.compile({.optimizer = SGD(0.0), .loss = "mse", .layouts = on_four()});
  const at::Tensor x = at::rand({7, 3});
  const at::Tensor y = at::rand({7, 2});
  const History history = model.fit(x, y, {.batch_size = 4, .verbose = 0, .shuffle = false});
  const at::Tensor out = x.sum(1, true).expand({7, 2});
  const double expected = ((out - y).pow(2).mean() + out.pow(2).mean()).item<double>() + 0.25 * 6;
  CHECK(history.at("loss")[0] == Approx(expected).epsilon(1e-5));
  const Logs logs = model.evaluate(x, y, {.batch_size = 4, .verbose = 0});
  CHECK(*find_value(logs, "loss") == Approx(expected).epsilon(1e-5));
}

TEST_CASE("a model may be trained by its own penalties alone") {
  const Sequential model({Dense(2, {.name = "dense"}), make_layer<Penalty>()});
  model.compile({.optimizer = SGD(0.1), .layouts = on_four()});
  const History history = model.fit(at::rand({8, 3}), {.batch_size = 4, .epochs = 3, .verbose = 0});
  CHECK(history.at("loss")[2] < history.at("loss")[0]);
}

TEST_CASE("losses, weights and metrics work for outputs that are counted at run time") {
  const std::vector<LossHandle> losses = {"mse", sparse};
  const std::vector<double> weights = {1, 0.5};
  const std::map<std::string, std::vector<MetricHandle>> metrics = {{"age", {"mae", "mse"}},
                                                                    {"kind", {"accuracy"}}};
  const std::vector<std::vector<MetricHandle>> lists = {{"mae", "mse"}, {"accuracy"}};
  const std::map<std::string, double> by_name = {{"kind", 0.5}};
  const Examples data = two_labels(8);
  const auto logs_of = [&](CompileOptions options) {
    const Functional model = two_heads();
    options.layouts = on_four();
    model.compile(options);
    return model.evaluate(data, {.batch_size = 4, .verbose = 0});
  };
  const Logs written = logs_of({.loss = {"mse", sparse},
                                .loss_weights = {1, 0.5},
                                .metrics = {{"age", {"mae", "mse"}}, {"kind", {"accuracy"}}}});
  CHECK(written.size() == 6);
  CHECK(logs_of({.loss = losses, .loss_weights = weights, .metrics = metrics}) == written);
  CHECK(logs_of({.loss = losses, .loss_weights = by_name, .metrics = metrics}) == written);
  CHECK(logs_of({.loss = losses, .loss_weights = weights, .metrics = lists}) == written);
  CHECK_THAT(compile_error({.loss = losses, .metrics = std::vector(3, lists[0])}),
             Contains("metrics has one entry for each of the 2 outputs"));
  CHECK_THAT(compile_error({.loss = std::vector<LossHandle>()}),
             Contains("loss has one entry for each of the 2 outputs"));
  const std::map<std::string, std::vector<MetricHandle>> unknown = {{"ages", {"mae"}}};
  CHECK_THAT(compile_error({.loss = losses, .metrics = unknown}), Contains("\"age\""));
}

TEST_CASE("logs of a step on a single batch are of that batch alone") {
  const Sequential model({Dense(1, {.kernel_initializer = "zeros", .name = "dense"})});
  model.compile({.optimizer = SGD(0.0), .loss = "mse", .metrics = {"mae"}, .layouts = on_four()});
  const at::Tensor x = at::rand({4, 2});
  const Examples ones{.x = {x}, .y = {at::ones({4, 1})}};
  const Examples threes{.x = {at::rand({2, 2})}, .y = {at::full({2, 1}, 3.0)}};
  CHECK(*find_value(model->train_on_batch(ones), "loss") == Approx(1));
  Logs logs = model->train_on_batch(threes);
  CHECK(*find_value(logs, "loss") == Approx(9));
  CHECK(*find_value(logs, "mae") == Approx(3));
  logs = model->test_on_batch(ones);
  CHECK(*find_value(logs, "loss") == Approx(1));
  CHECK(*find_value(logs, "mae") == Approx(1));
  CHECK(model->predict_on_batch({.x = {x}})[0].sizes() == at::IntArrayRef({4, 1}));
  CHECK(model->optimizer()->iterations() == 2);
}

TEST_CASE("weights end as their moving averages") {
  const auto last = [](bool average) {
    const Sequential model({Dense(1, {.kernel_initializer = "zeros", .name = "dense"})});
    model.compile({.optimizer = SGD(0.1, {.use_ema = average, .ema_momentum = 0.5}),
                   .loss = "mse",
                   .layouts = on_four()});
    const at::Tensor x = at::ones({8, 1});
    model.fit(x, x, {.batch_size = 8, .epochs = 2, .verbose = 0});
    return model.weights()[0].value().full().item<double>();
  };
  // w: 0.2, 0.32; the bias moves equally. The average begins with the first and is half the new.
  CHECK(last(false) == Approx(0.32));
  CHECK(last(true) == Approx(0.5 * 0.2 + 0.5 * 0.32));
}

TEST_CASE("a scaled loss trains and is logged like an unscaled one") {
  const auto fit = [](std::optional<double> factor) {
    const Sequential model({Dense(1, {.kernel_initializer = "zeros", .name = "dense"})});
    model.compile({.optimizer = SGD(0.1, {.loss_scale_factor = factor}),
                   .loss = "mse",
                   .layouts = on_four()});
    const at::Tensor x = at::ones({8, 1});
    const History history = model.fit(x, x, {.batch_size = 4, .verbose = 0});
    return std::make_pair(history.steps, model.weights()[0].value().full().item<double>());
  };
  CHECK(fit(1024.0) == fit(std::nullopt));
}

TEST_CASE("a callback may recompile the model during evaluate and predict") {
  const Sequential model({Dense(1, {.name = "dense"})});
  const auto compile = [&] {
    const metrics::MeanAbsoluteError metric;
    model.compile({.optimizer = "sgd", .loss = "mse", .metrics = {metric}, .layouts = on_four()});
    return std::weak_ptr<Metric>(metric.get());
  };
  std::weak_ptr<Metric> first;
  const auto again = [&](int64_t batch) {
    if (batch == 0) compile();
    CHECK_FALSE(first.expired());
  };
  const LambdaCallback callback({.on_test_batch_begin = again, .on_predict_batch_begin = again});
  const Examples data{.x = {at::rand({8, 2})}, .y = {at::rand({8, 1})}};
  first = compile();
  model.evaluate(data, {.batch_size = 4, .verbose = 0, .callbacks = {callback}});
  first = compile();
  model.predict(data, {.batch_size = 4, .callbacks = {callback}});
}

TEST_CASE("predict needs no compile, and a shared callback is called whatever its handle's type") {
  const Sequential model({Dense(2)});
  const at::Tensor x = at::rand({5, 3});
  CHECK(model.predict(DatasetHandle(x)).sizes() == at::IntArrayRef({5, 2}));

  class Base : public Callback {};
  class Counting final : public Base {
   public:
    size_t values = 0;
    void on_train_batch_end(int64_t, const Logs& logs) override { values = logs.size(); }
  };
  const auto counting = std::make_shared<Counting>();
  const std::shared_ptr<Base> held = counting;
  model.compile({.optimizer = "sgd", .loss = "mse", .metrics = {"mae"}});
  model.fit(x, at::rand({5, 2}), {.verbose = 0, .callbacks = {held}});
  CHECK(counting->values == 2);
}

}  // namespace compile_test
