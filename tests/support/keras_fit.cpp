#include "tests/support/keras_fit.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/nn/initializers/regularizers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/standard_output.hpp"

namespace tessera::test {

using namespace detail;

namespace {

const Json& golden() {
  static const Json all = read_json_file(golden_path("keras_callbacks.json").string());
  return all;
}

at::Tensor numbers(const Json& json) {
  std::vector<double> list;
  for (const Json& number : json) {
    list.push_back(number.is_null() ? std::nan("") : number.get<double>());
  }
  return at::tensor(list, at::kDouble);
}

/// Returns the log without the digits of its values, which differ in the last decimals.
std::string shape_of(const std::string& log) {
  std::string text;
  bool fraction = false;
  for (const char c : log) {
    if (c == '.') fraction = true;
    if (!std::isdigit(static_cast<unsigned char>(c)) && c != '.') fraction = false;
    if (!fraction) text += c;
  }
  return text;
}

/// Returns the text with names in place of paths.
std::string without(std::string text, const std::string& folder) {
  for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder)) {
    text.erase(at, folder.size());
  }
  return text;
}

void check_history(const History& history, const Json& expected) {
  CHECK(history.epoch == expected.at("epoch").get<std::vector<int64_t>>());
  REQUIRE(history.history.size() == expected.at("history").size());
  for (const Json& course : expected.at("history")) {
    const std::string name = course[0];
    CAPTURE(name);
    const at::Tensor actual = at::tensor(history.at(name), at::kDouble);
    const at::Tensor values = numbers(course[1]);
    REQUIRE(actual.sizes() == values.sizes());
    if (values.isfinite().all().item<bool>()) {
      CHECK(difference(actual, values, 1e-5, 1e-6) == "");
    } else {
      CHECK(!actual.isfinite().any().item<bool>());
    }
  }
}

void check_case(const std::string& name, const MakeFitRun& make, const LayoutMap& layouts) {
  const auto& cases = golden().at("cases");
  const auto match =
      std::find_if(cases.begin(), cases.end(), [&](const Json& c) { return c.at("name") == name; });
  REQUIRE(match != cases.end());
  CAPTURE(name, layouts.mesh().describe());
  const TempFolder folder;
  const std::string log = folder.path() / "log.csv";
  FitRun run = make(FitModels(layouts), log);
  run.options.batch_size = 4;
  run.options.shuffle = false;
  run.options.verbose = 0;
  const StandardOutput output;
  const History history = run.model.fit(run.data, run.options);
  const std::string text = without(output.text(), folder.path().string() + "/");
  CHECK(text == match->at("text").get<std::string>());
  check_history(history, *match);
  const double rate = run.model->optimizer()->learning_rate();
  CHECK(rate == Approx(match->at("rate").get<double>()).epsilon(1e-6));
  if (name == "terminate") return;
  for (const Variable& weight : run.model.weights()) {
    const at::Tensor expected = numbers(match->at("weights").at(weight.path()));
    const at::Tensor actual = weight.value().full().flatten().to(at::kDouble);
    CHECK(difference(actual, expected, 1e-5, 1e-6) == "");
  }
  const std::string file = match->at("file");
  if (!file.empty()) CHECK(shape_of(read_file(log)) == shape_of(file));
}

}  // namespace

at::Tensor fit_data(const std::string& name, at::ScalarType dtype) {
  return golden_tensor(golden().at("data").at(name), dtype);
}

ModelHandle FitModels::regression(double rate, const MetricsChoice& weighted) const {
  return made({"out"}, {.optimizer = SGD(rate), .loss = "mse", .weighted_metrics = weighted});
}

ModelHandle FitModels::regression(const OptimizerHandle& optimizer) const {
  return made({"out"}, {.optimizer = optimizer, .loss = "mse"});
}

ModelHandle FitModels::classification(const LossChoice& loss, const MetricsChoice& metrics,
                                      const MetricsChoice& weighted) const {
  return made(
      {"classes"},
      {.optimizer = SGD(0.2), .loss = loss, .metrics = metrics, .weighted_metrics = weighted});
}

ModelHandle FitModels::both(CompileOptions options) const {
  options.optimizer = SGD(0.1);
  return made({"out", "classes"}, options, 0.05);
}

ModelHandle FitModels::made(const std::vector<std::string>& heads, CompileOptions options,
                            double penalty) const {
  DenseOptions hidden{.activation = "tanh", .name = "hidden"};
  if (penalty > 0) hidden.kernel_regularizer = L2(penalty);
  const Input x({3}, {.name = "x"});
  const SymbolicTensor h = Dense(4, hidden)(x);
  std::vector<SymbolicTensor> outputs;
  for (const std::string& head : heads) {
    const bool classes = head == "classes";
    const char* activation = classes ? "softmax" : "linear";
    outputs.push_back(Dense(classes ? 3 : 1, {.activation = activation, .name = head})(h));
  }
  const Functional model({x}, outputs);
  options.layouts = layouts_;
  model.compile(options);
  for (Variable weight : model.weights()) {
    weight.assign(pack(fit_data(weight.path()), weight.layout()));
  }
  return model;
}

FitRun regression_run(const FitModels& models, FitOptions options, bool validated) {
  if (validated) options.validation_data = {fit_data("x_val"), fit_data("y_val")};
  return {models.regression(), {fit_data("x"), fit_data("y")}, options};
}

void check_fit_cases(const std::string& part, const FitCases& cases) {
  const auto& all = golden().at("cases");
  const auto count =
      std::count_if(all.begin(), all.end(), [&](const Json& c) { return c.at("part") == part; });
  CHECK(static_cast<int64_t>(cases.size()) == count);
  for (const std::string mesh : {"batch=1", "batch=4", "batch=2,model=2"}) {
    LayoutMap layouts(create_mesh(parse_mesh_dims(mesh)));
    if (mesh == "batch=2,model=2") layouts["hidden/kernel"] = {unsharded, "model"};
    for (const auto& [name, make] : cases) check_case(name, make, layouts);
  }
}

}  // namespace tessera::test
