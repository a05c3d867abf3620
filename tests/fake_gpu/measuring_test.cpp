#include <tessera/tessera.hpp>

#include "tests/fake_gpu/gpus.hpp"
#include "tests/gpu/meshes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace measuring_test {

using namespace tessera;
using namespace tessera::test;
using Catch::Matchers::Contains;

TEST_CASE("memory is counted for each GPU separately") {
  constexpr int64_t mebi = 1 << 20;
  const auto make = [](int gpu, int64_t bytes) {
    return at::zeros({bytes}, at::TensorOptions(device(gpu)).dtype(at::kByte));
  };
  const at::Tensor before = make(0, mebi);
  const DeviceMemory memory;
  const int64_t there = memory.gpu_peak(0);
  CHECK(there >= mebi);
  { const at::Tensor gone = make(0, 8 * mebi), other = make(1, 2 * mebi); }
  make(0, 3 * mebi);
  CHECK(memory.gpu_peak(0) - there == 8 * mebi);
  CHECK(memory.gpu_peak(1) >= 2 * mebi);
  CHECK_THROWS_WITH(memory.gpu_peak(5), Contains("cuda:5"));
}

TEST_CASE("a profile has the GPU's times, and its trace a lane for the GPU") {
  const Sequential model({Dense(16, {.activation = "relu"}), Dense(4)});
  model.compile({.optimizer = Adam(),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .layouts = LayoutMap(gpu_mesh({{"batch", 1}}))});
  const TensorDataset data(at::ones({64, 8}), at::zeros({64}, at::kLong));
  // Draws the weights first, which is GPU work outside all steps.
  model.fit(data, {.batch_size = 8, .epochs = 1, .verbose = 0});
  Profile profile;
  model.fit(data, {.batch_size = 8, .epochs = 1, .verbose = 0});
  profile.stop();
  const Profile::Totals totals = profile.totals();
  CHECK(totals.steps == 8);
  CHECK(totals.gpu > 0);
  double step = 0, inside = 0;
  for (const Profile::Row& row : profile.rows()) {
    if (row.kind == SpanKind::step) step += row.gpu;
    if (row.kind == SpanKind::op || row.kind == SpanKind::optimizer) inside += row.gpu;
    if (row.kind == SpanKind::aten) CHECK(row.gpu == 0);
  }
  CHECK(step == Approx(totals.gpu));
  CHECK(inside > 0);
  CHECK(inside < step);
  CHECK_THAT(profile.table(), Contains("GPU ms") && Contains("; on the GPU "));
  const TempFolder folder;
  profile.save(folder / "trace.json");
  const std::string trace = read_file(folder / "trace.json");
  CHECK_THAT(trace, Contains(R"("args":{"name":"GPU"})"));
}

}  // namespace measuring_test
