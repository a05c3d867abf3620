#include <tessera/framework/base/json.hpp>
#include <tessera/tessera.hpp>

#include "tests/gpu/meshes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/program.hpp"
#include "tests/support/small_model.hpp"

namespace training_test {

using namespace tessera;
using namespace tessera::detail;
using test::difference;

namespace {

struct Run {
  double loss = 0;
  std::vector<at::Tensor> weights;
};

Run train(const test::SmallScheme& scheme, const Mesh& mesh) {
  const Sequential model = test::small_model();
  model.compile(test::small_compile(test::small_layouts(scheme.layouts, mesh)));
  const History history = model.fit(test::small_data(13, 1, true),
                                    {.batch_size = 5, .epochs = 2, .verbose = 0, .shuffle = false});
  return {history.at("loss").back(), test::full_weights(model)};
}

}  // namespace

TEST_CASE("training steps on GPUs equal the CPU's under every scheme") {
  for (const test::SmallScheme& scheme : test::small_schemes()) {
    INFO(scheme.layouts << " on " << to_string(scheme.mesh));
    const Run expected = train(scheme, create_mesh(scheme.mesh));
    const Run run = train(scheme, test::gpu_mesh(scheme.mesh));
    CHECK(run.loss == Approx(expected.loss).epsilon(1e-9));
    REQUIRE(run.weights.size() == expected.weights.size());
    for (size_t w = 0; w < run.weights.size(); ++w) {
      CHECK(difference(run.weights[w], expected.weights[w], 1e-9, 1e-9) == "");
    }
  }
}

TEST_CASE("a label out of range ends a fit on a GPU with operation, value and row") {
  set_random_seed(1);
  const Sequential model({Dense(4)});
  model.compile({.optimizer = SGD(0.1),
                 .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                 .layouts = LayoutMap(test::gpu_mesh({{"batch", 2}}))});
  const at::Tensor x = at::ones({48, 5}), right = at::zeros({48}, at::kLong);
  at::Tensor wrong = right.clone();
  wrong[13] = 9;
  const FitOptions fit{.batch_size = 8, .verbose = 0, .shuffle = false};
  CHECK_THROWS_WITH(model.fit(x, wrong, fit),
                    Catch::Matchers::StartsWith("[sparse_softmax_cross_entropy] labels lie in "
                                                "[0, 4). Received: 9 in row 5."));
  // The model can continue with valid data.
  CHECK(model.fit(x, right, fit).steps.size() == 6);
}

TEST_CASE("mnist and imdb train on a GPU") {
  const test::TempFolder folder;
  for (const char* name : {"mnist", "imdb"}) {
    const std::string history = folder / std::string(name);
    const test::ProgramRun run =
        test::run_program(test::app_path(name),
                          {"--device", "cuda", "--mesh", "batch=1", "--train-size", "256",
                           "--test-size", "64", "--epochs", "1", "--history", history},
                          {{"TESSERA_DATA", ""}, {"XDG_CACHE_HOME", folder.path()}});
    INFO(name << ": " << run.err);
    CHECK(run.exit_code == 0);
    CHECK(read_json_file(history).at("history").at("loss").size() == 1);
  }
}

}  // namespace training_test
