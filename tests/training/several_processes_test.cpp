#include <atomic>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include <tessera/framework/comm/world_size_invariant.hpp>
#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/planted_sums.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/thread_communicator.hpp"

namespace several_processes_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

/// The results of training.
struct Outcome {
  History history;
  std::vector<at::Tensor> weights;
  at::Tensor predictions;
};

/// Trains two epochs of 27 rows in batches of 8, the last of 3, with validation.
Outcome train(const test::SmallScheme& scheme, const Mesh& mesh) {
  const Sequential model = test::small_model();
  model.compile(test::small_compile(test::small_layouts(scheme.layouts, mesh)));
  Outcome outcome;
  outcome.history = model.fit(
      test::small_data(27),
      {.batch_size = 8, .epochs = 2, .verbose = 0, .validation_data = test::small_data(11, 2)});
  outcome.weights = test::full_weights(model);
  outcome.predictions = model.predict(test::small_data(5, 3), {}).clone();
  return outcome;
}

/// Trains with weights of rows and classes, on data that is split.
Outcome train_weighted(const test::SmallScheme& scheme, const Mesh& mesh, bool by_class) {
  const Sequential model = test::small_model();
  CompileOptions options = test::small_compile(test::small_layouts(scheme.layouts, mesh));
  options.weighted_metrics = {"accuracy"};
  model.compile(options);
  FitOptions fit{.batch_size = 8, .epochs = 2, .verbose = 0, .validation_split = 0.4};
  if (by_class) fit.class_weight = {{0, 2.0}, {3, 0.5}};
  if (!by_class) fit.sample_weight = at::linspace(0.5, 2, 27, at::kDouble);
  Outcome outcome;
  outcome.history = model.fit(test::small_data(27), fit);
  outcome.weights = test::full_weights(model);
  const Logs logs = model.evaluate(
      test::small_data(11, 2),
      {.batch_size = 8, .verbose = 0, .sample_weight = at::linspace(1, 3, 11, at::kDouble)});
  for (const auto& [name, value] : logs) outcome.history.history.push_back({name + "!", {value}});
  outcome.predictions = at::zeros({1});
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

/// Checks that every rank of several gets the results of one process.
void check_ranks(int ranks, const test::SmallScheme& scheme,
                 const std::function<Outcome(const Mesh&)>& run) {
  CAPTURE(ranks, scheme.layouts, to_string(scheme.mesh));
  const Outcome one = run(create_mesh(scheme.mesh));
  CHECK(one.history.steps.size() > 0);
  const BlockPolicy policy = block_policy();
  std::mutex mutex;
  std::vector<Outcome> outcomes;
  const auto rank = [&](int, const std::shared_ptr<Communicator>& communicator) {
    const BlockPolicyScope same(policy);
    const Outcome outcome = run(test::rank_mesh(scheme.mesh, communicator));
    const std::lock_guard<std::mutex> lock(mutex);
    outcomes.push_back(outcome);
  };
  CHECK_NOTHROW(test::run_ranks(ranks, rank));
  for (const Outcome& outcome : outcomes) CHECK(differs(outcome, one) == "");
  CHECK(outcomes.size() == static_cast<size_t>(ranks));
}

/// The small data; counts which rows are read.
class Counting final : public Dataset {
 public:
  explicit Counting(int64_t size) : data_(test::small_data(size)) {}
  int64_t size() const override { return data_.size(); }
  Examples get(std::span<const int64_t> rows) const override {
    reads.emplace_back(rows.begin(), rows.end());
    return data_.get(rows);
  }
  std::vector<Shape> input_shapes() const override { return data_.input_shapes(); }

  mutable std::vector<std::vector<int64_t>> reads;

 private:
  TensorDataset data_;
};

using Reads = std::vector<std::vector<int64_t>>;

/// Returns the rows that each rank reads of each batch, in order or shuffled.
std::vector<Reads> reads_by_rank(int ranks, const MeshDims& dims, const std::string& layouts,
                                 const FitOptions& options, int64_t rows) {
  std::vector<Reads> all(static_cast<size_t>(ranks));
  test::run_ranks(ranks, [&](int rank, const std::shared_ptr<Communicator>& communicator) {
    const Mesh mesh = test::rank_mesh(dims, communicator);
    const Sequential model = test::small_model();
    model.compile(test::small_compile(test::small_layouts(layouts, mesh)));
    const auto data = std::make_shared<Counting>(rows);
    model.fit(DatasetHandle(data), options);
    all[static_cast<size_t>(rank)] = data->reads;
  });
  return all;
}

}  // namespace

TEST_CASE("two processes of four devices train like one of eight") {
  for (const BlockPolicy policy : test::policies) {
    for (const test::SmallScheme& scheme : test::small_schemes()) {
      const bool dimension_is_local = scheme.mesh[0].second == 2;
      if (policy != BlockPolicy::per_worker && !dimension_is_local) continue;
      CAPTURE(test::to_string(policy));
      const BlockPolicyScope blocks(policy);
      check_ranks(2, scheme, [&](const Mesh& mesh) { return train(scheme, mesh); });
    }
  }
}

TEST_CASE("four processes, and eight, train like one") {
  for (const test::SmallScheme& scheme : test::small_schemes()) {
    for (const int ranks : {4, 8}) {
      check_ranks(ranks, scheme, [&](const Mesh& mesh) { return train(scheme, mesh); });
    }
  }
}

TEST_CASE("processes that hold boxes of different sizes train like one") {
  const std::vector<test::SmallScheme> schemes = {{"data", {{"batch", 8}}},
                                                  {"fsdp", {{"batch", 8}}},
                                                  {"model", {{"batch", 4}, {"model", 2}}},
                                                  {"model", {{"batch", 2}, {"model", 4}}}};
  for (const test::SmallScheme& scheme : schemes) {
    check_ranks(3, scheme, [&](const Mesh& mesh) { return train(scheme, mesh); });
  }
}

TEST_CASE("world_size_invariant: 1, 2, 3, 4 and 8 processes train to the same bits") {
  struct Case {
    test::SmallScheme scheme;
    bool clips = false;
    int64_t accumulates = 1;
    bool invariant = true;
  };
  const test::SmallScheme data = {"data", {{"batch", 8}}}, fsdp = {"fsdp", {{"batch", 8}}};
  const test::SmallScheme rows = {"model", {{"batch", 4}, {"model", 2}}};
  const auto outcome = [](const Case& c, const Mesh& mesh) {
    const Sequential model = test::small_model();
    CompileOptions options = test::small_compile(test::small_layouts(c.scheme.layouts, mesh));
    AdamOptions adam;
    if (c.clips) adam.global_clipnorm = 0.5;
    if (c.accumulates > 1) adam.gradient_accumulation_steps = c.accumulates;
    options.optimizer = Adam(1e-2, adam);
    options.world_size_invariant = c.invariant;
    model.compile(options);
    Outcome result;
    result.history = model.fit(
        test::small_data(27),
        {.batch_size = 8, .epochs = 2, .verbose = 0, .validation_data = test::small_data(11, 2)});
    result.weights = test::full_weights(model);
    for (const Variable& slot : model->optimizer()->variables()) {
      result.weights.push_back(slot.value().full().clone());
    }
    return result;
  };
  const auto same_bits = [](const Outcome& a, const Outcome& b) {
    return a.history.steps == b.history.steps && a.history.history == b.history.history &&
           std::equal(a.weights.begin(), a.weights.end(), b.weights.begin(), b.weights.end(),
                      [](const at::Tensor& x, const at::Tensor& y) { return at::equal(x, y); });
  };
  const auto differing = [&](const Case& c) {
    std::vector<int> counts;
    const Outcome one = outcome(c, create_mesh(c.scheme.mesh));
    for (const int ranks : {2, 3, 4, 8}) {
      std::atomic<int> same = 0;
      test::run_ranks(ranks, [&](int, const std::shared_ptr<Communicator>& communicator) {
        if (same_bits(outcome(c, test::rank_mesh(c.scheme.mesh, communicator)), one)) ++same;
      });
      if (same != ranks) counts.push_back(ranks);
    }
    return counts;
  };
  const std::vector<Case> cases = {
      {data}, {fsdp, true}, {rows, true}, {data, false, 2}, {fsdp, true, 2}};
  for (const Case& c : cases) {
    CAPTURE(c.scheme.layouts, c.clips, c.accumulates);
    CHECK(differing(c) == std::vector<int>());
  }
  // These results can tell: another order of the sums changes them.
  CHECK_FALSE(differing({data, false, 1, false}).empty());
}

TEST_CASE("world_size_invariant: a sum of any other order than the tree's changes bits") {
  const MeshDims dims = {{"batch", 8}};
  // The large addend is 0.1 * 2^28, beside which 1 is lost and 2 is not.
  const auto sum_of_rows = [](const Mesh& mesh) {
    const WorldSizeInvariantScope on;
    at::Tensor rows = at::ones({8, 1}, at::kFloat);
    rows[0][0] = 0.1 * (1 << 28);
    return ops::sum(pack(rows, Layout({"batch", unsharded}, mesh)), {0}).full().clone();
  };
  const auto losses = [](const Mesh& mesh, const std::string& layouts) {
    const Sequential model = test::small_model();
    CompileOptions options = test::small_compile(test::small_layouts(layouts, mesh));
    options.world_size_invariant = true;
    model.compile(options);
    return model.fit(test::small_data(27), {.batch_size = 8, .epochs = 2, .verbose = 0}).steps;
  };
  const auto results = [&](const Mesh& mesh) {
    return std::tuple(sum_of_rows(mesh).item<float>(), losses(mesh, "data"), losses(mesh, "fsdp"));
  };
  const auto one = results(create_mesh(dims));
  using test::PlantedSums;
  const auto on_ranks = [&](int ranks, std::optional<PlantedSums> planted) {
    auto all = one;
    test::run_ranks(ranks, [&](int rank, const std::shared_ptr<Communicator>& communicator) {
      const Mesh mesh = test::rank_mesh(
          dims, planted ? test::planted_sums(communicator, *planted) : communicator);
      const auto here = results(mesh);
      if (rank == 0) all = here;
    });
    return all;
  };
  CHECK(on_ranks(3, {}) == one);
  // Four devices of a rank are a subtree; two and three of three ranks are none.
  CHECK(on_ranks(2, PlantedSums::by_chunk) == one);
  for (const auto& [ranks, planted] : {std::pair(3, PlantedSums::by_chunk),
                                       {3, PlantedSums::by_rank},
                                       {8, PlantedSums::by_rank}}) {
    CAPTURE(ranks, static_cast<int>(planted));
    const auto other = on_ranks(ranks, planted);
    CHECK(std::get<0>(other) != std::get<0>(one));
    CHECK(std::get<1>(other) != std::get<1>(one));
    CHECK(std::get<2>(other) != std::get<2>(one));
  }
}

TEST_CASE("processes weight the rows that they read as one process does") {
  for (const bool by_class : {false, true}) {
    const test::SmallScheme data = {"data", {{"batch", 8}}};
    const test::SmallScheme model = {"model", {{"batch", 4}, {"model", 2}}};
    CAPTURE(by_class);
    check_ranks(4, data, [&](const Mesh& mesh) { return train_weighted(data, mesh, by_class); });
    check_ranks(4, model, [&](const Mesh& mesh) { return train_weighted(model, mesh, by_class); });
  }
}

TEST_CASE("a process reads only the rows of its devices") {
  const FitOptions in_order{.batch_size = 8, .verbose = 0, .shuffle = false};
  auto reads = reads_by_rank(2, {{"batch", 8}}, "data", in_order, 19);
  // The last batch has 3 rows for 8 devices.
  CHECK(reads[0] == Reads{{0, 1, 2, 3}, {8, 9, 10, 11}, {16}});
  CHECK(reads[1] == Reads{{4, 5, 6, 7}, {12, 13, 14, 15}, {17, 18}});
  reads = reads_by_rank(4, {{"batch", 2}, {"model", 2}}, "model", in_order, 8);
  CHECK(reads[0] == Reads{{0, 1, 2, 3}});
  CHECK(reads[1] == reads[0]);
  CHECK(reads[2] == Reads{{4, 5, 6, 7}});
  CHECK(reads[3] == reads[2]);
  reads = reads_by_rank(2, {{"model", 2}}, "model", in_order, 3);
  CHECK(reads[0] == Reads{{0, 1, 2}});
  CHECK(reads[1] == reads[0]);
}

TEST_CASE("a process without rows of a short batch reads one for its shape") {
  const FitOptions in_order{.batch_size = 8, .verbose = 0, .shuffle = false};
  const auto reads = reads_by_rank(8, {{"batch", 8}}, "data", in_order, 3);
  for (const Reads& own : reads) {
    REQUIRE(own.size() == 1);
    CHECK(own[0].size() == 1);
  }
  CHECK(reads[2] == Reads{{0}});
  CHECK(reads[5] == Reads{{1}});
  CHECK(reads[7] == Reads{{2}});
}

TEST_CASE("processes shuffle in one global order, differently in each epoch") {
  const auto reads =
      reads_by_rank(2, {{"batch", 4}}, "data", {.batch_size = 8, .epochs = 2, .verbose = 0}, 16);
  for (size_t step = 0; step < 4; ++step) {
    const Permutation order(16, fold_in(Seed{global_seed(), 0}, step / 2));
    std::vector<int64_t> both = reads[0][step];
    both.insert(both.end(), reads[1][step].begin(), reads[1][step].end());
    std::vector<int64_t> expected;
    for (int64_t i = 0; i < 8; ++i) expected.push_back(order(int64_t(step % 2) * 8 + i));
    CHECK(both == expected);
  }
}

TEST_CASE("batches of several inputs are sharded from the rows of a process as from all") {
  const MeshDims dims = {{"batch", 4}, {"feature", 2}};
  Examples all{.x = {at::arange(44).reshape({11, 4}), at::arange(22).reshape({11, 2})},
               .y = {at::arange(11), at::arange(11).to(at::kDouble)},
               .sample_weight = {at::rand({11})}};
  const TensorDataset data(all);
  const auto check = [&](const Mesh& mesh) {
    for (const bool by_feature : {false, true}) {
      LayoutMap layouts(mesh);
      if (by_feature) layouts.set_data("x", {"batch", "feature"});
      if (by_feature) layouts.set_data("y", {unsharded});
      BatchLoader loader(data, {.batch_size = 8, .layouts = layouts});
      for (int64_t first = 0; std::optional<Examples> examples = loader.next(); first += 8) {
        const Batch batch = pack_batch(std::move(*examples), layouts);
        const int64_t rows = std::min<int64_t>(8, 11 - first);
        test::expect(batch.rows == rows, "rows");
        const auto wrong = [&](const DTensor& value, const at::Tensor& full) {
          return test::wrong_shards(value, full.narrow(0, first, rows));
        };
        const std::string text = wrong(batch.x[0], all.x[0]) + wrong(batch.x[1], all.x[1]) +
                                 wrong(batch.y[0], all.y[0]) + wrong(batch.y[1], all.y[1]) +
                                 wrong(batch.sample_weight[0], all.sample_weight[0]);
        test::expect(text.empty(), text);
      }
    }
  };
  for (const int ranks : {2, 4, 8}) {
    CAPTURE(ranks);
    CHECK_NOTHROW(test::run_ranks(
        ranks, [&](int, const auto& communicator) { check(test::rank_mesh(dims, communicator)); }));
  }
}

TEST_CASE("texts are converted to the shards of a process only") {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < 21; ++i) texts.push_back(str("w", i % 5, " w", i % 3, " w", i % 7));
  const TextVectorization layer({.output_mode = "multi_hot"});
  layer.adapt(texts);
  const auto data = layer.dataset({texts, at::arange(21)});
  const at::Tensor all = layer(texts);
  CHECK_NOTHROW(test::run_ranks(4, [&](int, const auto& communicator) {
    const LayoutMap layouts(test::rank_mesh({{"batch", 4}}, communicator));
    BatchLoader loader(DatasetHandle(data), {.batch_size = 8, .layouts = layouts});
    for (int64_t first = 0; std::optional<Examples> examples = loader.next(); first += 8) {
      const Batch batch = pack_batch(std::move(*examples), layouts);
      const auto own = [&](const at::Tensor& full) { return full.narrow(0, first, batch.rows); };
      const std::string wrong = test::wrong_shards(batch.x[0], own(all)) +
                                test::wrong_shards(batch.y[0], own(at::arange(21)));
      test::expect(wrong.empty(), wrong);
    }
  }));
}

}  // namespace several_processes_test
