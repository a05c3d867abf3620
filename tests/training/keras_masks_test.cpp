#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/training/internal/step_runner.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/keras_layers.hpp"

namespace keras_masks_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

const Json& cases(const std::string& part) { return golden_part("keras_masks.json", part); }

Mesh mesh_of(int64_t devices) { return create_mesh({{"batch", devices}}, virtual_cpus(devices)); }

/// Packs a tensor of a case on a mesh with its batch sharded; undefined for none.
DTensor placed(const Json& golden, const std::string& key, const Mesh& mesh) {
  if (!golden.contains(key)) return {};
  const at::Tensor full = input_tensor(golden.at(key));
  return pack(full, Layout::batch_sharded(mesh, "batch", full.dim()));
}

DTensor predictions(const Json& golden, const Mesh& mesh) {
  const DTensor y = placed(golden, "y_pred", mesh);
  return golden.contains("mask") ? y.with_mask(placed(golden, "mask", mesh)) : y;
}

std::vector<double> numbers(const Json& list) { return list.get<std::vector<double>>(); }

void check_numbers(const std::vector<double>& actual, const std::vector<double>& expected) {
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    CAPTURE(i);
    CHECK(actual[i] == Approx(expected[i]).epsilon(2e-5).margin(1e-6));
  }
}

void check_weights(const ModelHandle& model, const Json& expected) {
  const std::vector<at::Tensor> weights = model.get_weights();
  REQUIRE(weights.size() == expected.size());
  for (size_t w = 0; w < weights.size(); ++w) {
    CAPTURE(model.weights()[w].path());
    CHECK(unlike(weights[w], expected[w]) == "");
  }
}

TensorDataset data_of(const Json& golden) {
  Examples all{.x = {input_tensor(golden.at("x"))}, .y = {input_tensor(golden.at("y"))}};
  if (golden.contains("weight")) all.sample_weight = {input_tensor(golden.at("weight"))};
  return TensorDataset(all);
}

/// Checks evaluation, two epochs, prediction and weights of a model on a mesh.
void check_model(const Json& golden, const Mesh& mesh, bool eager) {
  const ModelHandle model = model_from_config(golden.at("model"));
  const auto metric = [&] { return metric_from_config(golden.at("metric")); };
  Json renamed = golden.at("metric");
  renamed["config"]["name"] = "weighted";
  model.compile({.optimizer = SGD(0.1),
                 .loss = LossChoice(loss_from_config(golden.at("loss"))),
                 .metrics = {MetricHandle(metric())},
                 .weighted_metrics = {MetricHandle(metric_from_config(renamed))},
                 .run_eagerly = eager,
                 .layouts = LayoutMap(mesh)});
  std::vector<at::Tensor> weights;
  for (const Json& weight : golden.at("weights")) weights.push_back(golden_tensor(weight));
  model.set_weights(weights);
  const TensorDataset data = data_of(golden);
  std::vector<double> before;
  for (const auto& [name, value] : model.evaluate(data, {.batch_size = 6, .verbose = 0})) {
    before.push_back(value);
  }
  check_numbers(before, numbers(golden.at("before")));
  const History history =
      model.fit(data, {.batch_size = 2, .epochs = 2, .verbose = 0, .shuffle = false});
  for (const auto& [key, values] : history.history) {
    CAPTURE(key);
    check_numbers(values, numbers(golden.at("history").at(key)));
  }
  CHECK((eager ? model.step_records().replayed == 0 : model.step_records().replayed > 0));
  CHECK(unlike(model.predict(data, {.verbose = 0}), golden.at("predictions")) == "");
  check_weights(model, golden.at("after"));
}

}  // namespace

TEST_CASE("losses count only what the predictions' mask leaves, as in Keras") {
  for (const Json& golden : cases("losses")) {
    CAPTURE(golden.at("loss").dump(), golden.contains("weight"));
    const LossHandle loss = loss_from_config(golden.at("loss"));
    for (const int64_t devices : {1, 2, 3}) {
      const Mesh mesh = mesh_of(devices);
      const DTensor y_pred = predictions(golden, mesh);
      GradientTape tape;
      tape.watch(y_pred);
      const DTensor value =
          (*loss)(placed(golden, "y_true", mesh), y_pred, placed(golden, "weight", mesh));
      CHECK(unlike(value.full(), golden.at("value")) == "");
      const DTensor gradient = tape.gradient(ops::sum(value), std::vector<DTensor>{y_pred})[0];
      CHECK(unlike(gradient.full(), golden.at("gradient")) == "");
    }
  }
}

TEST_CASE("means count only what the predictions' mask leaves, as in Keras") {
  for (const Json& golden : cases("metrics")) {
    CAPTURE(golden.at("metric").dump());
    for (const int64_t devices : {1, 2, 3}) {
      const Mesh mesh = mesh_of(devices);
      const std::shared_ptr<Metric> metric = metric_from_config(golden.at("metric"));
      for (const Json& batch : golden.at("batches")) {
        metric->update(placed(batch, "y_true", mesh), predictions(batch, mesh),
                       placed(batch, "weight", mesh));
      }
      CHECK(metric->result() == Approx(golden.at("result").get<double>()).epsilon(1e-5));
    }
  }
}

TEST_CASE("masks pass through models as in Keras, in eager and in replayed steps") {
  for (const Json& golden : cases("models")) {
    CAPTURE(golden.at("model").at("config").at("name").dump());
    for (const bool eager : {true, false}) {
      check_model(golden, mesh_of(1), eager);
      check_model(golden, mesh_of(2), eager);
    }
  }
}

TEST_CASE("weights that do not fit a mask are an error of one line") {
  const DTensor y = ones({3, 4, 2});
  const DTensor masked = y.with_mask(filled({3, 4}, 1, at::kBool));
  const LossHandle loss = "mse";
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH((*loss)(y, masked, ones({4})),
                    Contains("[mean_squared_error] sample weights have the shape (3,) or (3, 4). "
                             "Received: (4,)"));
  const LossHandle of_time = Dice({.axis = {1}});
  CHECK_THROWS_WITH((*of_time)(y, masked),
                    Contains("[dice]") && Contains("mask fits the values, (3, 2)"));
}

}  // namespace keras_masks_test
