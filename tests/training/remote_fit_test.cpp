#include <tessera/framework/base/error.hpp>
#include <tessera/framework/training/internal/local_steps.hpp>

#include "tests/training/remote_fit.hpp"

namespace remote_fit_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test::remote_fit;
using Catch::Matchers::Contains;

TEST_CASE("fit with remote steps equals ordinary fit", "[remote]") {
  const int64_t at_a_time = GENERATE(1, 3, 100);
  CAPTURE(at_a_time);
  const auto fake = std::make_shared<FakeSteps>();
  fake->at_a_time = at_a_time;
  const Outcome outcome = trained(fake);
  check_equal(outcome, trained(nullptr));
  CHECK(outcome.history.steps.size() == steps * epochs);
  REQUIRE(fake->final_history);
  CHECK(fake->final_history->to_json() == outcome.history.to_json());
  CHECK(fake->failure == "");
  // Entire epochs and validations: nobody needs weights in between.
  CHECK(fake->ranges.size() == 2 * epochs);
}

TEST_CASE("remote steps: only models compiled in the scope use them", "[remote]") {
  const auto fake = std::make_shared<FakeSteps>();
  const Sequential before = compiled_model();
  const auto runs_here = [] {
    return dynamic_cast<const LocalSteps*>(step_executor().get()) != nullptr;
  };
  CHECK(runs_here());
  {
    const StepExecutorScope scope(fake);
    CHECK(step_executor() == fake);
    const StepExecutorScope none(nullptr);
    CHECK(runs_here());
  }
  CHECK(runs_here());
  before.fit(test::small_data(rows), options_of({}));
  CHECK(fake->ranges.empty());
}

TEST_CASE("remote steps: batches are reported in order, whatever the order of completion",
          "[remote]") {
  const auto fake = std::make_shared<FakeSteps>();
  fake->at_a_time = 3;
  const auto listener = std::make_shared<Listener>();
  const Outcome outcome = trained(fake, {listener});
  const auto ordinary = std::make_shared<Listener>();
  trained(nullptr, {ordinary});
  CHECK(listener->begun == ordinary->begun);
  CHECK(listener->ended == ordinary->ended);
  CHECK(listener->tested == ordinary->tested);
  CHECK(listener->losses.back() == Approx(outcome.history.at("loss").back()));
  CHECK(fake->ranges.size() == 2 * epochs);
}

namespace {

/// Saves the weights at the end of every batch for which it needs them.
struct Weights : Callback, OccasionalWeightReader {
  explicit Weights(int64_t batches) : every(batches) {}
  void on_train_batch_end(int64_t, const Logs&) override {
    if (++heard % every == 0) saved.push_back(saved_run(model()));
  }
  std::optional<int64_t> batches_to_weights() override { return every - heard % every; }
  int64_t every, heard = 0;
  std::vector<SavedRun> saved;
};

}  // namespace

TEST_CASE("remote steps: a callback that needs the weights has them", "[remote]") {
  const int64_t every = GENERATE(1, 2, 3);
  CAPTURE(every);
  const auto fake = std::make_shared<FakeSteps>();
  fake->at_a_time = 4;
  const auto here = std::make_shared<Weights>(every), there = std::make_shared<Weights>(every);
  trained(nullptr, {here});
  trained(fake, {there});
  REQUIRE(here->saved.size() == static_cast<size_t>(steps * epochs / every));
  REQUIRE(there->saved.size() == here->saved.size());
  for (size_t i = 0; i < here->saved.size(); ++i) {
    const SavedRun& a = there->saved[i];
    const SavedRun& b = here->saved[i];
    CHECK(a.position.epoch == b.position.epoch);
    CHECK(a.position.step == b.position.step);
    CHECK(a.optimizer_steps == b.optimizer_steps);
    CHECK(a.totals["loss"][0].get<double>() == Approx(b.totals["loss"][0].get<double>()));
    for (const auto& [name, metric] : b.totals["metrics"].items()) {
      // What is known without a reduction is for the process that computed it.
      CHECK(a.totals["metrics"][name]["totals"] == metric["totals"]);
      CHECK(a.totals["metrics"][name]["value"] == metric["value"]);
    }
    for (size_t w = 0; w < b.weights.size(); ++w) CHECK(at::equal(a.weights[w], b.weights[w]));
    for (size_t s = 0; s < b.slots.size(); ++s) CHECK(at::equal(a.slots[s], b.slots[s]));
  }
}

TEST_CASE("remote steps: weights are fetched after every batch unless callbacks need fewer",
          "[remote]") {
  struct Plain : Callback {
    void on_train_batch_end(int64_t, const Logs&) override {}
  };
  const auto fake = std::make_shared<FakeSteps>();
  const auto seldom = std::make_shared<Listener>();
  trained(fake, {seldom, std::make_shared<Plain>()});
  // A range for each step of training, and one for each validation.
  CHECK(fake->ranges.size() == (steps + 1) * epochs);
}

TEST_CASE("remote steps: a task that works for another one's fit returns its history", "[remote]") {
  const auto fake = std::make_shared<FakeSteps>();
  fake->served = History{{0}, {}, {3, 2}, "data"};
  const auto listener = std::make_shared<Listener>();
  const Outcome outcome = trained(fake, {listener});
  CHECK(outcome.history.to_json() == fake->served->to_json());
  CHECK(listener->ended.empty());
  CHECK(!fake->final_history);
}

TEST_CASE("remote steps: streams report their number of steps", "[remote]") {
  const StepExecutorScope scope(std::make_shared<FakeSteps>());
  const Sequential model = compiled_model();
  const Examples batch = test::small_data(8).get(BatchRows(8, {.batch_size = 8}).of(0));
  const GeneratorDataset stream([batch] {
    return [batch, left = 3]() mutable -> std::optional<Examples> {
      if (left-- == 0) return std::nullopt;
      return batch;
    };
  });
  CHECK_THROWS_WITH(model.fit(stream, {.verbose = 0}),
                    Contains("[fit] steps_per_epoch tells how many batches a stream has"));
  CHECK(model.fit(stream, {.epochs = 2, .verbose = 0, .steps_per_epoch = 3}).steps.size() == 6);
}

namespace {

/// A model whose steps read numbers, so that they cannot be planned.
class Reading final : public Model {
 public:
  Reading() : inner_(track(test::small_model())) {}
  std::string class_name() const override { return "Reading"; }
  StepValues train_step(const Batch& batch) override {
    if (batch.x[0].full().isnan().any().item<bool>()) throw std::runtime_error("bad rows");
    return Model::train_step(batch);
  }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override {
    return inner_(inputs[0], context);
  }

 private:
  LayerHandle inner_;
};

}  // namespace

TEST_CASE("remote steps: metrics of steps that cannot be planned are means over rows", "[remote]") {
  const auto fit = [](const std::shared_ptr<FakeSteps>& remote) {
    const StepExecutorScope scope(remote);
    const ModelHandle model(std::make_shared<Reading>());
    model.compile(test::small_compile(test::small_layouts("data", create_mesh({{"batch", 1}}))));
    return model.fit(test::small_data(rows), options_of({}));
  };
  const History there = fit(std::make_shared<FakeSteps>());
  const History here = fit(nullptr);
  CHECK(there.at("loss")[0] == Approx(here.at("loss")[0]));
  CHECK(there.at("accuracy")[0] == Approx(here.at("accuracy")[0]));
  CHECK(there.at("val_accuracy")[2] == Approx(here.at("val_accuracy")[2]));
}

}  // namespace remote_fit_test
