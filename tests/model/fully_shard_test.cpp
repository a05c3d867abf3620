#include <map>
#include <string>

#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"

namespace fully_shard_test {

using namespace tessera;

TEST_CASE("fully_shard leaves states whole and places biases like kernels") {
  const Mesh mesh = create_mesh({{"batch", 4}});
  LayoutMap layouts(mesh);
  layouts.fully_shard("batch");
  const Sequential model({Dense(8, {.name = "dense"}), BatchNormalization({.name = "norm"})});
  model.compile({.optimizer = "sgd", .loss = "mse", .layouts = layouts});
  model.build({1, 12});
  std::map<std::string, std::string> found;
  for (const Variable& weight : model.weights()) found[weight.path()] = weight.layout().describe();
  CHECK(found["dense/kernel"] == "(batch, unsharded)");
  CHECK(found["dense/bias"] == "(batch)");
  CHECK(found["norm/gamma"] == "(batch)");
  CHECK(found["norm/moving_mean"] == "(unsharded)");
}

}  // namespace fully_shard_test
