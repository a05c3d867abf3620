#include <cmath>
#include <functional>
#include <stdexcept>

#include <ATen/ATen.h>

#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/warnings.hpp"

namespace passes_test {

using namespace tessera;
using namespace tessera::detail;
using Numbers = std::vector<int64_t>;

namespace {

const std::vector<MeshDims> meshes = {{{"batch", 1}}, {{"batch", 2}}, {{"batch", 2}, {"model", 2}}};

/// A model whose loss for a batch of one row is the square of that row's number.
Sequential squares(const MeshDims& mesh) {
  Sequential model({Input({1}), Dense(1, {.use_bias = false, .kernel_initializer = "ones"})});
  model.compile({.optimizer = SGD(0.0), .loss = "mse", .mesh = create_mesh(mesh)});
  return model;
}

/// Rows 0 to `count` - 1.
Examples numbers(int64_t count) {
  return {.x = {at::arange(count, at::kFloat).unsqueeze(1)}, .y = {at::zeros({count, 1})}};
}

DatasetHandle pipeline(int64_t count) { return DataPipeline(numbers(count)).batch(1); }

/// Rows 0 to `count` - 1 of a function that does not tell how many, or without end; counts its
/// starts.
DatasetHandle generator(std::optional<int64_t> count, std::shared_ptr<int64_t> starts = {}) {
  const auto start = [count, starts]() -> BatchFunction {
    if (starts) ++*starts;
    return [count, i = int64_t{0}]() mutable -> std::optional<Examples> {
      if (i == count) return std::nullopt;
      const at::Tensor x = at::full({1, 1}, static_cast<double>(i++), at::kFloat);
      return Examples{.x = {x}, .y = {at::zeros({1, 1})}};
    };
  };
  return GeneratorDataset(start, {.endless = !count});
}

/// The rows of a fit in the order in which it read them.
Numbers rows_of(const History& history) {
  Numbers rows;
  for (const double loss : history.steps) rows.push_back(std::lround(std::sqrt(loss)));
  return rows;
}

FitOptions epochs(int64_t count, std::optional<int64_t> steps = {}, bool shuffle = false) {
  return {
      .batch_size = 1, .epochs = count, .verbose = 0, .shuffle = shuffle, .steps_per_epoch = steps};
}

Numbers fitted(const MeshDims& mesh, const DatasetHandle& data, const FitOptions& options) {
  return rows_of(squares(mesh).fit(data, options));
}

}  // namespace

TEST_CASE("an epoch of steps_per_epoch goes on where the one before ended", "[passes]") {
  for (const MeshDims& mesh : meshes) {
    CAPTURE(mesh.size(), mesh[0].second);
    const test::Warnings heard;
    const Numbers twice_six = {0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5};
    CHECK(fitted(mesh, numbers(6), epochs(6, 2)) == twice_six);
    CHECK(fitted(mesh, pipeline(6), epochs(6, 2)) == twice_six);
    CHECK(fitted(mesh, DataPipeline(numbers(6)).repeat().batch(1), epochs(3, 4)) == twice_six);
    CHECK(fitted(mesh, generator(6), epochs(6, 2)) == twice_six);
    const auto starts = std::make_shared<int64_t>(0);
    CHECK(fitted(mesh, generator({}, starts), epochs(4, 2)) == Numbers{0, 1, 2, 3, 4, 5, 6, 7});
    CHECK(*starts == 1);
    CHECK(heard.text().empty());
  }
}

TEST_CASE("shuffled rows go on in the order of their pass", "[passes]") {
  for (const MeshDims& mesh : meshes) {
    const Numbers passes = fitted(mesh, numbers(12), epochs(2, {}, true));
    CHECK(fitted(mesh, numbers(12), epochs(6, 4, true)) == passes);
    const DatasetHandle shuffled =
        DataPipeline(numbers(12)).shuffle({.seed = Seed{global_seed(), 0}}).batch(1);
    CHECK(fitted(mesh, shuffled, epochs(6, 4)) == passes);
  }
}

TEST_CASE("a validation of validation_steps begins anew each time", "[passes]") {
  const Sequential model = squares(meshes[1]);
  FitOptions options = epochs(3);
  options.validation_data = numbers(6);
  options.validation_steps = 2;
  const History history = model.fit(numbers(2), options);
  CHECK(history.at("val_loss") == std::vector<double>{0.5, 0.5, 0.5});
}

TEST_CASE("data that end before the steps asked for end the epoch with a warning", "[passes]") {
  for (const MeshDims& mesh : meshes) {
    for (const DatasetHandle& data : {DatasetHandle(numbers(5)), pipeline(5), generator(5)}) {
      const test::Warnings heard;
      CHECK(fitted(mesh, data, epochs(5, 2)) == Numbers{0, 1, 2, 3, 4, 0, 1, 2, 3});
      CHECK(heard.text() ==
            "Warning: fit: the data ran out after 1 of 2 steps: lower steps_per_epoch, or "
            "repeat() the data\n");
    }
    const Sequential model = squares(mesh);
    const std::string of_three = ": the data ran out after 3 of 4 steps: lower ";
    {
      const test::Warnings heard;
      model.evaluate(numbers(3), {.batch_size = 1, .verbose = 0, .steps = 4});
      CHECK(heard.text() == "Warning: evaluate" + of_three + "steps, or repeat() the data\n");
    }
    {
      const test::Warnings heard;
      CHECK(model.predict(numbers(3), {.batch_size = 1, .steps = 4}).size(0) == 3);
      CHECK(heard.text() == "Warning: predict" + of_three + "steps, or repeat() the data\n");
    }
    const test::Warnings heard;
    FitOptions options = epochs(1);
    options.validation_data = generator(3);
    options.validation_steps = 4;
    model.fit(numbers(2), options);
    CHECK(heard.text() ==
          "Warning: fit, validation" + of_three + "validation_steps, or repeat() the data\n");
  }
}

TEST_CASE("callbacks are told the steps that were asked for", "[passes]") {
  struct Told : Callback {
    void on_epoch_begin(int64_t) override { steps.push_back(params().steps.value()); }
    void on_predict_begin() override { steps.push_back(params().steps.value()); }
    Numbers steps;
  };
  const auto told = std::make_shared<Told>();
  const Sequential model = squares(meshes[0]);
  FitOptions options = epochs(2, 4);
  options.callbacks = {told};
  model.fit(numbers(3), options);
  model.predict(numbers(3), {.batch_size = 1, .steps = 4, .callbacks = {told}});
  CHECK(told->steps == Numbers{4, 4, 4});
}

TEST_CASE("a fit reads shuffled rows in an order of its own", "[passes]") {
  for (const MeshDims& mesh : meshes) {
    const Numbers at_once = fitted(mesh, numbers(12), epochs(3, {}, true));
    const Sequential model = squares(mesh), streamed = squares(mesh), counted = squares(mesh);
    Numbers rows, of_pipeline, of_count;
    for (int64_t i = 0; i < 3; ++i) {
      const auto add = [](Numbers& all, const History& history) {
        for (const int64_t row : rows_of(history)) all.push_back(row);
      };
      add(rows, model.fit(numbers(12), epochs(1, {}, true)));
      add(of_pipeline,
          streamed.fit(DataPipeline(numbers(12)).shuffle({.seed = Seed{global_seed(), 0}}).batch(1),
                       epochs(1)));
      FitOptions next = epochs(i + 1, {}, true);
      next.initial_epoch = i;
      add(of_count, counted.fit(numbers(12), next));
    }
    CHECK(rows == at_once);
    CHECK(of_pipeline == at_once);
    CHECK(of_count == at_once);
    // A fit that was stopped inside a pass has begun it.
    const Sequential part = squares(mesh);
    part.fit(numbers(12), epochs(1, 5, true));
    const Numbers second = rows_of(part.fit(numbers(12), epochs(1, {}, true)));
    CHECK(second == Numbers(at_once.begin() + 12, at_once.begin() + 24));
  }
}

namespace {

/// Ends the run by an error, in the middle of an epoch.
struct Ending : Callback {
  explicit Ending(int64_t after) : left(after) {}
  void on_train_batch_end(int64_t, const Logs&) override {
    if (--left == 0) throw std::runtime_error("the power is gone");
  }
  int64_t left;
};

}  // namespace

TEST_CASE("a resumed run goes on at the batch of its pass", "[passes]") {
  const std::vector<std::function<DatasetHandle()>> kinds = {
      [] { return DatasetHandle(numbers(10)); }, [] { return pipeline(10); },
      [] {
        return DataPipeline(numbers(10))
            .shuffle({.seed = Seed{global_seed(), 0}})
            .repeat()
            .batch(1);
      },
      [] { return generator(10); }, [] { return generator({}); }};
  for (const MeshDims& mesh : {meshes[0], meshes[2]}) {
    for (const auto& data : kinds) {
      // In a first epoch, at an epoch's end, and in a second pass.
      for (const int64_t steps : {2, 4, 11}) {
        CAPTURE(steps);
        const test::Warnings heard;
        FitOptions options = epochs(6, 4, true);
        const Numbers all = fitted(mesh, data(), options);
        const test::TempFolder folder;
        const CallbackHandle backup = BackupAndRestore(folder / "backup", {.save_freq = 1});
        // The error comes first, so that the step is not saved.
        options.callbacks = {std::make_shared<Ending>(steps + 1), backup};
        CHECK_THROWS_AS(fitted(mesh, data(), options), std::runtime_error);
        options.callbacks = {backup};
        CHECK(fitted(mesh, data(), options) == all);
      }
    }
  }
}

TEST_CASE("a restored model's next fit has the order of an uninterrupted run's", "[passes]") {
  for (const MeshDims& mesh : meshes) {
    const test::TempFolder folder;
    const Sequential first = squares(mesh), other = squares(mesh);
    first.fit(numbers(12), epochs(2, {}, true));
    Checkpoint(first).save(folder / "saved");
    Checkpoint(other).restore(folder / "saved");
    CHECK(rows_of(other.fit(numbers(12), epochs(1, {}, true))) ==
          rows_of(first.fit(numbers(12), epochs(1, {}, true))));
  }
}

}  // namespace passes_test
