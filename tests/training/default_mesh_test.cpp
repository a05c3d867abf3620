// Values that a user's step or layer makes without a layout: they are on the model's mesh.
#include <tessera/tessera.hpp>

#include <optional>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace default_mesh_test {

using namespace tessera;
using namespace tessera::detail;
using test::difference;

namespace {

/// Adds ones.
class Shift final : public Layer {
 public:
  Shift() : Layer(LayerOptions()) {}
  std::string class_name() const override { return "Shift"; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return inputs[0] + ones({inputs[0].size(-1)}, inputs[0].dtype());
  }
};

/// A mean squared error for targets y - 1, which it makes itself.
struct ShiftedLoss : Loss {
  ShiftedLoss() : Loss(Reduction::sum_over_batch_size, "shifted") {}
  std::string class_name() const override { return "ShiftedLoss"; }
  Json config() const override { return Json::object(); }
  DTensor call(const DTensor& y_true, const DTensor& y_pred) const override {
    return ops::mean(ops::square(y_pred - (y_true - ones(y_true.shape(), y_true.dtype()))), {-1});
  }
};

/// x·w + b + 1, with values that are made in every step that a class may override.
class Made final : public Model {
 public:
  Made() : Model(LayerOptions()) {}
  std::string class_name() const override { return "Made"; }

  StepValues train_step(const Batch& batch) override {
    GradientTape tape;
    Inputs x = batch.x;
    x[0] = x[0] + ones({batch.rows, 1});
    const std::vector<DTensor> y_pred = outputs(x, training_context());
    const DTensor loss = compute_loss(batch, y_pred);
    minimize(loss, tape);
    return loss;
  }
  StepValues test_step(const Batch& batch) override {
    return compute_loss(batch, outputs({batch.x[0] * filled({batch.rows, 1}, 2)}));
  }
  std::vector<DTensor> predict_step(const Batch& batch) override {
    return outputs({batch.x[0] - ones({3})});
  }

 protected:
  DTensor compute_loss(const Batch&, const std::vector<DTensor>& y_pred) override {
    return ops::mean(ops::square(y_pred[0] - ones(y_pred[0].shape())));
  }
  DTensor call(const Inputs& inputs, const CallContext& context) override {
    return shift_(dense_(inputs[0], context), context);
  }

 private:
  LayerHandle dense_ = track(Dense(1, {.kernel_initializer = "ones"}));
  LayerHandle shift_ = track(make_layer<Shift>());
};

std::vector<Mesh> meshes() {
  std::vector<Mesh> all;
  for (const MeshDims& dims : {MeshDims{{"batch", 1}}, MeshDims{{"batch", 2}},
                               MeshDims{{"batch", 3}}, MeshDims{{"batch", 2}, {"model", 2}}}) {
    all.push_back(create_mesh(dims));
  }
  return all;
}

ModelHandle compiled(const Mesh& mesh, double rate, std::optional<bool> record) {
  const ModelHandle model(std::make_shared<Made>());
  CompileOptions options{.optimizer = SGD(rate), .mesh = mesh};
  options.record_steps = record;
  model.compile(options);
  return model;
}

}  // namespace

TEST_CASE("values that steps of a model make are on its mesh") {
  const at::Tensor x = at::ones({7, 3}), y = at::zeros({7, 1});
  for (const Mesh& mesh : meshes()) {
    for (const std::optional<bool> record : {std::optional<bool>(), std::optional(true)}) {
      CAPTURE(mesh.describe(), record.has_value());
      const ModelHandle model = compiled(mesh, 0, record);
      // (2 + 2 + 2) + 1 - 1, squared; (1 + 1 + 1) * 2 + 1 - 1, squared.
      const History history = model.fit(x, y, {.batch_size = 3, .epochs = 3, .verbose = 0});
      CHECK(difference(at::tensor(history.steps), at::full({9}, 36., at::kDouble), 1e-6) == "");
      CHECK(model.evaluate(x, y, {.verbose = 0})[0].second == Approx(36));
      CHECK(difference(model.predict(x, {.verbose = 0}), at::ones({7, 1})) == "");
      CHECK(model.train_on_batch(x, y)[0].second == Approx(36));
      CHECK(model.test_on_batch(x, y)[0].second == Approx(36));
      CHECK(difference(model.predict_on_batch({.x = {x}})[0], at::ones({7, 1})) == "");
      if (record) CHECK(model.step_records().replayed > 0);
      CHECK(default_mesh() == create_mesh({{"batch", 1}}));
    }
  }
}

TEST_CASE("training with values made in steps is the same on every mesh, also replayed") {
  at::manual_seed(3);
  const at::Tensor x = at::rand({32, 3}), y = at::zeros({32, 1});
  std::vector<double> expected;
  for (const Mesh& mesh : meshes()) {
    for (const std::optional<bool> record : {std::optional<bool>(), std::optional(true)}) {
      CAPTURE(mesh.describe(), record.has_value());
      const ModelHandle model = compiled(mesh, 0.05, record);
      const History history =
          model.fit(x, y, {.batch_size = 7, .epochs = 4, .verbose = 0, .shuffle = false});
      if (expected.empty()) expected = history.steps;
      CHECK(difference(at::tensor(history.steps), at::tensor(expected), 1e-5) == "");
      CHECK(history.steps.back() < history.steps.front());
    }
  }
}

TEST_CASE("a loss and a layer may make values") {
  for (const Mesh& mesh : meshes()) {
    CAPTURE(mesh.describe());
    const Sequential model({Input({4}), make_layer<Shift>(), Dense(1)});
    model.compile(
        {.optimizer = SGD(0.1), .loss = LossHandle(std::make_shared<ShiftedLoss>()), .mesh = mesh});
    model.set_weights({at::ones({4, 1}), at::zeros({1})});
    // 4 * 2 - (1 - 1), squared.
    CHECK(model.fit(at::ones({6, 4}), at::ones({6, 1}), {.verbose = 0}).steps[0] == Approx(64));
  }
}

TEST_CASE("values that a called layer makes are on the mesh of its inputs") {
  for (const Mesh& mesh : meshes()) {
    CAPTURE(mesh.describe());
    const LayerHandle shift = make_layer<Shift>();
    const DTensor y = shift(pack(at::zeros({5, 2}), Layout::batch_sharded(mesh, "batch", 2)));
    CHECK(y.mesh() == mesh);
    CHECK(difference(y.full(), at::ones({5, 2})) == "");
    CHECK(default_mesh() == create_mesh({{"batch", 1}}));
  }
}

TEST_CASE("a planned step may make values") {
  for (const Mesh& mesh : meshes()) {
    CAPTURE(mesh.describe());
    const ModelHandle model = compiled(mesh, 0.1, std::nullopt);
    const TensorDataset data(at::ones({8, 3}), at::zeros({8, 1}));
    CHECK(model.plan(data, {.batch_size = 4}).mesh == mesh);
  }
}

}  // namespace default_mesh_test
