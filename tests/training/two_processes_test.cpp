#include <mutex>

#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/thread_communicator.hpp"

using namespace tessera;

namespace {

/// What training leaves.
struct Outcome {
  History history;
  std::vector<at::Tensor> weights;
  at::Tensor predictions;
};

/// Two epochs of 27 rows in batches of 8, the last of 3, with validation.
Outcome train(const test::SmallScheme& scheme, const Mesh& mesh) {
  const Sequential model = test::small_model();
  model.compile(test::small_compile(test::small_layouts(scheme.layouts, mesh)));
  Outcome outcome;
  outcome.history = model.fit(test::small_data(27), {.batch_size = 8,
                                                     .epochs = 2,
                                                     .verbose = 0,
                                                     .validation_data = test::small_data(11, 2)});
  outcome.weights = test::whole_weights(model);
  outcome.predictions = model.predict(test::small_data(5, 3), {}).clone();
  return outcome;
}

std::string differs(const Outcome& actual, const Outcome& expected) {
  const auto list = [](const std::vector<double>& values) {
    return at::tensor(values, at::kDouble);
  };
  std::string text =
      test::difference(list(actual.history.steps), list(expected.history.steps), 1e-9);
  for (const auto& [name, course] : expected.history.history) {
    text += test::difference(list(actual.history.at(name)), list(course), 1e-9);
  }
  for (size_t w = 0; w < expected.weights.size(); ++w) {
    text += test::difference(actual.weights[w], expected.weights[w], 1e-9, 1e-11);
  }
  return text + test::difference(actual.predictions, expected.predictions, 1e-9, 1e-11);
}

}  // namespace

TEST_CASE("two processes of four devices train as one of eight") {
  for (const BlockPolicy policy : test::policies) {
    for (const test::SmallScheme& scheme : test::small_schemes()) {
      const bool whole_dimension_here = scheme.mesh[0].second == 2;
      if (policy != BlockPolicy::per_worker && !whole_dimension_here) continue;
      CAPTURE(test::to_string(policy), scheme.layouts, to_string(scheme.mesh));
      const BlockPolicyScope blocks(policy);
      const Outcome one = train(scheme, create_mesh(scheme.mesh));
      CHECK(one.history.steps.size() == 8);
      std::mutex mutex;
      std::vector<Outcome> halves;
      const auto half = [&](int, const std::shared_ptr<Communicator>& communicator) {
        const BlockPolicyScope same(policy);
        const Outcome outcome = train(scheme, test::rank_mesh(scheme.mesh, communicator));
        const std::lock_guard<std::mutex> lock(mutex);
        halves.push_back(outcome);
      };
      CHECK_NOTHROW(test::run_ranks(2, half));
      for (const Outcome& outcome : halves) CHECK(differs(outcome, one) == "");
      CHECK(halves.size() == 2);
    }
  }
}
