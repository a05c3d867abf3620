#include <tessera/tessera.hpp>

#include <cstring>
#include <map>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/seed_scope.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace fit_test {

using namespace tessera;
using namespace tessera::detail;
using test::difference;

namespace {

Mesh mesh_of(const std::string& dims) { return create_mesh(parse_mesh_dims(dims)); }

at::Tensor list(const std::vector<double>& values) { return at::tensor(values, at::kDouble); }

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
         std::memcmp(a.contiguous().const_data_ptr(), b.contiguous().const_data_ptr(),
                     a.nbytes()) == 0;
}

/// The loss and accuracy of rows, computed by plain ATen.
struct ByHand {
  double loss = 0;
  double accuracy = 0;
};

ByHand by_hand(const std::vector<at::Tensor>& weights, const TensorDataset& data) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < data.size(); ++i) rows.push_back(i);
  const Examples all = data.get(rows);
  at::Tensor y = all.x[0];
  for (size_t w = 0; w < weights.size(); w += 2) {
    y = y.mm(weights[w]) + weights[w + 1];
    if (w + 2 < weights.size()) y = y.relu();
  }
  const at::Tensor each = at::nll_loss(y.log_softmax(1), all.y[0], {}, at::Reduction::None);
  const at::Tensor right = y.argmax(1).eq(all.y[0]).to(at::kDouble);
  // As in Keras, metrics are unweighted.
  const double accuracy = right.mean().item<double>();
  if (all.sample_weight.empty()) return {each.mean().item<double>(), accuracy};
  return {(each * all.sample_weight[0]).mean().item<double>(), accuracy};
}

std::map<std::string, double> named(const Logs& logs) { return {logs.begin(), logs.end()}; }

}  // namespace

TEST_CASE("fit: short last batches are exact on every mesh") {
  struct Run {
    History history;
    std::vector<at::Tensor> weights;
  };
  const auto train = [](const LayoutMap& layouts, bool weighted) {
    const Sequential model = test::small_model();
    model.compile(test::small_compile(layouts));
    Run run;
    run.history = model.fit(test::small_data(13, 1, weighted),
                            {.batch_size = 5, .epochs = 2, .verbose = 0, .shuffle = false});
    run.weights = test::full_weights(model);
    return run;
  };
  const std::vector<std::pair<std::string, std::string>> schemes = {
      {"data", "batch=8"},  {"data", "batch=3"}, {"model", "batch=4,model=2"},
      {"model", "model=8"}, {"fsdp", "batch=8"}, {"feature", "batch=2,feature=2,model=2"}};
  for (const bool weighted : {false, true}) {
    const Run one = train(test::small_layouts("data", mesh_of("batch=1")), weighted);
    CHECK(one.history.steps.size() == 6);
    for (const auto& [layouts, mesh] : schemes) {
      CAPTURE(weighted, layouts, mesh);
      const Run run = train(test::small_layouts(layouts, mesh_of(mesh)), weighted);
      CHECK(difference(list(run.history.steps), list(one.history.steps), 1e-10) == "");
      for (const std::string name : {"loss", "accuracy"}) {
        CHECK(difference(list(run.history.at(name)), list(one.history.at(name)), 1e-10) == "");
      }
      for (size_t w = 0; w < one.weights.size(); ++w) {
        CHECK(difference(run.weights[w], one.weights[w], 1e-8, 1e-10) == "");
      }
    }
  }
}

TEST_CASE("fit: an epoch's values weight each batch by its rows") {
  const Sequential model = test::small_model();
  // At a learning rate of 0 every batch sees the same weights.
  CompileOptions compile = test::small_compile(test::small_layouts("data", mesh_of("batch=4")));
  compile.optimizer = SGD(0.0);
  model.compile(compile);
  const TensorDataset data = test::small_data(13);
  const History history = model.fit(data, {.batch_size = 5, .verbose = 0, .shuffle = false});
  const ByHand expected = by_hand(test::full_weights(model), data);
  CHECK(history.at("loss")[0] == Approx(expected.loss).epsilon(1e-12));
  CHECK(history.at("accuracy")[0] == Approx(expected.accuracy).epsilon(1e-12));
  CHECK(history.steps.size() == 3);
  CHECK(history.steps[2] ==
        Approx(by_hand(test::full_weights(model),
                       TensorDataset(data.get(std::vector<int64_t>{10, 11, 12})))
                   .loss)
            .epsilon(1e-12));
}

TEST_CASE("evaluate and predict: every row counts once, in order") {
  const Sequential model = test::small_model();
  model.compile(test::small_compile(test::small_layouts("model", mesh_of("batch=4,model=2"))));
  for (const bool weighted : {false, true}) {
    CAPTURE(weighted);
    const TensorDataset data = test::small_data(13, 1, weighted);
    const auto full = named(model.evaluate(data, {.batch_size = 13, .verbose = 0}));
    const ByHand expected = by_hand(test::full_weights(model), data);
    CHECK(full.at("loss") == Approx(expected.loss).epsilon(1e-12));
    CHECK(full.at("accuracy") == Approx(expected.accuracy).epsilon(1e-12));
    for (const int64_t batch : {1, 5, 40}) {
      const auto batched = named(model.evaluate(data, {.batch_size = batch, .verbose = 0}));
      CHECK(batched.at("loss") == Approx(expected.loss).epsilon(1e-12));
      CHECK(batched.at("accuracy") == Approx(expected.accuracy).epsilon(1e-12));
    }
  }
  const at::Tensor full = model.predict(test::small_data(13), {.batch_size = 13});
  CHECK(full.sizes() == at::IntArrayRef({13, 5}));
  for (const int64_t batch : {1, 5, 40}) {
    CHECK(difference(model.predict(test::small_data(13), {.batch_size = batch}), full, 1e-12,
                     1e-14) == "");
  }
  const auto two = model.predict(test::small_data(13), {.batch_size = 5, .steps = 2});
  CHECK(difference(two, full.narrow(0, 0, 10), 1e-12, 1e-14) == "");
  const TensorDataset unlabelled(test::small_data(4).get(std::vector<int64_t>{0, 1, 2, 3}).x[0]);
  CHECK(difference(model.predict(unlabelled, {}), full.narrow(0, 0, 4), 1e-12, 1e-14) == "");
}

TEST_CASE("fit: epochs, steps and validation are in the history") {
  const Sequential model = test::small_model();
  model.compile(test::small_compile(test::small_layouts("data", mesh_of("batch=2"))));
  const History history = model.fit(test::small_data(20), {.batch_size = 4,
                                                           .epochs = 5,
                                                           .verbose = 0,
                                                           .validation_data = test::small_data(7),
                                                           .initial_epoch = 2,
                                                           .steps_per_epoch = 3,
                                                           .validation_steps = 1});
  CHECK(history.epoch == std::vector<int64_t>{2, 3, 4});
  // Two passes over five batches, of which the first ends in the second epoch.
  CHECK(history.steps.size() == 8);
  std::vector<std::string> names;
  for (const auto& [name, course] : history.history) {
    names.push_back(name);
    CHECK(course.size() == 3);
  }
  CHECK(names == std::vector<std::string>{"accuracy", "loss", "val_accuracy", "val_loss"});
  const auto first =
      model.evaluate(test::small_data(7), {.batch_size = 4, .verbose = 0, .steps = 1});
  CHECK(named(first).at("loss") == Approx(history.at("val_loss").back()).epsilon(1e-12));
}

TEST_CASE("fit: the same seed gives the same bits, on every mesh the same first loss") {
  std::vector<double> first;
  for (const std::string mesh : {"batch=1", "batch=2", "batch=4", "batch=8"}) {
    CAPTURE(mesh);
    const auto train = [&] {
      const test::SeedScope seed(5);
      const Sequential model({Dense(14, {.activation = "relu"}), Dropout(0.3), Dense(5)});
      model.compile(test::small_compile(LayoutMap(mesh_of(mesh))));
      const History history =
          model.fit(test::small_data(50), {.batch_size = 16, .epochs = 3, .verbose = 0});
      first.push_back(history.steps[0]);
      return std::make_pair(test::full_weights(model), history.steps);
    };
    const auto one = train(), two = train();
    CHECK(one.second == two.second);
    for (size_t w = 0; w < one.first.size(); ++w) CHECK(same_bits(one.first[w], two.first[w]));
  }
  for (double loss : first) CHECK(loss == Approx(first[0]).epsilon(1e-5));
}

TEST_CASE("fit: replicas stay bitwise equal") {
  const BlockPolicyScope literal(BlockPolicy::per_device);
  for (const std::string mesh : {"batch=8", "batch=4,model=2"}) {
    const Sequential model = test::small_model();
    const std::string layouts = mesh == "batch=8" ? "data" : "model";
    model.compile(test::small_compile(test::small_layouts(layouts, mesh_of(mesh))));
    model.fit(test::small_data(40), {.batch_size = 8, .epochs = 2, .verbose = 0});
    for (const Variable& weight : model.weights()) {
      CAPTURE(mesh, weight.path());
      CHECK(weight.value().blocks().size() == 8);
      std::string wrong;
      test::assemble(weight.value(), wrong);
      CHECK(wrong == "");
    }
  }
}

TEST_CASE("recompiling with other layouts moves the weights and continues as before") {
  const TensorDataset data = test::small_data(32);
  const FitOptions epoch{.batch_size = 8, .epochs = 1, .verbose = 0, .shuffle = false};
  const std::vector<std::pair<std::string, std::string>> schemes = {
      {"data", "batch=8"}, {"model", "batch=4,model=2"}, {"fsdp", "batch=8"}, {"model", "model=8"}};
  const auto train = [&](bool move) {
    const Sequential model = test::small_model();
    CompileOptions compile;
    std::vector<double> losses;
    for (const auto& [layouts, mesh] : schemes) {
      const LayoutMap map = move ? test::small_layouts(layouts, mesh_of(mesh))
                                 : test::small_layouts("data", mesh_of("batch=1"));
      const OptimizerHandle previous = compile.optimizer;
      compile = test::small_compile(map);
      // The optimizer is kept, with its slots.
      if (previous) compile.optimizer = previous;
      model.compile(compile);
      const History history = model.fit(data, epoch);
      losses.insert(losses.end(), history.steps.begin(), history.steps.end());
      if (move && layouts == "fsdp") {
        const Variable kernel = model.weights()[0];
        CHECK(kernel.layout().describe() == "(batch, unsharded)");
        CHECK(kernel.value().layout() == kernel.layout());
      }
    }
    return losses;
  };
  const std::vector<double> expected = train(false);
  CHECK(expected.size() == 16);
  CHECK(difference(list(train(true)), list(expected), 1e-9) == "");
}

}  // namespace fit_test
