// Training on videos, sharded over frames and rows.
#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace volume_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

struct Run {
  std::vector<double> losses;
  std::vector<at::Tensor> weights;
};

InitializerHandle seeded(int64_t seed) { return GlorotUniform({.seed = seed}); }

/// A model of videos (frames, rows, columns, 1), which halves and restores rows, columns and
/// frames.
Sequential video_model() {
  return Sequential({
      Conv3D(4, 3,
             {.padding = "same",
              .activation = "relu",
              .kernel_initializer = seeded(1),
              .name = "encode_1"}),
      MaxPooling3D({1, 2, 2}),
      Conv3D(4, 2,
             {.padding = "same",
              .activation = "tanh",
              .kernel_initializer = seeded(2),
              .name = "encode_2"}),
      AveragePooling3D({2, 1, 1}),
      Conv3DTranspose(3, 3,
                      {.strides = {2, 1, 1},
                       .padding = "same",
                       .kernel_initializer = seeded(3),
                       .name = "decode_1"}),
      UpSampling3D({1, 2, 2}),
      Conv3D(1, 1, {.kernel_initializer = seeded(4), .name = "decode_2"}),
  });
}

/// Trains six steps to restore the videos.
Run train(const LayoutMap& layouts) {
  const test::DTypeScope wide("float64");
  const at::Tensor videos = test::random_values({{8, 4, 8, 6, 1}}, 5);
  const Sequential model = video_model();
  model.compile({.optimizer = SGD(0.1), .loss = MeanSquaredError(), .layouts = layouts});
  const History history =
      model.fit(videos, videos, {.batch_size = 4, .epochs = 3, .verbose = 0, .shuffle = false});
  Run run{history.steps, {}};
  for (const Variable& weight : model->weights()) run.weights.push_back(weight.value().full());
  return run;
}

}  // namespace

TEST_CASE("a model of videos trains on sharded frames and rows as on one device") {
  const Run expected =
      train(LayoutMap(create_mesh({{"depth", 1}, {"height", 1}}, virtual_cpus(1))));
  REQUIRE(expected.losses.size() == 6);
  CHECK(expected.losses.back() < expected.losses.front());
  LayoutMap layouts(create_mesh({{"depth", 2}, {"height", 2}}, virtual_cpus(4)));
  for (const char* data : {"x", "y"}) {
    layouts.set_data(data, {unsharded, "depth", "height", unsharded, unsharded});
  }
  const Run run = train(layouts);
  CHECK(test::difference(at::tensor(run.losses), at::tensor(expected.losses), 1e-12) == "");
  REQUIRE(run.weights.size() == 8);
  CHECK(test::difference_in_float64(run.weights, expected.weights, 1e-12) == "");
}

}  // namespace volume_test
