#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/nn/losses/losses.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/layouts.hpp"

namespace losses_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

/// The tensors of a golden case.
struct Data {
  /// `result` holds reduction, loss and gradient, or is the case itself.
  Data(const Json& golden, const Json& result)
      : name(golden.at("name")),
        y_true(golden_tensor(golden.at("y_true"), labels_of(name))),
        y_pred(golden_tensor(golden.at("y_pred"))),
        expected(golden_tensor(result.at("loss"))),
        gradient(golden_tensor(result.at("gradient"))) {
    options = golden.at("options");
    if (result.contains("reduction")) options["reduction"] = result.at("reduction");
    loss = loss_from_config({{"class_name", name}, {"config", options}});
    if (golden.contains("mask")) mask = golden_tensor(golden.at("mask"), at::kBool);
    if (golden.contains("sample_weight")) weight = golden_tensor(golden.at("sample_weight"));
  }
  static at::ScalarType labels_of(const std::string& name) {
    for (const char* integral :
         {"SparseCategoricalCrossentropy", "CTC", "Circle", "CategoricalGeneralizedCrossEntropy"}) {
      if (name == integral) return at::kLong;
    }
    return at::kFloat;
  }

  std::string name;
  Json options;
  LossHandle loss;
  at::Tensor y_true, y_pred, weight, mask, expected, gradient;
};

/// Returns the cases of keras_core.json and keras_losses.json in which Tessera computes Keras'
/// value, or the others.
std::vector<Data> cases_of_losses(bool others) {
  std::vector<Data> list;
  const Json& core = keras_core("losses");
  for (size_t row = 0; row < core.size(); ++row) {
    if (other_than_keras("keras_core.json", "losses", row) != others) continue;
    list.emplace_back(core[row], core[row]);
  }
  const Json file = read_json_file(golden_path("keras_losses.json").string());
  const Json& losses = file.at("losses");
  for (size_t row = 0; row < losses.size(); ++row) {
    if (other_than_keras("keras_losses.json", "losses", row) != others) continue;
    for (const Json& result : losses[row].at("results")) list.emplace_back(losses[row], result);
  }
  return list;
}

/// Every case in which Tessera computes Keras' value.
const std::vector<Data>& goldens() {
  static const std::vector<Data> all = cases_of_losses(false);
  return all;
}

/// Returns the layout of labels or weights: the predictions' on the axes whose extents agree.
Layout follow(const Layout& layout, const at::Tensor& tensor, const at::Tensor& predictions) {
  std::vector<std::vector<int>> axes;
  for (int64_t a = 0; a < tensor.dim(); ++a) {
    const bool same = a < predictions.dim() && tensor.size(a) == predictions.size(a);
    axes.push_back(same ? layout.axis(a) : std::vector<int>{});
  }
  return Layout::from_axes(layout.mesh(), axes);
}

/// Compares with Keras; losses that sum many exponentials in float32 get a larger tolerance.
std::string close(const Data& data, const at::Tensor& actual, const at::Tensor& expected) {
  const double scale = expected.numel() ? expected.abs().max().item<double>() : 0;
  const double room = data.name == "CTC" || data.name == "Circle" ? 1e-5 : 1e-6;
  return difference(actual, expected, 3e-6, room * scale + 1e-7);
}

void check_case(const Data& data, const Layout& layout, bool labels_follow) {
  const auto packed = [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return DTensor();
    return pack(tensor, labels_follow ? follow(layout, tensor, data.y_pred)
                                      : Layout::replicated(layout.mesh(), tensor.dim()));
  };
  const DTensor y_pred = pack(data.y_pred, layout).with_mask(packed(data.mask));
  GradientTape tape;
  tape.watch(y_pred);
  const DTensor value = (*data.loss)(packed(data.y_true), y_pred, packed(data.weight));
  const DTensor gradient = tape.gradient(value, y_pred);
  CHECK(gradient.layout() == layout);
  CHECK(close(data, value.full(), data.expected) == "");
  CHECK(close(data, gradient.full(), data.gradient) == "");
}

}  // namespace

TEST_CASE("losses and their gradients match Keras") {
  const Mesh one = create_mesh({{"batch", 1}});
  REQUIRE(goldens().size() > 1000);
  for (const Data& data : goldens()) {
    INFO(data.name << " " << data.options.dump() << " " << data.y_pred.sizes());
    check_case(data, Layout::replicated(one, data.y_pred.dim()), false);
  }
}

TEST_CASE("losses that docs/keras.md says are other than Keras' differ or are refused") {
  const Mesh one = create_mesh({{"batch", 1}});
  for (const Data& data : cases_of_losses(true)) {
    INFO(data.name << " " << data.options.dump() << " " << data.y_pred.sizes());
    const auto packed = [&](const at::Tensor& tensor) {
      return tensor.defined() ? pack(tensor, Layout::replicated(one, tensor.dim())) : DTensor();
    };
    std::string differs;
    try {
      const DTensor value =
          (*data.loss)(packed(data.y_true), packed(data.y_pred), packed(data.weight));
      differs = close(data, value.full(), data.expected);
    } catch (const ShapeError& error) {
      differs = error.what();
    }
    CHECK(differs != "");
  }
}

TEST_CASE("losses match Keras in every layout of predictions and labels") {
  const std::vector<Mesh> meshes = {create_mesh({{"x", 2}, {"y", 2}}), create_mesh({{"x", 3}}),
                                    create_mesh({{"x", 8}})};
  size_t turn = 0;
  for (const Data& data : goldens()) {
    for (const Mesh& mesh : meshes) {
      const std::vector<Layout> layouts = all_layouts(mesh, data.y_pred.dim());
      // Only some layouts for each case, as a loss has many cases.
      for (size_t i = turn % 4; i < layouts.size(); i += 4) {
        const BlockPolicyScope policy(policies[turn++ % 3]);
        INFO(data.name << " " << data.options.dump() << " " << layouts[i].describe() << " "
                       << test::to_string(block_policy()));
        check_case(data, layouts[i], turn % 4 != 0);
      }
      ++turn;
    }
  }
}

TEST_CASE("a batch-sharded loss stays a partial sum, and its gradient costs nothing") {
  const Mesh mesh = create_mesh({{"batch", 4}});
  const DTensor logits = pack(at::randn({10, 3}), Layout::batch_sharded(mesh, "batch", 2));
  const DTensor labels = pack(at::arange(10) % 3, Layout::batch_sharded(mesh, "batch", 1));
  CommLog log;
  const CommLogScope scope(log);
  GradientTape tape;
  tape.watch(logits);
  const DTensor value = (*SparseCategoricalCrossentropy({.from_logits = true}))(labels, logits);
  CHECK(value.layout().is_partial());
  tape.gradient(value, logits);
  CHECK(log.entries().empty());
}

TEST_CASE("a loss of bfloat16 predictions is computed in float32, of float64 ones in float64") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  const Layout layout = Layout::batch_sharded(mesh, "batch", 2);
  const at::Tensor y = at::rand({4, 3});
  for (auto [dtype, expected] :
       {std::pair(at::kBFloat16, at::kFloat), {at::kDouble, at::kDouble}}) {
    const DTensor value = (*MeanSquaredError())(pack(y, layout), pack(y.to(dtype), layout));
    CHECK(value.dtype() == expected);
  }
}

TEST_CASE("a sequence that does not fit its steps has a large loss and no gradient") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  const DTensor logits = pack(at::randn({2, 3, 4}), Layout::batch_sharded(mesh, "batch", 3));
  const DTensor labels =
      pack(at::tensor({1, 1, 1, 1, 2, 3}).reshape({2, 3}), Layout::batch_sharded(mesh, "batch", 2));
  GradientTape tape;
  tape.watch(logits);
  const DTensor value = (*CTC({.reduction = Reduction::none}))(labels, logits);
  const at::Tensor gradient = tape.gradient(value, logits).full();
  CHECK(value.full()[0].item<float>() == 709);
  CHECK(value.full()[1].item<float>() < 50);
  CHECK(gradient[0].abs().max().item<float>() == 0);
  CHECK(gradient[1].abs().max().item<float>() > 0);
}

TEST_CASE("losses that sum over the rows' own axes stay partial sums over a sharded batch") {
  const Mesh mesh = create_mesh({{"batch", 4}});
  const DTensor p = pack(at::rand({8, 3, 2}), Layout::batch_sharded(mesh, "batch", 3));
  const DTensor y = pack(at::ones({8, 3, 2}), Layout::batch_sharded(mesh, "batch", 3));
  const DTensor sequences = pack(at::ones({8, 1}), Layout::batch_sharded(mesh, "batch", 2));
  CommLog log;
  const CommLogScope scope(log);
  CHECK((*Dice({.axis = {1, 2}}))(y, p).layout().is_partial());
  CHECK((*Tversky({.axis = {1, 2}}))(y, p).layout().is_partial());
  CHECK((*BinaryFocalCrossentropy())(y, p).layout().is_partial());
  CHECK((*CategoricalFocalCrossentropy())(y, p).layout().is_partial());
  CHECK((*CTC())(sequences, p).layout().is_partial());
  CHECK(log.entries().empty());
}

}  // namespace losses_test
