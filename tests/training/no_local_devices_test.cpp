#include <tessera/tessera.hpp>

#include <numeric>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/small_model.hpp"

namespace no_local_devices_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// A planned training step: the layouts of loss and gradients, and its communication.
struct Planned {
  std::vector<std::string> layouts;
  std::string log;
  size_t blocks = 0;
};

Planned plan_step(const test::SmallScheme& scheme, const Mesh& mesh) {
  const LayoutMap layouts = test::small_layouts(scheme.layouts, mesh);
  const Sequential model = test::small_model();
  model.compile(test::small_compile(layouts));
  model.build({-1, 18});
  model.model().place_weights(layouts);
  const LossHandle loss = SparseCategoricalCrossentropy({.from_logits = true});
  const OptimizerHandle adam = Adam(1e-2);
  std::vector<int64_t> rows(16);
  std::iota(rows.begin(), rows.end(), 0);
  const Batch batch = pack_batch(test::small_data(16).get(rows), layouts);
  const std::vector<Variable> variables = model.trainable_weights();
  std::vector<DTensor> sources;
  for (const Variable& variable : variables) sources.push_back(variable.value());
  adam->build(variables);

  Planned planned;
  CommLog log;
  const CommLogScope scope(log);
  GradientTape tape;
  const DTensor value = (*loss)(batch.y[0], model(batch.x));
  std::vector<DTensor> results = tape.gradient(value, sources);
  results.push_back(value);
  for (const DTensor& result : results) {
    planned.layouts.push_back(result.layout().describe() + to_string(result.shape()));
    planned.blocks += result.blocks().size();
  }
  results.pop_back();
  adam->apply(results, variables);
  planned.log = log.to_string();
  return planned;
}

}  // namespace

TEST_CASE("a process without devices of the mesh plans the same step and computes nothing") {
  for (const test::SmallScheme& scheme : test::small_schemes()) {
    CAPTURE(scheme.layouts, to_string(scheme.mesh));
    const Planned here = plan_step(scheme, create_mesh(scheme.mesh));
    const Planned away = plan_step(scheme, create_mesh_part(scheme.mesh, {}, {}, nullptr));
    CHECK(away.layouts == here.layouts);
    CHECK(away.log == here.log);
    CHECK(here.blocks > 0);
    CHECK(away.blocks == 0);
  }
}

TEST_CASE("values without local devices are relaid out and windowed, but not read") {
  const Mesh mesh = create_mesh_part({{"batch", 4}, {"model", 2}}, {}, {}, nullptr);
  const DTensor x = pack(at::rand({10, 6}), Layout({"batch", "model"}, mesh));
  CHECK(x.blocks().empty());
  const DTensor moved = ops::relayout(x, Layout({"model", "batch"}, mesh));
  CHECK(moved.layout().describe() == "(model, batch)");
  CHECK(ops::slice(x, 0, 1, 7).shape() == Shape{7, 6});
  CHECK(ops::reshape(x, {5, 12}).shape() == Shape{5, 12});
  CHECK(ops::softmax(x).layout().rank() == 2);
  CHECK_THROWS_AS(x.full(), StateError);
  CHECK_THROWS_AS(ops::sum(x).item(), StateError);
  CHECK_THROWS_AS(filled({}, 1, at::kFloat, Layout::replicated(mesh, 0)).item(), StateError);
  CHECK_THROWS_AS(x.local(0), MeshError);
  CHECK(unpack(x).empty());
  CHECK_THROWS_AS(pack(std::vector<at::Tensor>{}, x.layout()), ShapeError);
  CHECK(x.to_string().find("(batch, model)") != std::string::npos);
}

}  // namespace no_local_devices_test
