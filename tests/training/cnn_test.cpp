#include <tessera/tessera.hpp>

#include <ATen/ATen.h>
#include <c10/util/ScopeExit.h>

#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/training/capture/step_capture.hpp>
#include <tessera/framework/training/history.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/seed_scope.hpp"

namespace cnn_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

constexpr int64_t steps = 30, batch = 64;

/// MNIST, or procedural digits.
MnistDataset images(at::ScalarType dtype) {
  return datasets::mnist({.size = steps * batch, .dtype = dtype, .download = std::nullopt});
}

struct Case {
  const char* dtype;
  bool batch_norm;
  double dropout;
  /// The maximum difference of losses: in the first ten steps, and in all.
  double early, late;
};

// With batch norm a pixel that moves to the other side of a ReLU can change an update a thousand
// times more than rounding does: in float64, images 1e-7 apart moved the losses by 1e-7 in eight
// runs of ten, by 2e-6 and 3e-4 in two. (Keras: 1.6e-3 between TensorFlow and JAX.)
constexpr double ill_conditioned = 2e-3;

Sequential cnn(const Case& how) {
  Sequential model({Reshape({28, 28, 1})});
  for (int64_t i = 1; i <= 2; ++i) {
    const std::string number = std::to_string(i);
    model.add(Conv2D(32 * i, 3,
                     {.activation = "relu",
                      .kernel_initializer = GlorotUniform({.seed = i}),
                      .name = "conv_" + number}));
    if (how.batch_norm) model.add(BatchNormalization());
    model.add(MaxPooling2D(2));
  }
  model.add(Flatten());
  if (how.dropout > 0) model.add(Dropout(how.dropout));
  model.add(Dense(10, {.kernel_initializer = GlorotUniform({.seed = 3}), .name = "logits"}));
  return model;
}

/// Shards batch, height and width of the images over the mesh dimensions of these names, and the
/// first convolution's filters, which are the second's channels, over "channel".
LayoutMap layouts_on(const MeshDims& dims) {
  int64_t devices = 1;
  for (const auto& [name, size] : dims) devices *= size;
  const Mesh mesh = create_mesh(dims, virtual_cpus(devices));
  const auto dim = [&](const char* name) -> AxisSpec {
    for (const auto& [known, size] : dims) {
      if (known == name) return name;
    }
    return nullptr;
  };
  LayoutMap layouts(mesh);
  layouts.set_data("x", LayoutSpec{dim("batch"), dim("height"), dim("width")});
  layouts.set_data("y", LayoutSpec{dim("batch")});
  layouts.add({"conv_1/kernel", LayoutSpec{nullptr, nullptr, nullptr, dim("channel")}});
  layouts.add({"conv_1/bias", LayoutSpec{dim("channel")}});
  layouts.add({"conv_2/kernel", LayoutSpec{nullptr, nullptr, dim("channel"), nullptr}});
  return layouts;
}

std::vector<double> losses(const Case& how, const MeshDims& dims, CommLog* log = nullptr) {
  set_dtype_policy(dtype_policy(how.dtype));
  const auto as_before = c10::make_scope_exit([] { set_dtype_policy(dtype_policy("float32")); });
  const test::SeedScope seed(7);
  const Sequential model = cnn(how);
  model.compile({.optimizer = Adam(1e-3),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .layouts = layouts_on(dims)});
  const at::ScalarType dtype = how.dtype == std::string("float64") ? at::kDouble : at::kFloat;
  std::optional<CommLogScope> logging;
  if (log) logging.emplace(*log);
  const History history = model.fit(images(dtype), {.batch_size = batch, .verbose = 0});
  // Steps with oneDNN's memory are replayed too.
  CHECK(model.step_records().replayed == steps - 2);
  return history.steps;
}

double apart(const std::vector<double>& a, const std::vector<double>& b, size_t count) {
  double max_difference = 0;
  for (size_t i = 0; i < count; ++i)
    max_difference = std::max(max_difference, std::abs(a[i] - b[i]));
  return max_difference;
}

const std::vector<MeshDims> meshes = {{{"batch", 4}},
                                      {{"height", 2}},
                                      {{"height", 2}, {"width", 2}},
                                      {{"batch", 2}, {"height", 3}},
                                      {{"batch", 2}, {"channel", 2}}};

}  // namespace

TEST_CASE("a convolutional network trains equally on data, spatial and channel meshes") {
  const auto how =
      GENERATE(Case{"float32", false, 0.5, 2e-6, 1e-4}, Case{"float32", false, 0, 2e-6, 1e-4},
               Case{"float32", true, 0, ill_conditioned, ill_conditioned},
               Case{"float64", false, 0.5, 1e-12, 1e-12}, Case{"float64", true, 0, 1e-10, 1e-10},
               Case{"float64", true, 0.5, 1e-10, 1e-10});
  const std::vector<double> one = losses(how, {{"batch", 1}});
  REQUIRE(one.size() == steps);
  CHECK(one.back() < 0.8 * one.front());
  for (const MeshDims& dims : meshes) {
    CAPTURE(to_string(dims), how.dtype, how.batch_norm, how.dropout);
    const std::vector<double> other = losses(how, dims);
    CHECK(apart(one, other, 10) <= how.early);
    CHECK(apart(one, other, steps) <= how.late);
  }
}

TEST_CASE("spatial training exchanges rows and gathers no image") {
  CommLog log;
  losses(Case{"float32", false, 0.5, 0, 0}, {{"height", 2}, {"width", 2}}, &log);
  CHECK(log.count(CommOp::exchange) > 0);
  // Three rows of the largest features, which are 26 by 26.
  constexpr double rows = batch * 3 * 26 * 32 * 4;
  for (const CommEntry& entry : log.entries()) {
    CAPTURE(entry.place, to_string(entry.op));
    CHECK(entry.received <= rows);
    if (entry.place.starts_with("conv")) CHECK(entry.op != CommOp::all_gather);
  }
}

}  // namespace cnn_test
