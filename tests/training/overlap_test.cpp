#include <tessera/tessera.hpp>

#include <atomic>
#include <mutex>
#include <numeric>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/optimizer/internal/gradient_reducer.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/comm_lines.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/noted_communicator.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/thread_communicator.hpp"

namespace overlap_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;

namespace {

constexpr int64_t rows = 16;

Sequential compiled(const test::SmallScheme& scheme, const Mesh& mesh, double cap) {
  const Sequential model = test::small_model();
  CompileOptions options = test::small_compile(test::small_layouts(scheme.layouts, mesh));
  options.bucket_cap_mb = cap;
  model.compile(options);
  return model;
}

Examples sample() {
  std::vector<int64_t> all(rows);
  std::iota(all.begin(), all.end(), 0);
  return test::small_data(rows).get(all);
}

Batch batch_of(const LayoutMap& layouts) { return pack_batch(sample(), layouts); }

std::vector<at::Tensor> trained(const test::SmallScheme& scheme, const Mesh& mesh, double cap) {
  const Sequential model = compiled(scheme, mesh, cap);
  model.fit(test::small_data(27), {.batch_size = 8, .epochs = 1, .verbose = 0});
  return test::full_weights(model);
}

/// Two layers; the second's kernel may be assigned between the passes.
class Assigning final : public Model {
 public:
  Assigning() : Model(LayerOptions()) {}
  std::string class_name() const override { return "Assigning"; }
  bool fails = false;

  StepValues train_step(const Batch& batch) override {
    GradientTape tape;
    const std::vector<DTensor> y_pred = outputs(batch.x, training_context());
    const DTensor loss = compute_loss(batch, y_pred);
    Variable kernel = trainable_weights()[2];
    if (fails) kernel.assign(kernel.value());
    minimize(loss, tape);
    return loss;
  }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override {
    return last_(middle_(first_(inputs[0], context), context), context);
  }

 private:
  LayerHandle first_ = track(Dense(6, {.name = "first", .dtype = "float64"}));
  LayerHandle middle_ = track(Dense(6, {.name = "middle", .dtype = "float64"}));
  LayerHandle last_ = track(Dense(5, {.name = "last", .dtype = "float64"}));
};

}  // namespace

TEST_CASE("a fit gives the same weights with any bucket size", "[overlap]") {
  for (const test::SmallScheme& scheme : test::small_schemes()) {
    CAPTURE(scheme.layouts, to_string(scheme.mesh));
    const std::vector<at::Tensor> expected = trained(scheme, create_mesh(scheme.mesh), 25);
    for (double cap : {0.0, 1e-3}) {
      const auto half = [&](int, const std::shared_ptr<Communicator>& communicator) {
        const auto actual = trained(scheme, test::rank_mesh(scheme.mesh, communicator), cap);
        for (size_t w = 0; w < expected.size(); ++w) {
          const std::string wrong = test::difference(actual[w], expected[w], 1e-9, 1e-11);
          test::expect(wrong.empty(), wrong);
        }
      };
      CHECK_NOTHROW(test::run_ranks(2, half));
    }
  }
}

TEST_CASE("two processes log what a plan says, with and without buckets", "[overlap]") {
  for (const test::SmallScheme& scheme : test::small_schemes()) {
    CAPTURE(scheme.layouts, to_string(scheme.mesh));
    for (double cap : {0.0, 25.0}) {
      const auto half = [&](int, const std::shared_ptr<Communicator>& communicator) {
        const Mesh mesh = test::rank_mesh(scheme.mesh, communicator);
        const Sequential model = compiled(scheme, mesh, cap);
        const StepPlan plan = model.plan(test::small_data(rows), {.batch_size = rows});
        const Batch batch = batch_of(test::small_layouts(scheme.layouts, mesh));
        CommLog log;
        {
          const CommLogScope logged(log);
          model.model().train_step(batch).loss().full();
        }
        test::expect(test::comm_lines(plan.collectives) == test::comm_lines(log.entries()),
                     "another log");
      };
      CHECK_NOTHROW(test::run_ranks(2, half));
    }
  }
}

TEST_CASE("a plan between processes forms the buckets of a real step", "[overlap]") {
  std::atomic<int64_t> buckets = 0;
  for (const test::SmallScheme& scheme : test::small_schemes()) {
    CAPTURE(scheme.layouts, to_string(scheme.mesh));
    for (double cap : {0.0, 1e-3, 25.0}) {
      const auto half = [&](int, const std::shared_ptr<Communicator>& communicator) {
        // As if every device were alone in its process.
        const BlockPolicyScope separate(BlockPolicy::per_device);
        const Mesh mesh = test::rank_mesh(scheme.mesh, communicator);
        const Sequential model = compiled(scheme, mesh, cap);
        model.plan(test::small_data(rows), {.batch_size = rows});
        const ReductionTimes planned = model->optimizer()->reducer().last_times();
        model.model().train_step(batch_of(test::small_layouts(scheme.layouts, mesh)));
        const ReductionTimes real = model->optimizer()->reducer().last_times();
        buckets += planned.messages;
        test::expect(planned.messages == real.messages && planned.bytes == real.bytes,
                     str(planned.messages, " buckets of ", planned.bytes, " bytes planned, ",
                         real.messages, " of ", real.bytes));
      };
      CHECK_NOTHROW(test::run_ranks(2, half));
    }
  }
  CHECK(buckets > 0);
}

TEST_CASE("a model's reductions begin before those of layers below", "[overlap]") {
  const test::SmallScheme& scheme = test::small_schemes()[1];
  const auto half = [&](int, const std::shared_ptr<Communicator>& inner) {
    test::CommNotes notes;
    const Mesh mesh = test::rank_mesh(scheme.mesh, test::noted_communicator(inner, notes));
    const Sequential model = compiled(scheme, mesh, 0);
    const Batch batch = batch_of(test::small_layouts(scheme.layouts, mesh));
    model.model().train_on_batch(sample());
    notes.calls.clear();
    model.model().train_step(batch);
    const auto at = [&](const std::string& call) {
      return std::find(notes.calls.begin(), notes.calls.end(), call) - notes.calls.begin();
    };
    std::string text;
    for (const std::string& call : notes.calls) text += call + "; ";
    const auto count = static_cast<int64_t>(notes.calls.size());
    test::expect(at("all_reduce of logits/bias") < count, text);
    test::expect(notes.waiting == 0, "nothing under way");
    for (const char* later : {"all_reduce of hidden_2/kernel", "all_reduce of hidden_1/kernel"}) {
      test::expect(at("all_reduce of logits/kernel") < at(later), text);
    }
  };
  CHECK_NOTHROW(test::run_ranks(2, half));
}

TEST_CASE("a step that fails in its backward pass leaves no reduction in flight", "[overlap]") {
  CHECK_NOTHROW(test::run_ranks(2, [](int, const std::shared_ptr<Communicator>& inner) {
    test::CommNotes notes;
    const Mesh mesh = test::rank_mesh({{"batch", 2}}, test::noted_communicator(inner, notes));
    LayoutMap layouts(mesh);
    layouts.set_data("x", {"batch", unsharded});
    layouts.set_data("y", {"batch"});
    Assigning model;
    CompileOptions options = test::small_compile(layouts);
    options.bucket_cap_mb = 0;
    model.compile(options);
    const Batch batch = batch_of(layouts);
    model.train_on_batch(sample());
    const int64_t full_step = notes.started;
    model.fails = true;
    std::string error;
    try {
      model.train_step(batch);
    } catch (const StateError& caught) {
      error = caught.what();
    }
    test::expect(error.find("assigned in between") != std::string::npos, error);
    test::expect(notes.started > full_step, "some reductions were begun");
    test::expect(notes.waiting == 0, "and waited for");
    model.fails = false;
    model.train_step(batch);
    test::expect(notes.waiting == 0, "the next step is whole");
  }));
}

TEST_CASE("compile takes the size of buckets", "[overlap]") {
  const auto half = [](int, const std::shared_ptr<Communicator>& inner) {
    const test::SmallScheme& scheme = test::small_schemes()[0];
    for (const auto& [cap, messages] : {std::pair{25.0, 1}, {0.0, 6}}) {
      const Mesh mesh = test::rank_mesh(scheme.mesh, inner);
      const Sequential model = compiled(scheme, mesh, cap);
      model.model().train_on_batch(sample());
      const ReductionTimes& times = model->optimizer()->reducer().last_times();
      test::expect(times.messages == messages, str(times.messages, " messages"));
    }
  };
  CHECK_NOTHROW(test::run_ranks(2, half));
  const Sequential model = compiled(test::small_schemes()[0], create_mesh({{"batch", 8}}), -1);
  CHECK_THROWS_WITH(model.fit(test::small_data(8), {.verbose = 0}), Contains("[bucket_cap_mb]"));
}

}  // namespace overlap_test
