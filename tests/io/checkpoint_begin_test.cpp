#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/io/format/checkpoint_reader.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/small_model.hpp"

namespace checkpoint_begin_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

Sequential compiled() {
  const Sequential model = test::small_model();
  model.compile(test::small_compile(test::small_layouts("model", create_mesh({{"model", 2}}))));
  return model;
}

History trained(const Sequential& model) {
  return model.fit(test::small_data(40), {.batch_size = 8, .epochs = 2, .verbose = 0});
}

}  // namespace

TEST_CASE("a checkpoint from before the first step resets training to its start", "[checkpoint]") {
  const test::TempFolder folder;
  const std::string path = folder / "begin";
  const Sequential model = compiled();
  model.build({-1, 18});
  Checkpoint checkpoint(model);
  checkpoint.save(path);
  const History first = trained(model);
  checkpoint.restore(path);
  const History second = trained(model);
  CHECK(second.steps == first.steps);
}

TEST_CASE("slots that a custom loop had not created yet start anew", "[checkpoint]") {
  const test::TempFolder folder;
  const std::string path = folder / "begin";
  const Variable weight("w", ones({3}));
  const OptimizerHandle adam = Adam(0.1);
  Checkpoint checkpoint({weight}, {adam});
  checkpoint.save(path);
  adam->apply({ones({3})}, {weight});
  const at::Tensor once = weight.value().full().clone();
  adam->apply({ones({3})}, {weight});
  checkpoint.restore(path);
  CHECK(adam->steps() == 0);
  for (const Variable& slot : adam->variables()) {
    CHECK(at::equal(slot.value().full(), at::zeros({3})));
  }
  adam->apply({ones({3})}, {weight});
  CHECK(at::equal(weight.value().full(), once));
}

TEST_CASE("the losses of steps are stored as one tensor, whatever their number", "[checkpoint]") {
  const test::TempFolder folder;
  const std::string path = folder / "end";
  const Sequential model = compiled();
  const History history = trained(model);
  Checkpoint(model).save(path);
  const CheckpointReader reader(path);
  CHECK(reader.state().at("history").at("steps").empty());
  CHECK(reader.at("history.steps").shape == Shape{10});
  const Sequential other = compiled();
  other.build({-1, 18});
  Checkpoint(other).restore(path);
  CHECK(other->history().steps == history.steps);
}

}  // namespace checkpoint_begin_test
