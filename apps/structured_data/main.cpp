// Keras' guide "Structured data classification with FeatureSpace", on any CSV file: columns and
// crosses of some of them become features, and a small network classifies rows into two classes.
// The guide's heart.csv gets the guide's features; in other tables, texts and integers with few
// distinct values are categories.

#include <set>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/tessera.hpp>

#include "apps/common/data_program.hpp"
#include "apps/common/run_app.hpp"
#include "apps/common/sample_data.hpp"

namespace {

using namespace tessera;

/// Maximum number of distinct values of an integer column that becomes a category.
constexpr size_t max_categories = 20;

FeatureSpace::Feature feature_of(const std::string& name, const Table::Column& column) {
  if (name == "age") return FeatureSpace::float_discretized({.num_bins = 30});
  if (name == "slope") return FeatureSpace::float_normalized();
  if (column.is_text()) return FeatureSpace::string_categorical({.num_oov_indices = 0});
  const at::Tensor& numbers = column.numbers();
  if (at::isIntegralType(numbers.scalar_type(), /*includeBool=*/true)) {
    const at::Tensor integers = numbers.to(at::kLong).contiguous();
    const auto* first = integers.const_data_ptr<int64_t>();
    if (std::set<int64_t>(first, first + integers.numel()).size() <= max_categories) {
      return FeatureSpace::integer_categorical({.num_oov_indices = 0});
    }
  }
  return FeatureSpace::float_normalized();
}

FeatureSpace features_of(const Table& table) {
  FeatureSpaceOptions options;
  for (const std::string& name : table.names()) {
    options.features.emplace_back(name, feature_of(name, table[name]));
  }
  for (const auto& [a, b, bins] : {std::tuple("sex", "age", 64), std::tuple("thal", "ca", 16)}) {
    if (table.has(a) && table.has(b)) options.crosses.push_back(FeatureSpace::cross({a, b}, bins));
  }
  return FeatureSpace(options);
}

/// Removes and returns the target column, 0 or 1 in each row: float32 (rows, 1).
at::Tensor take_target(Table& table, const std::string& name) {
  const at::Tensor target = table.pop(name).numbers().to(at::kFloat).reshape({-1, 1});
  if (target.eq(0).logical_or_(target.eq(1)).all().item<bool>()) return target;
  throw ConfigError("--target", "a column of 0 and 1", "\"" + name + "\"", "name another column");
}

int run(int argc, char** argv) {
  app::DataProgram program("structured_data",
                           "Classifies the rows of a table into two classes, like Keras' guide to "
                           "FeatureSpace.",
                           "a CSV file with a header", app::sample_patients);
  program.common().batch_size = 32;
  program.common().epochs = 20;
  std::string target = "target";
  program.options().add(
      {"target", "Data", "the column to predict, of 0 and 1", app::text(target, "COLUMN")});
  const std::optional<app::Setup> setup = program.start(argc, argv);
  if (!setup) return 0;

  Table table = datasets::read_csv(program.data());
  const at::Tensor labels = take_target(table, target);
  // One row in five is held out for validation.
  std::vector<int64_t> rows, held;
  for (int64_t row = 0; row < table.rows(); ++row) (row % 5 == 0 ? held : rows).push_back(row);
  const auto labels_of = [&](std::vector<int64_t>& of) {
    return labels.index_select(0, at::tensor(of, at::kLong));
  };
  const Table training = table.take(rows), validation = table.take(held);
  const FeatureSpace space = features_of(training);
  space.adapt(training);

  const Sequential model({Input({space.width()}), Dense(32, {.activation = "relu"}),
                          Dropout(program.dropout), Dense(1, {.activation = "sigmoid"})});
  model.compile({.optimizer = Adam(program.learning_rate(1e-3)),
                 .loss = "binary_crossentropy",
                 .metrics = {"accuracy"},
                 .layouts = setup->layouts});
  return program.train(model, space.dataset(training, labels_of(rows)),
                       space.dataset(validation, labels_of(held)));
}

}  // namespace

int main(int argc, char** argv) { return tessera::app::run_app(argc, argv, run); }
