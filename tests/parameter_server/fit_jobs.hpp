#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/training/history.hpp>
#include <tessera/tessera.hpp>

#include "tests/parameter_server/job_threads.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/small_fit.hpp"

namespace tessera::test {

using namespace detail;

/// Fits of the small model as a parameter server job and as ordinary ones.
namespace fit_jobs {

using namespace small_fit;

/// The results of a fit.
struct Outcome {
  History history;
  std::vector<at::Tensor> weights, slots;
  int64_t optimizer_steps = 0;
  Logs evaluated;
};

using Fit = std::function<History(const ModelHandle&)>;
using Make = std::function<ModelHandle()>;

inline ModelHandle make_small() {
  const Sequential model = small_model();
  model.compile(small_compile({}));
  return model;
}

inline Outcome outcome_of(const ModelHandle& model, const Fit& fit) {
  Outcome outcome;
  outcome.history = fit(model);
  for (const at::Tensor& weight : model.get_weights()) outcome.weights.push_back(weight.clone());
  for (const Variable& slot : model->optimizer()->variables()) {
    outcome.slots.push_back(slot.value().full().clone());
  }
  outcome.optimizer_steps = model->optimizer()->steps();
  outcome.evaluated = model.evaluate(small_data(20, 2), {.verbose = 0});
  return outcome;
}

/// Runs an ordinary fit on one device.
inline Outcome ordinary(const Fit& fit, const Make& make = make_small) {
  const DefaultMeshScope scope(create_mesh({{"batch", 1}}));
  return outcome_of(make(), fit);
}

struct JobOutcome {
  Outcome chief;
  std::vector<History> workers;
  JobErrors errors;
};

/// Runs the same fit as a job; returns the coordinator's results and the workers' histories.
inline JobOutcome with_servers(const JobThreadsOptions& options, const Fit& fit,
                               const Make& make = make_small) {
  JobOutcome job;
  std::mutex mutex;
  job.errors = run_job(options, [&](strategy::ParameterServerStrategy& strategy) {
    const auto scope = strategy.scope();
    const ModelHandle model = make();
    if (strategy.is_coordinator()) {
      job.chief = outcome_of(model, fit);
      return;
    }
    const History history = fit(model);
    const std::lock_guard lock(mutex);
    if (strategy.task_type() == TaskType::worker) job.workers.push_back(history);
  });
  return job;
}

inline at::Tensor list(const std::vector<double>& all) { return at::tensor(all, at::kDouble); }

inline void check_equal(const Outcome& outcome, const Outcome& expected, double tolerance = 1e-10) {
  const auto near = [&](const at::Tensor& a, const at::Tensor& b) {
    return difference(a, b, tolerance, tolerance);
  };
  CHECK(near(list(outcome.history.steps), list(expected.history.steps)) == "");
  REQUIRE(outcome.history.history.size() == expected.history.history.size());
  for (const auto& [name, course] : expected.history.history) {
    CAPTURE(name);
    CHECK(near(list(outcome.history.at(name)), list(course)) == "");
  }
  CHECK(outcome.history.epoch == expected.history.epoch);
  CHECK(outcome.optimizer_steps == expected.optimizer_steps);
  REQUIRE(outcome.weights.size() == expected.weights.size());
  for (size_t i = 0; i < expected.weights.size(); ++i) {
    CHECK(near(outcome.weights[i], expected.weights[i]) == "");
  }
  REQUIRE(outcome.slots.size() == expected.slots.size());
  for (size_t i = 0; i < expected.slots.size(); ++i) {
    CHECK(near(outcome.slots[i], expected.slots[i]) == "");
  }
  REQUIRE(outcome.evaluated.size() == expected.evaluated.size());
  for (size_t i = 0; i < expected.evaluated.size(); ++i) {
    CHECK(outcome.evaluated[i].second == Approx(expected.evaluated[i].second));
  }
}

}  // namespace fit_jobs
}  // namespace tessera::test
