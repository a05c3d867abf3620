#include <tessera/tessera.hpp>

#include <functional>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/standard_output.hpp"

namespace fit_data_test {

using namespace tessera;
using Catch::Matchers::Contains;

namespace {

Sequential compiled() {
  const Sequential model = test::small_model();
  model.compile(test::small_compile(LayoutMap(create_mesh({{"batch", 4}}))));
  return model;
}

std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    const std::string text = error.what();
    CHECK(text.find('\n') == std::string::npos);
    return text;
  }
  return "no error";
}

std::string fit_error(const DatasetHandle& data, const FitOptions& options) {
  return error_of([&] { compiled().fit(data, options); });
}

/// Returns the rows of small_data in batches, `count` of them an epoch; endless if 0.
GeneratorDataset stream(int64_t count, const GeneratorDatasetOptions& options = {}) {
  return GeneratorDataset(
      [count] {
        return [count, step = int64_t{0}]() mutable -> std::optional<Examples> {
          if (count > 0 && step == count) return std::nullopt;
          const TensorDataset data = test::small_data(20);
          const int64_t first = step++ % 5 * 4;
          return data.get(std::vector<int64_t>{first, first + 1, first + 2, first + 3});
        };
      },
      options);
}

const FitOptions quiet{.batch_size = 4, .verbose = 0};

}  // namespace

TEST_CASE("fit names the invalid data option") {
  const TensorDataset data = test::small_data(8);
  FitOptions options = quiet;
  options.validation_split = 0.5;
  CHECK_THAT(fit_error(stream(2), options),
             Contains("[fit, validation_split]") && Contains("Received: a stream of batches."));
  CHECK_THAT(fit_error(data.take(1), options),
             Contains("[fit] validation_split leaves rows on both sides. Received: 0.5 of 1 rows"));
  options.validation_split = 1;
  CHECK_THAT(fit_error(data, options), Contains("validation_split lies in [0, 1). Received: 1."));
  options = quiet;
  options.validation_freq = 0;
  CHECK_THAT(fit_error(data, options),
             Contains("[fit] validation_freq is at least 1. Received: 0."));
  options = quiet;
  options.sample_weight = at::ones({7});
  CHECK_THAT(fit_error(data, options), Contains("[fit, sample_weight]") &&
                                           Contains("each of the 8 rows. Received: shape (7,)"));
  CHECK_THAT(fit_error(stream(2), options), Contains("[fit, sample_weight]"));
  options.sample_weight = at::ones({8});
  CHECK_THAT(fit_error(test::small_data(8, 1, true), options),
             Contains("[sample_weight] data have one kind of weights"));
  options.class_weight = {{0, 2.0}};
  CHECK_THAT(fit_error(data, options), Contains("[class_weight] data have one kind of weights"));
}

TEST_CASE("an endless stream needs the number of steps") {
  const GeneratorDataset endless = stream(0, {.endless = true});
  CHECK_THAT(fit_error(endless, quiet),
             Contains("[fit] steps_per_epoch is required for an endless stream") &&
                 Contains("Received: none."));
  FitOptions options = quiet;
  options.steps_per_epoch = 3;
  CHECK(compiled().fit(endless, options).steps.size() == 3);
  options.validation_data = endless;
  CHECK_THAT(fit_error(endless, options),
             Contains("[fit] validation_steps is required for an endless stream"));
  CHECK_THAT(error_of([&] { compiled().evaluate(endless, {.verbose = 0}); }),
             Contains("[evaluate] steps is required for an endless stream"));
  CHECK_THAT(error_of([&] { compiled().predict(endless, {}); }),
             Contains("[predict] steps is required for an endless stream"));
  CHECK(compiled().predict(endless, {.steps = 3}).size(0) == 12);
}

TEST_CASE("a stream trains like its rows") {
  const Sequential rows = compiled(), streamed = compiled();
  FitOptions options = quiet;
  options.epochs = 2;
  options.shuffle = false;
  const History expected = rows.fit(test::small_data(20), options);
  const History history = streamed.fit(stream(5), options);
  CHECK(history.steps == expected.steps);
  CHECK(history.at("accuracy") == expected.at("accuracy"));
  CHECK(history.data == "generator");
  const Logs logs = streamed.evaluate(stream(5), {.verbose = 0});
  CHECK(logs == rows.evaluate(test::small_data(20), {.batch_size = 4, .verbose = 0}));
}

TEST_CASE("class weights apply in a stream as in rows") {
  FitOptions options = quiet;
  options.shuffle = false;
  options.class_weight = {{1, 3.0}, {4, 0.5}};
  CHECK(compiled().fit(stream(5), options).steps ==
        compiled().fit(test::small_data(20), options).steps);
  CHECK(compiled().fit(stream(5), options).steps != compiled().fit(stream(5), quiet).steps);
}

TEST_CASE("class weights of rows with several labels, or none, are refused") {
  FitOptions options = quiet;
  options.class_weight = {{1, 3.0}};
  const at::Tensor x = at::rand({20, 18}, at::kDouble);
  at::Tensor one_hot = at::one_hot(at::arange(20).remainder(5)).to(at::kDouble);
  at::Tensor two = one_hot.clone(), none = one_hot.clone(), ids = one_hot.clone();
  two[13].fill_(0);
  two[13][0] = two[13][3] = 1;
  none[13].fill_(0);
  ids[13][3] = 4;
  for (const int64_t devices : {1, 2, 4}) {
    const auto error = [&](const DatasetHandle& data) {
      return error_of([&] {
        const Sequential model = test::small_model();
        CompileOptions compile = test::small_compile(LayoutMap(create_mesh({{"batch", devices}})));
        compile.loss = CategoricalCrossentropy({.from_logits = true});
        model.compile(compile);
        model.fit(data, options);
      });
    };
    const std::string text = "[class_weight] each label has one class, as a class id or one-hot. ";
    for (const at::Tensor& y : {two, none, ids}) {
      CHECK_THAT(error({x, y}), Contains(text + "Received: row 13 without one largest label"));
      CHECK_THAT(error(DataPipeline(x, y).batch(4)),
                 Contains(text + "Received: row 1 of a batch without one largest label"));
    }
    CHECK(error({x, one_hot}) == "no error");
  }
}

TEST_CASE("class weights of sequences weigh each step by its own label") {
  // Rows such as 0 1 0 could be one-hot, too: the loss says that they are class ids.
  const at::Tensor ids = (at::arange(36) * 5 + 1).remainder(7).remainder(3).reshape({12, 3});
  const at::Tensor x = (at::arange(72) * 37).remainder(11).to(at::kDouble).reshape({12, 3, 2}) / 8;
  at::Tensor weight = at::ones({12, 3});
  for (int64_t row = 0; row < 12; ++row) {
    for (int64_t step = 0; step < 3; ++step) {
      const auto id = ids[row][step].item<int64_t>();
      if (id != 0) weight[row][step] = id == 1 ? 3.0 : 0.25;
    }
  }
  const auto fit = [&](const Mesh& mesh, const DatasetHandle& data, bool sparse, bool weighted) {
    const Sequential model(
        {Input({3, 2}, {.dtype = "float64"}),
         Dense(3, {.kernel_initializer = GlorotUniform({.seed = 1}), .dtype = "float64"})});
    CompileOptions compile{.optimizer = SGD(0.5), .layouts = LayoutMap(mesh)};
    compile.loss = CategoricalCrossentropy({.from_logits = true});
    if (sparse) compile.loss = SparseCategoricalCrossentropy({.from_logits = true});
    model.compile(compile);
    FitOptions options = quiet;
    options.epochs = 2;
    options.shuffle = false;
    if (weighted) options.class_weight = {{1, 3.0}, {2, 0.25}};
    return model.fit(data, options).steps;
  };
  const at::Tensor one_hot = at::one_hot(ids, 3).to(at::kDouble);
  for (const MeshDims& dims :
       {MeshDims{{"batch", 1}}, MeshDims{{"batch", 4}}, MeshDims{{"batch", 2}, {"model", 2}}}) {
    const Mesh mesh = create_mesh(dims);
    const DatasetHandle explicit_weights =
        TensorDataset(Examples{.x = {x}, .y = {ids}, .sample_weight = {weight}});
    const auto expected = fit(mesh, explicit_weights, true, false);
    CHECK(fit(mesh, {x, ids}, true, true) == expected);
    CHECK(fit(mesh, {x, ids.unsqueeze(-1)}, true, true) == expected);
    CHECK(fit(mesh, DataPipeline(x, ids).batch(4), true, true) == expected);
    CHECK(fit(mesh, {x, ids}, true, false) != expected);
    const DatasetHandle weighted_one_hot =
        TensorDataset(Examples{.x = {x}, .y = {one_hot}, .sample_weight = {weight}});
    CHECK(fit(mesh, {x, one_hot}, false, true) == fit(mesh, weighted_one_hot, false, false));
  }
  at::Tensor two = one_hot.clone();
  two[5][1].fill_(1);
  CHECK_THAT(error_of([&] {
               fit(create_mesh({{"batch", 2}}), {x, two}, false, true);
             }),
             Contains("Received: row 5 without one largest label"));
}

TEST_CASE("the bar learns the length of a stream in the first epoch") {
  const test::StandardOutput output;
  compiled().fit(stream(5), {.epochs = 2, .verbose = 2});
  CHECK_THAT(output.text(), Contains("5/5 - 0s") || Contains("5/5 - 1s"));
  const test::StandardOutput known;
  compiled().fit(stream(0, {.steps = 4, .endless = true}), {.verbose = 2, .steps_per_epoch = 2});
  CHECK_THAT(known.text(), Contains("2/2 - "));
}

TEST_CASE("fit, evaluate and predict take tensors") {
  const TensorDataset data = test::small_data(12);
  std::vector<int64_t> rows(12);
  for (int64_t i = 0; i < 12; ++i) rows[size_t(i)] = i;
  const Examples all = data.get(rows);
  const Sequential one = compiled(), other = compiled();
  CHECK(one.fit(all.x[0], all.y[0], quiet).steps == other.fit(data, quiet).steps);
  CHECK(one.evaluate(all.x[0], all.y[0], {.verbose = 0}) == other.evaluate(data, {.verbose = 0}));
  CHECK(at::equal(one.predict(all.x[0]), other.predict(data)));
  const Logs weighted =
      one.evaluate(all.x[0], all.y[0], {.verbose = 0, .sample_weight = at::zeros({12})});
  CHECK(*find_value(weighted, "loss") == 0);
}

}  // namespace fit_data_test
