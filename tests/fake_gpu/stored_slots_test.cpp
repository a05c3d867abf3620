#include <functional>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/internal/stored_value.hpp>
#include <tessera/tessera.hpp>

#include "tests/gpu/meshes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace stored_slots_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

TEST_CASE("slots of weights on GPUs rest on the host or on disk, with the same bits") {
  const TempFolder folder;
  const auto trained = [&](const OptimizerHandle& optimizer, const std::string& where) {
    set_random_seed(3);
    const Sequential model({Dense(14, {.activation = "relu"}), Dense(5)});
    LayoutMap layouts(gpu_mesh({{"batch", 2}}));
    layouts.fully_shard("batch");
    layouts.set_memory({.slots = where});
    model.compile({.optimizer = optimizer,
                   .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                   .layouts = layouts});
    const TensorDataset data(random_values({{64, 8}, at::kFloat, -1, 1}, 1),
                             random_values({{64}, at::kLong, 0, 5.0}, 2));
    model.fit(data, {.batch_size = 16, .epochs = 3, .verbose = 0});
    std::vector<at::Tensor> values;
    for (const Variable& slot : model->optimizer()->variables()) {
      CHECK((StoredValue::of(slot.value()) != nullptr) == !where.empty());
      values.push_back(slot.value().full());
    }
    for (const Variable& weight : model->weights()) values.push_back(weight.value().full());
    return values;
  };
  using OptimizerOf = std::function<OptimizerHandle()>;
  const auto make = GENERATE(OptimizerOf([] { return Adam(1e-2, {.global_clipnorm = 0.5}); }),
                             OptimizerOf([] { return Adafactor(1e-2); }));
  const std::vector<at::Tensor> expected = trained(make(), "");
  for (const std::string& where : {std::string("host"), "disk:" + folder.path().string()}) {
    CAPTURE(where);
    const std::vector<at::Tensor> stored = trained(make(), where);
    REQUIRE(stored.size() == expected.size());
    for (size_t i = 0; i < stored.size(); ++i) CHECK(at::equal(stored[i], expected[i]));
  }
}

}  // namespace stored_slots_test
