// The states of stateful layers in checkpoints, backups and the best weights of EarlyStopping.
#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/nn/internal/layer_states.hpp>

#include "tests/io/resumable.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace stateful_layers_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;
using test::TempFolder;

namespace {

constexpr int64_t rows = 4, batches = 5;

LayoutMap layouts_on(int64_t devices) {
  return LayoutMap(create_mesh({{"batch", devices}}, virtual_cpus(devices)));
}

TensorDataset data() {
  return TensorDataset(Examples{.x = {test::random_values({{rows * batches, 3, 2}}, 1)},
                                .y = {test::random_values({{rows * batches, 1}}, 2)}});
}

/// Returns a compiled model of every stateful kind, or the same one without states.
Sequential made(const LayoutMap& layouts, bool stateful = true) {
  const auto options = [&](auto made) {
    made.stateful = stateful;
    made.return_sequences = true;
    made.dtype = "float64";
    return made;
  };
  LSTMOptions last = options(LSTMOptions{});
  last.return_sequences = false;
  const StackedRNNCells cells(
      {LSTMCell(2, {.dtype = "float64"}), SimpleRNNCell(3, {.dtype = "float64"})},
      {.dtype = "float64"});
  const Sequential model(
      {Bidirectional(GRU(2, options(GRUOptions{})), {.dtype = "float64"}),
       SimpleRNN(3, options(SimpleRNNOptions{})), RNN(cells, options(RNNOptions{})),
       Reshape({3, 3, 1}, {.dtype = "float64"}), ConvLSTM1D(1, 2, options(ConvLSTMOptions{})),
       Reshape({3, 2}, {.dtype = "float64"}), LSTM(2, last), Dense(1, {.dtype = "float64"})});
  model.compile({.optimizer = SGD(0.1), .loss = "mse", .layouts = layouts});
  return model;
}

History train(const Sequential& model, int64_t epochs,
              const std::vector<CallbackHandle>& callbacks = {}) {
  return model.fit(data(), {.batch_size = rows,
                            .epochs = epochs,
                            .verbose = 0,
                            .callbacks = callbacks,
                            .shuffle = false});
}

/// Predicts two batches; later ones depend on the states.
at::Tensor predicted(const Sequential& model) {
  const TensorDataset some(Examples{.x = {test::random_values({{2 * rows, 3, 2}}, 3)}});
  return model.predict(some, {.batch_size = rows}).clone();
}

std::vector<at::Tensor> states_of(const Sequential& model) {
  std::vector<at::Tensor> states;
  for (const auto& [name, state] : layer_states(model.model())) {
    states.push_back(state.value().full().clone());
  }
  return states;
}

void check_same_states(const Sequential& actual, const std::vector<at::Tensor>& expected) {
  const std::vector<at::Tensor> states = states_of(actual);
  REQUIRE(states.size() == expected.size());
  for (size_t i = 0; i < states.size(); ++i) CHECK(difference(states[i], expected[i]) == "");
}

}  // namespace

TEST_CASE("a checkpoint restores the states of stateful layers on any mesh") {
  for (const auto& [from, to] : {std::pair(1, 1), {1, 3}, {2, 1}, {3, 2}}) {
    CAPTURE(from, to);
    const TempFolder folder;
    const Sequential model = made(layouts_on(from));
    train(model, 1);
    Checkpoint saving(model);
    saving.save(folder / "one");
    const std::vector<at::Tensor> states = states_of(model);
    REQUIRE(states.size() == 10);
    const std::vector<double> losses = train(model, 1).steps;
    const at::Tensor predictions = predicted(model);

    const Sequential other = made(layouts_on(to));
    other.build({rows, 3, 2});
    Checkpoint(other).restore(folder / "one");
    check_same_states(other, states);
    CHECK(difference(at::tensor(train(other, 1).steps), at::tensor(losses), 1e-10) == "");
    CHECK(difference(predicted(other), predictions, 1e-10, 1e-12) == "");
    // The first model goes back to the same point, with the steps that it has captured.
    saving.restore(folder / "one");
    check_same_states(model, states);
    CHECK(difference(at::tensor(train(model, 1).steps), at::tensor(losses), 1e-12) == "");
    CHECK(difference(predicted(model), predictions, 1e-12, 1e-14) == "");
  }
}

TEST_CASE("a checkpoint of layers that were never called resets their states") {
  const TempFolder folder;
  const Sequential model = made(layouts_on(2));
  model.build({rows, 3, 2});
  Checkpoint checkpoint(model);
  checkpoint.save(folder / "new");
  const at::Tensor first = predicted(model);
  CHECK(difference(predicted(model), first, 1e-6) != "");
  checkpoint.restore(folder / "new");
  CHECK(difference(predicted(model), first, 1e-12, 1e-14) == "");
}

TEST_CASE("restoring weights only leaves the states, and a model without states refuses them") {
  const TempFolder folder;
  const Sequential model = made(layouts_on(1));
  train(model, 1);
  Checkpoint checkpoint(model);
  checkpoint.save(folder / "one");
  predicted(model);
  const std::vector<at::Tensor> states = states_of(model);
  checkpoint.restore(folder / "one", {.weights_only = true});
  check_same_states(model, states);

  const Sequential other = made(layouts_on(1), false);
  other.build({rows, 3, 2});
  CHECK_THAT(test::error_line([&] { Checkpoint(other).restore(folder / "one"); }),
             Contains("states/") && Contains("rnn_state_0") && Contains("expect_partial"));
  CHECK_NOTHROW(Checkpoint(other).restore(folder / "one", {.expect_partial = true}));
}

TEST_CASE("a run of stateful layers that is resumed within an epoch equals an uninterrupted one") {
  for (const int64_t devices : {1, 3}) {
    CAPTURE(devices);
    const Sequential uninterrupted = made(layouts_on(devices));
    const std::vector<double> losses = train(uninterrupted, 3).steps;
    const TempFolder folder;
    const CallbackHandle backup = BackupAndRestore(folder / "backup", {.save_freq = 2});
    CHECK_THROWS_AS(train(made(layouts_on(devices)), 3, {backup, test::Interruption(8)}),
                    StateError);
    const Sequential resumed = made(layouts_on(devices));
    CHECK(train(resumed, 3, {BackupAndRestore(folder / "backup", {.save_freq = 2})}).steps ==
          losses);
    check_same_states(resumed, states_of(uninterrupted));
  }
}

TEST_CASE("EarlyStopping restores the states of the best epoch with its weights") {
  /// A value by which the first epoch is the best.
  class Score final : public Callback {
    void on_epoch_end(int64_t epoch, Logs& logs) override {
      logs.emplace_back("score", -static_cast<double>(epoch));
    }
  };
  const auto stopping = [] {
    return EarlyStopping(
        {.monitor = "score", .patience = 2, .mode = "max", .restore_best_weights = true});
  };
  const Sequential best = made(layouts_on(2));
  train(best, 1);
  const Sequential stopped = made(layouts_on(2));
  train(stopped, 9, {Score(), stopping()});
  check_same_states(stopped, states_of(best));
  CHECK(difference(predicted(stopped), predicted(best), 1e-12, 1e-14) == "");

  const TempFolder folder;
  const auto backup = [&] { return BackupAndRestore(folder / "backup", {.save_freq = 1}); };
  const Sequential broken = made(layouts_on(2));
  CHECK_THROWS_AS(
      train(broken, 9, {Score(), stopping(), backup(), test::Interruption(batches + 2)}),
      StateError);
  const Sequential resumed = made(layouts_on(2));
  train(resumed, 9, {Score(), stopping(), backup()});
  const Sequential again = made(layouts_on(2));
  train(again, 1);
  check_same_states(resumed, states_of(again));
}

TEST_CASE("Keras' files contain no states") {
  const TempFolder folder;
  const Sequential model = made(layouts_on(1));
  train(model, 1);
  model.save(folder / "model.keras");
  const ModelHandle loaded = load_model(folder / "model.keras");
  CHECK(loaded->weights().size() == model->weights().size());
  CHECK(layer_states(loaded.model()).empty());
  // The saved model goes on from its states.
  const TensorDataset some(Examples{.x = {test::random_values({{rows, 3, 2}}, 3)}});
  const at::Tensor fresh = loaded.predict(some, {.batch_size = rows}).clone();
  CHECK(difference(model.predict(some, {.batch_size = rows}), fresh, 1e-6) != "");
  for (const auto& [path, layer] : layers_with_states(model.model())) layer->set_states({});
  CHECK(difference(model.predict(some, {.batch_size = rows}), fresh, 1e-12, 1e-14) == "");
}

}  // namespace stateful_layers_test
