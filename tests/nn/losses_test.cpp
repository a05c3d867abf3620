#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/nn/losses.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include <map>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/layouts.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

Reduction reduction_of(const Json& options) {
  const std::map<std::string, Reduction> kinds = {
      {"sum_over_batch_size", Reduction::sum_over_batch_size},
      {"sum", Reduction::sum},
      {"mean_with_sample_weight", Reduction::mean_with_sample_weight},
      {"none", Reduction::none}};
  return kinds.at(option<std::string>(options, "reduction", "sum_over_batch_size"));
}

LossRef make_case(const std::string& name, const Json& o) {
  const bool from_logits = option(o, "from_logits", false);
  const double smoothing = option(o, "label_smoothing", 0.0);
  const Reduction reduction = reduction_of(o);
  if (name == "SparseCategoricalCrossentropy") {
    return SparseCategoricalCrossentropy({.from_logits = from_logits, .reduction = reduction});
  }
  if (name == "CategoricalCrossentropy") {
    return CategoricalCrossentropy({.from_logits = from_logits,
                                    .label_smoothing = smoothing,
                                    .axis = option<int64_t>(o, "axis", -1),
                                    .reduction = reduction});
  }
  if (name == "BinaryCrossentropy") {
    return BinaryCrossentropy(
        {.from_logits = from_logits, .label_smoothing = smoothing, .reduction = reduction});
  }
  return MeanSquaredError({.reduction = reduction});
}

/// A golden case's tensors.
struct Data {
  explicit Data(const Json& golden)
      : loss(make_case(golden.at("name"), golden.at("options"))),
        y_true(golden_tensor(golden.at("y_true"), labels_of(golden.at("name")))),
        y_pred(golden_tensor(golden.at("y_pred"))),
        expected(golden_tensor(golden.at("loss"))),
        gradient(golden_tensor(golden.at("gradient"))) {
    if (golden.contains("sample_weight")) weight = golden_tensor(golden.at("sample_weight"));
  }
  static at::ScalarType labels_of(const std::string& name) {
    return name == "SparseCategoricalCrossentropy" ? at::kLong : at::kFloat;
  }

  LossRef loss;
  at::Tensor y_true, y_pred, weight, expected, gradient;
};

/// The layout of labels or weights: as the predictions' first axes, where they have the extents.
Layout follow(const Layout& layout, const at::Tensor& tensor, const at::Tensor& predictions) {
  std::vector<std::vector<int>> axes;
  for (int64_t a = 0; a < tensor.dim(); ++a) {
    const bool same = a < predictions.dim() && tensor.size(a) == predictions.size(a);
    axes.push_back(same ? layout.axis(a) : std::vector<int>{});
  }
  return Layout::from_axes(layout.mesh(), axes);
}

std::string close(const at::Tensor& actual, const at::Tensor& expected) {
  const double scale = expected.numel() ? expected.abs().max().item<double>() : 0;
  return difference(actual, expected, 3e-6, 1e-6 * scale + 1e-7);
}

void check_case(const Data& data, const Layout& layout, bool labels_follow) {
  const auto place = [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return DTensor();
    return pack(tensor, labels_follow ? follow(layout, tensor, data.y_pred)
                                      : Layout::replicated(layout.mesh(), tensor.dim()));
  };
  const DTensor y_pred = pack(data.y_pred, layout);
  GradientTape tape;
  tape.watch(y_pred);
  const DTensor value = (*data.loss)(place(data.y_true), y_pred, place(data.weight));
  const DTensor gradient = tape.gradient(value, y_pred);
  CHECK(gradient.layout() == layout);
  CHECK(close(value.full(), data.expected) == "");
  CHECK(close(gradient.full(), data.gradient) == "");
}

}  // namespace

TEST_CASE("losses and their gradients are Keras'") {
  const Mesh one = create_mesh({{"batch", 1}});
  for (const Json& golden : keras_core("losses")) {
    INFO(golden.at("name") << " " << golden.at("options").dump());
    const Data data(golden);
    check_case(data, Layout::replicated(one, data.y_pred.dim()), false);
  }
}

TEST_CASE("losses are Keras' whatever the layouts of predictions and labels") {
  const std::vector<Mesh> meshes = {create_mesh({{"x", 2}, {"y", 2}}), create_mesh({{"x", 3}}),
                                    create_mesh({{"x", 8}})};
  size_t turn = 0;
  for (const Json& golden : keras_core("losses")) {
    const Data data(golden);
    for (const Mesh& mesh : meshes) {
      for (const Layout& layout : all_layouts(mesh, data.y_pred.dim())) {
        const BlockPolicyScope policy(policies[turn++ % 3]);
        INFO(golden.at("name") << " " << golden.at("options").dump() << " " << layout.describe()
                               << " " << test::to_string(block_policy()));
        check_case(data, layout, turn % 4 != 0);
      }
    }
  }
}

TEST_CASE("a batch-sharded loss stays pending, and its gradient costs nothing") {
  const Mesh mesh = create_mesh({{"batch", 4}});
  const DTensor logits = pack(at::randn({10, 3}), Layout::batch_sharded(mesh, "batch", 2));
  const DTensor labels = pack(at::arange(10) % 3, Layout::batch_sharded(mesh, "batch", 1));
  CommLog log;
  const CommLogScope scope(log);
  GradientTape tape;
  tape.watch(logits);
  const DTensor value = (*SparseCategoricalCrossentropy({.from_logits = true}))(labels, logits);
  CHECK(value.layout().is_pending());
  tape.gradient(value, logits);
  CHECK(log.entries().empty());
}

TEST_CASE("a loss of half predictions is computed in float32, of double ones in float64") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  const Layout layout = Layout::batch_sharded(mesh, "batch", 2);
  const at::Tensor y = at::rand({4, 3});
  for (auto [given, wanted] : {std::pair(at::kBFloat16, at::kFloat), {at::kDouble, at::kDouble}}) {
    const DTensor value = (*MeanSquaredError())(pack(y, layout), pack(y.to(given), layout));
    CHECK(value.dtype() == wanted);
  }
}

TEST_CASE("losses are known by Keras' names") {
  for (const char* name : {"sparse_categorical_crossentropy", "categorical_crossentropy",
                           "binary_crossentropy", "mean_squared_error"}) {
    CHECK(LossRef(name)->name() == name);
    CHECK(make_loss(LossRef(name)->class_name())->name() == name);
  }
  CHECK(LossRef("mse")->class_name() == "MeanSquaredError");
  CHECK(MeanSquaredError({.name = "error"})->name() == "error");
  CHECK_THROWS_WITH(LossRef("mean_square_error"), Catch::Contains("\"mean_squared_error\""));
  CHECK(SparseCategoricalCrossentropy({.from_logits = true})->config() ==
        Json({{"from_logits", true},
              {"reduction", "sum_over_batch_size"},
              {"name", "sparse_categorical_crossentropy"}}));
}

TEST_CASE("what a loss cannot take is named") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  const auto value = [&](const Shape& shape) {
    return filled(shape, 0.5, at::kFloat, Layout::replicated(mesh, int64_t(shape.size())));
  };
  CHECK_THROWS_AS(CategoricalCrossentropy({.label_smoothing = 1.5}), ConfigError);
  CHECK_THROWS_AS(BinaryCrossentropy({.label_smoothing = -0.1}), ConfigError);
  CHECK_THROWS_AS((*CategoricalCrossentropy())(value({4}), value({4, 3})), ShapeError);
  CHECK_THROWS_AS((*BinaryCrossentropy())(value({4, 2}), value({4, 3})), ShapeError);
  CHECK_THROWS_AS((*SparseCategoricalCrossentropy())(value({3}), value({4, 3})), ShapeError);
  CHECK_THROWS_WITH((*MeanSquaredError())(value({4, 3}), value({4, 3}), value({3})),
                    Catch::Contains("sample weights") && Catch::Contains("(3,)"));
}
