#pragma once

#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/training/history.hpp>
#include <tessera/framework/training/internal/step_runner.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/small_model.hpp"

namespace tessera::test {

using namespace detail;

/// The results of a fit, and how its steps were executed.
struct Outcome {
  std::vector<double> losses;
  std::vector<at::Tensor> weights;
  History history;
  StepRecords records;
};

/// Trains 35 steps, of which every seventh has 4 rows.
inline Outcome trained(Sequential model, const CompileOptions& options, int64_t epochs = 5) {
  model.compile(options);
  const History history =
      model.fit(small_data(100, 1, true), {.batch_size = 16, .epochs = epochs, .verbose = 0});
  return {history.steps, full_weights(model), history, model.step_records()};
}

inline void check_equal(const Outcome& replayed, const Outcome& eager) {
  CHECK(difference(at::tensor(replayed.losses, at::kDouble), at::tensor(eager.losses, at::kDouble),
                   1e-12) == "");
  REQUIRE(replayed.weights.size() == eager.weights.size());
  for (size_t w = 0; w < eager.weights.size(); ++w) {
    CHECK(difference(replayed.weights[w], eager.weights[w], 1e-10, 1e-13) == "");
  }
  CHECK(eager.records.replayed == 0);
}

/// Checks that steps of the model that make() returns are replayed on one device and on three, with
/// the results of eager ones.
template <class Make>
void check_replayed(const Make& make) {
  for (int64_t devices : {1, 3}) {
    CAPTURE(devices);
    const LayoutMap layouts(create_mesh({{"batch", devices}}, virtual_cpus(devices)));
    const Outcome replayed = trained(make(), small_compile(layouts));
    CHECK(replayed.records.why == "");
    CHECK(replayed.records.replayed == 31);
    CompileOptions options = small_compile(layouts);
    options.run_eagerly = true;
    check_equal(replayed, trained(make(), options));
  }
}

inline Examples rows_of(const TensorDataset& data, const std::vector<int64_t>& rows) {
  return data.get(rows);
}

inline LayoutMap one_device() { return LayoutMap(create_mesh({{"batch", 1}}, virtual_cpus(1))); }

}  // namespace tessera::test
