#include <ATen/ATen.h>

#include <map>
#include <set>

#include <tessera/tessera.hpp>

#include <tessera/framework/comm/comm_log.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/files.hpp"
#include "tests/support/seed_scope.hpp"

namespace experts_on_meshes_test {

using namespace tessera;
using namespace tessera::detail;
using test::difference;
using test::DTypeScope;
using test::SeedScope;
using test::TempFolder;

namespace {

constexpr int64_t words = 11, tokens = 6, features = 8, experts = 4, rows = 8;

Functional model_of(const char* dispatch) {
  const SymbolicTensor x = Input({tokens}, {.dtype = "int64", .name = "text"});
  SymbolicTensor y = Embedding(words, features, {.mask_zero = true, .name = "words"})(x);
  y = MixtureOfExperts({.num_experts = experts,
                        .hidden_dim = 10,
                        .capacity_factor = 1,
                        .z_loss = 0.01,
                        .activation = "gelu",
                        .second_expert_policy = "random",
                        .second_expert_threshold = 0.4,
                        .dispatch = dispatch,
                        .name = "moe"})(y);
  return Functional({x}, {Dense(words, {.name = "logits"})(y)}, {.name = "model"});
}

/// Rows of token ids, some of which end early, padded with zeros.
Examples batch(int64_t number) {
  const at::Tensor row = at::arange(rows, at::kLong).unsqueeze(1) + rows * number;
  const at::Tensor step = at::arange(tokens, at::kLong);
  at::Tensor x = 1 + at::remainder(row * 7 + step * step * 3 + row * step, words - 1);
  x.masked_fill_(step.ge(3 + at::remainder(row, 5)), 0);
  return {.x = {x}, .y = {at::remainder(x * 3 + step, words)}};
}

LayoutMap layouts_of(const Json& json) {
  const LayoutFile file = layout_file_from_json(json, "layouts");
  return make_layout_map(file, create_mesh(*file.mesh));
}

Json on(Json mesh, Json rows_over, Json rules) {
  return {{"mesh", mesh},
          {"data", {{"x", {rows_over, nullptr}}, {"y", {rows_over, nullptr}}}},
          {"layouts", rules}};
}

Json rule(const char* match, const Json& layout) { return {{"match", match}, {"layout", layout}}; }

/// Layouts with experts over "expert" and tokens over both dimensions.
Json in_parallel(int64_t batch_size, int64_t expert_size) {
  return on({{"batch", batch_size}, {"expert", expert_size}}, {"batch", "expert"},
            {rule("moe/expert_./kernel", {"expert", nullptr, nullptr}),
             rule("moe/expert_./bias", {"expert", nullptr}),
             rule("moe/dispatched", {"expert", "batch", nullptr, nullptr}),
             rule("moe/combined", {nullptr, {"batch", "expert"}, nullptr, nullptr})});
}

/// Layouts whose experts are stored sharded along their features and gathered for use.
Json gathered(int64_t size) {
  Json cut = rule("moe/expert_./kernel", {nullptr, "batch", nullptr});
  cut["use"] = {nullptr, nullptr, nullptr};
  return on({{"batch", size}}, "batch", Json::array({cut}));
}

const std::map<std::string, Json>& schemes() {
  static const std::map<std::string, Json> all = {
      {"batch=4", on({{"batch", 4}}, "batch", Json::array())},
      {"batch=3", on({{"batch", 3}}, "batch", Json::array())},
      {"expert=4", in_parallel(1, 4)},
      {"expert=3", in_parallel(1, 3)},
      {"batch=2,expert=2", in_parallel(2, 2)},
      {"gathered", gathered(4)},
      {"experts without rules for values",
       on({{"expert", 4}}, "expert",
          Json::array({rule("moe/expert_./kernel", {"expert", nullptr, nullptr})}))},
      {"expert=2,model=2", on({{"expert", 2}, {"model", 2}}, "expert",
                              {rule("moe/expert_1/kernel", {"expert", nullptr, "model"}),
                               rule("moe/expert_1/bias", {"expert", "model"}),
                               rule("moe/expert_2/kernel", {"expert", "model", nullptr}),
                               rule("moe/expert_2/bias", {"expert", nullptr}),
                               rule("moe/dispatched", {"expert", nullptr, nullptr, nullptr}),
                               rule("moe/combined", {nullptr, "expert", nullptr, nullptr})})},
      {"parts of the sequence",
       on({{"batch", 2}, {"model", 2}}, "batch",
          Json::array({rule("words/output", {"batch", "model", nullptr})}))}};
  return all;
}

CompileOptions training(const LayoutMap& layouts) {
  return {.optimizer = Adam(1e-2),
          .loss = SparseCategoricalCrossentropy({.from_logits = true}),
          .layouts = layouts};
}

/// The logs of each step (losses and fractions), and the totals of the layer's metrics.
struct Run {
  std::vector<Logs> logs;
  std::vector<std::vector<double>> totals;
  std::vector<at::Tensor> weights;
};

Run trained(const Functional& model, int64_t first, int64_t steps) {
  Run run;
  for (int64_t step = first; step < first + steps; ++step) {
    run.logs.push_back(model.train_on_batch(batch(step % 3)));
    std::vector<const Metric*> metrics;
    for (const auto& [name, metric] : model->metrics()) metrics.push_back(metric.get());
    for (const auto& totals : Metric::totals(metrics)) run.totals.push_back(totals);
  }
  for (const Variable& weight : model->weights()) run.weights.push_back(weight.value().full());
  return run;
}

Run trained(const char* dispatch, const LayoutMap& layouts, int64_t steps) {
  const DTypeScope doubles("float64");
  const SeedScope seed(5);
  const Functional model = model_of(dispatch);
  model.compile(training(layouts));
  return trained(model, 0, steps);
}

void check_equal(const Run& run, const Run& expected, double tolerance = 1e-12) {
  CHECK(run.totals == expected.totals);
  REQUIRE(run.logs.size() == expected.logs.size());
  for (size_t i = 0; i < run.logs.size(); ++i) {
    REQUIRE(run.logs[i].size() == 3);
    for (size_t v = 0; v < 3; ++v) {
      CHECK(run.logs[i][v].first == expected.logs[i][v].first);
      CHECK(run.logs[i][v].second == Approx(expected.logs[i][v].second).epsilon(tolerance));
    }
  }
  for (size_t w = 0; w < run.weights.size(); ++w) {
    // Where gradients are nearly 0, Adam still makes steps of full size.
    CHECK(difference(run.weights[w], expected.weights[w], 1e-8, 1e-9) == "");
  }
}

/// Resumes after the first step of an epoch.
struct GoOn : Callback {
  explicit GoOn(Json from) : totals(std::move(from)) {}
  void on_train_begin() override {
    model().set_fit_position({.epoch = 0, .step = 1});
    model().restore_metric_totals(totals);
  }
  Json totals;
};

LayoutMap one_device() { return LayoutMap(create_mesh({{"batch", 1}})); }

}  // namespace

TEST_CASE("experts train on every mesh as on one device, with the same counts") {
  const Run expected = trained("einsum", one_device(), 8);
  CHECK(expected.logs[0][0].first == "loss");
  CHECK(expected.logs[0][1].first == "moe/dropped");
  CHECK(expected.logs[0][2].first == "moe/load_entropy");
  CHECK(expected.logs.back()[0].second < expected.logs.front()[0].second);
  CHECK(expected.logs[0][1].second > 0);
  CHECK(expected.logs[0][1].second < 0.5);
  CHECK(expected.logs[0][2].second > 0.3);
  CHECK(expected.logs[0][2].second < 1);
  for (const char* dispatch : {"einsum", "sort"}) {
    check_equal(trained(dispatch, one_device(), 8), expected);
    for (const auto& [name, layouts] : schemes()) {
      CAPTURE(dispatch, name);
      check_equal(trained(dispatch, layouts_of(layouts), 8), expected);
    }
  }
}

TEST_CASE("an expert layer costs two all-to-alls forward and two backward") {
  for (const char* dispatch : {"einsum", "sort"}) {
    CAPTURE(dispatch);
    const Functional model = model_of(dispatch);
    model.compile(training(layouts_of(in_parallel(2, 2))));
    const StepPlan plan = model.plan(TensorDataset(batch(0)), {.batch_size = rows});
    std::set<std::string> weights;
    for (const Variable& weight : model->weights()) weights.insert(weight.path());
    std::map<std::string, std::string> gradients;
    int64_t moves = 0;
    for (const CommEntry& entry : plan.collectives) {
      if (!entry.place.starts_with("moe")) continue;
      CAPTURE(to_string(entry.op), entry.dims, entry.place, entry.bytes);
      if (weights.contains(entry.place)) {
        CHECK(entry.op == CommOp::all_reduce);
        gradients[entry.place] += entry.dims;
        continue;
      }
      ++moves;
      CHECK(entry.op == CommOp::all_to_all);
      CHECK(entry.dims == "expert");
      // 4 slots for 6 tokens; a device has rows / 4 groups.
      CHECK(entry.bytes == experts * rows / 4 * 4 * features * 4);
      CHECK(entry.received == entry.bytes / 2.0);
    }
    CHECK(moves == 4);
    CHECK(gradients == std::map<std::string, std::string>{{"moe/router/kernel", "batch,expert"},
                                                          {"moe/expert_1/kernel", "batch"},
                                                          {"moe/expert_1/bias", "batch"},
                                                          {"moe/expert_2/kernel", "batch"},
                                                          {"moe/expert_2/bias", "batch"}});
  }
}

TEST_CASE("parallel experts are stored on the devices that own them") {
  const Functional model = model_of("einsum");
  model.compile(training(layouts_of(in_parallel(1, 4))));
  model.train_on_batch(batch(0));
  for (const Variable& weight : model->weights()) {
    if (!weight.path().starts_with("moe/expert")) continue;
    CAPTURE(weight.path());
    CHECK(weight.value().local(1).size(0) == 1);
  }
}

TEST_CASE("a checkpoint of experts restores on other meshes bit for bit") {
  const DTypeScope doubles("float64");
  const TempFolder folder;
  const auto compiled = [](const LayoutMap& layouts) {
    const SeedScope seed(5);
    const Functional model = model_of("einsum");
    model.compile(training(layouts));
    return model;
  };
  const Functional first = compiled(layouts_of(in_parallel(1, 4)));
  const Run before = trained(first, 0, 3);
  Checkpoint(first).save(folder / "three");
  const Run after = trained(first, 3, 3);
  for (const Json& layouts : {in_parallel(1, 1), in_parallel(1, 2), in_parallel(2, 2),
                              in_parallel(1, 4), gathered(4), gathered(3)}) {
    CAPTURE(layouts.at("mesh"));
    const Functional next = compiled(layouts_of(layouts));
    next.predict_on_batch({.x = batch(0).x});
    Checkpoint(next).restore(folder / "three");
    for (size_t w = 0; w < before.weights.size(); ++w) {
      CHECK(at::equal(next->weights()[w].value().full(), before.weights[w]));
    }
    check_equal(trained(next, 3, 3), after);
  }
}

TEST_CASE("fit logs the load and the drops of experts for each epoch") {
  const DTypeScope doubles("float64");
  const SeedScope seed(5);
  const Functional model = model_of("sort");
  model.compile(training(one_device()));
  const TensorDataset data(batch(0));
  const History history = model.fit(
      data,
      {.batch_size = 4, .epochs = 2, .verbose = 0, .validation_data = data, .shuffle = false});
  for (const char* name : {"moe/dropped", "moe/load_entropy", "val_moe/dropped"}) {
    CAPTURE(name);
    CHECK(history.at(name).size() == 2);
  }
  const auto evaluated = [&](int64_t batch_size) {
    return model.evaluate(data, {.batch_size = batch_size, .verbose = 0});
  };
  const Logs all = evaluated(8), parts = evaluated(4);
  REQUIRE(all.size() == 3);
  CHECK(all[0].second == Approx(parts[0].second).epsilon(1e-12));
  CHECK(all[1] == parts[1]);
  CHECK(all[2] == parts[2]);
  CHECK(all[1].second == history.at("val_moe/dropped")[1]);
}

TEST_CASE("a resumed epoch keeps the counts of dropped tokens") {
  const DTypeScope doubles("float64");
  const TensorDataset data(batch(0));
  const auto made = [] {
    const SeedScope seed(5);
    const Functional model = model_of("einsum");
    model.compile(training(one_device()));
    return model;
  };
  const FitOptions options{.batch_size = 4, .verbose = 0, .shuffle = false};
  const History expected = made().fit(data, options);
  const Functional model = made();
  FitOptions first = options;
  first.steps_per_epoch = 1;
  const History half = model.fit(data, first);
  CHECK(half.at("moe/load_entropy") != expected.at("moe/load_entropy"));
  FitOptions rest = options;
  rest.callbacks = {std::make_shared<GoOn>(model->metric_totals())};
  const History both = model.fit(data, rest);
  for (const auto& [name, values] : expected.history) CHECK(both.at(name) == values);
}

}  // namespace experts_on_meshes_test
