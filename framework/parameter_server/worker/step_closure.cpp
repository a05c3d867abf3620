#include <tessera/framework/parameter_server/worker/step_closure.hpp>

#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/model/model.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/training/callbacks/internal/learning_rate_access.hpp>
#include <tessera/framework/training/internal/fit_data.hpp>
#include <tessera/framework/training/internal/step_runner.hpp>

namespace tessera::detail {

using namespace strategy;

namespace {

StepNumber number_of(const ClosureValue& value) {
  JsonObject object(value.json, JsonPath("a step's number"));
  StepNumber number{.pass = object.take<int64_t>("pass"),
                    .batch = object.take<int64_t>("batch"),
                    .optimizer_steps = object.take<int64_t>("optimizer_steps")};
  object.finish();
  return number;
}

/// Sequential reader of the numbers in a tensor.
class Numbers {
 public:
  explicit Numbers(const std::vector<at::Tensor>& tensors) {
    const bool fits =
        tensors.size() == 1 && tensors[0].dim() == 1 && tensors[0].scalar_type() == at::kDouble;
    if (!fits) fail("other tensors");
    numbers_ = tensors[0].contiguous();
  }
  double next() {
    if (at_ == numbers_.numel()) fail("fewer");
    return numbers_.const_data_ptr<double>()[at_++];
  }
  void finish() const {
    if (at_ < numbers_.numel()) fail("more");
  }

 private:
  [[noreturn]] static void fail(const std::string& received) {
    throw ConfigError("fit", "a worker gives the totals of a step as float64 numbers", received,
                      "start all tasks with the same program");
  }

  at::Tensor numbers_;
  int64_t at_ = 0;
};

}  // namespace

ClosureValue to_closure(const StepNumber& number) {
  return {.json = {{"pass", number.pass},
                   {"batch", number.batch},
                   {"optimizer_steps", number.optimizer_steps}}};
}

ClosureValue to_closure(const StepTotals& totals) {
  std::vector<double> numbers = {totals.loss};
  Json names = Json::array(), counts = Json::array();
  for (const StepTotals::MetricTotals& metric : totals.metrics) {
    names.push_back(metric.name);
    counts.push_back(metric.totals.size());
    numbers.push_back(metric.value);
    numbers.insert(numbers.end(), metric.totals.begin(), metric.totals.end());
  }
  return {.json = {{"rows", totals.rows},
                   {"logs_loss", totals.logs_loss},
                   {"metrics", names},
                   {"totals", counts}},
          .tensors = {at::tensor(numbers, at::kDouble)}};
}

StepTotals totals_of(const ClosureValue& value) {
  JsonObject object(value.json, JsonPath("a step's totals"));
  StepTotals totals{.rows = object.take<int64_t>("rows"),
                    .logs_loss = object.take<bool>("logs_loss")};
  const auto names = object.take<std::vector<std::string>>("metrics");
  const auto counts = object.take<std::vector<int64_t>>("totals");
  object.finish();
  if (counts.size() != names.size()) json_fail(value.json, object.path(), "totals of each metric");
  Numbers numbers(value.tensors);
  totals.loss = numbers.next();
  for (size_t i = 0; i < names.size(); ++i) {
    StepTotals::MetricTotals& metric = totals.metrics.emplace_back();
    metric.name = names[i];
    metric.value = numbers.next();
    for (int64_t k = 0; k < counts[i]; ++k) metric.totals.push_back(numbers.next());
  }
  numbers.finish();
  return totals;
}

StepMaker::StepMaker(Model& model, const FitData& data, const FitOptions& options,
                     const LayoutMap& layouts)
    : model_(model),
      layouts_(layouts),
      training_(data.train, training_batches(options, {}, layouts)) {
  if (data.validation) validation_.emplace(data.validation, validation_batches(options, layouts));
}

std::optional<Batch> StepMaker::batch_of(Phase phase, const StepNumber& number) {
  BatchReader& reader = phase == Phase::train ? training_ : validation_.value();
  std::optional<Examples> examples = reader.read(number.pass, number.batch);
  if (!examples) return std::nullopt;
  return pack_batch(std::move(*examples), layouts_);
}

ClosureValue StepMaker::make(Phase phase, const ClosureValue& argument) {
  const DefaultMeshScope mesh(layouts_.mesh());
  const StepNumber number = number_of(argument);
  const std::optional<Batch> read = batch_of(phase, number);
  if (!read) return to_closure(StepTotals());
  const Batch& batch = *read;
  model_.reset_metrics();
  model_.clear_losses();
  if (phase == Phase::train) optimizer_of(model_).set_steps(number.optimizer_steps);
  const StepValues values =
      phase == Phase::train ? model_.train_step(batch) : model_.test_step(batch);
  StepTotals totals{.loss = read_loss(values.loss()) * static_cast<double>(batch.rows),
                    .rows = batch.rows,
                    .logs_loss = values.has_loss()};
  const Json all = model_.metric_totals();
  for (const auto& [name, metric] : all.at("metrics").items()) {
    totals.metrics.push_back({.name = name,
                              .totals = metric.at("totals").get<std::vector<double>>(),
                              .value = metric.at("value").get<double>()});
  }
  for (const auto& [name, value] : values.all()) {
    if (name != "loss")
      totals.metrics.push_back({.name = name, .totals = {}, .value = read_loss(value)});
  }
  return to_closure(totals);
}

}  // namespace tessera::detail
