#include "apps/python/data.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

#include "apps/python/arrays.hpp"

namespace tessera::python {

using namespace detail;

namespace {

/// Returns the arrays of a dict in the order of `names`.
std::vector<at::Tensor> by_name(const nb::dict& arrays, const std::vector<std::string>& names,
                                const std::string& where) {
  if (names.empty()) {
    throw ConfigError(where, "a dict of arrays needs a model with names for them",
                      "a model without names", "pass a list of arrays");
  }
  std::vector<at::Tensor> ordered(names.size());
  for (const auto& [key, array] : arrays) {
    const auto name = nb::cast<std::string>(nb::str(key));
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) {
      throw ConfigError(where, "the model has " + quoted_list(names), in_quotes(name),
                        suggestion(name, names));
    }
    ordered[static_cast<size_t>(at - names.begin())] = tensor_of(array, where + ", " + name);
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (ordered[i].defined()) continue;
    throw ConfigError(where, "the dict has an array for each of " + quoted_list(names),
                      "none for " + in_quotes(names[i]), "add it");
  }
  return ordered;
}

std::vector<at::Tensor> tensors_of(nb::handle arrays, const std::vector<std::string>& names,
                                   const std::string& where) {
  if (arrays.is_none()) return {};
  if (nb::isinstance<nb::dict>(arrays)) return by_name(nb::borrow<nb::dict>(arrays), names, where);
  if (!nb::isinstance<nb::list>(arrays) && !nb::isinstance<nb::tuple>(arrays)) {
    return {tensor_of(arrays, where)};
  }
  std::vector<at::Tensor> tensors;
  for (const nb::handle array : arrays) tensors.push_back(tensor_of(array, where));
  return tensors;
}

/// An object of _batches.py, which holds a Python iterable; used and destroyed with the GIL.
struct PythonSource {
  PythonSource(nb::object made, DataNames known)
      : batches(std::move(made)), names(std::move(known)) {}
  ~PythonSource() {
    if (!nb::is_alive()) {
      batches.release();
      return;
    }
    const nb::gil_scoped_acquire gil;
    batches.reset();
  }
  PythonSource(const PythonSource&) = delete;
  PythonSource& operator=(const PythonSource&) = delete;

  Examples examples(const nb::object& batch) const {
    const nb::object parts = nb::module_::import_("tessera._batches").attr("parts")(batch);
    Examples all = examples_of(names, parts[0], parts[1], parts[2], "batch");
    // A generator may fill the same arrays again while this batch waits.
    for (auto* tensors : {&all.x, &all.y, &all.sample_weight}) {
      for (at::Tensor& tensor : *tensors) tensor = tensor.clone();
    }
    return all;
  }

  nb::object batches;
  DataNames names;
};

/// The batches of a Python iterable, read with the GIL on the thread that prefetches.
class PythonBatches final : public StreamDataset {
 public:
  PythonBatches(nb::handle iterable, const DataNames& names)
      : source_(std::make_shared<PythonSource>(
            nb::module_::import_("tessera._batches").attr("Batches")(iterable), names)),
        steps_(nb::cast<std::optional<int64_t>>(source_->batches.attr("steps")())) {
    for (const at::Tensor& x : source_->examples(source_->batches.attr("first")()).x) {
      if (x.dim() == 0) throw ShapeError("batch", "an input has rows", "a number", "pass an array");
      shapes_.push_back(x.sizes().slice(1).vec());
    }
  }

  BatchFunction start(int64_t epoch) const override { return start_at(epoch, 0, {}); }
  BatchFunction start_at(int64_t epoch, int64_t first_step, const LayoutMap&) const override {
    const nb::gil_scoped_acquire gil;
    source_->batches.attr("start")(epoch, first_step);
    return [source = source_]() -> std::optional<Examples> {
      const nb::gil_scoped_acquire held;
      const nb::object batch = source->batches.attr("next")();
      return batch.is_none() ? std::nullopt : std::optional(source->examples(batch));
    };
  }
  std::optional<int64_t> steps() const override { return steps_; }
  std::vector<Shape> input_shapes() const override { return shapes_; }

 private:
  std::shared_ptr<PythonSource> source_;
  std::optional<int64_t> steps_;
  std::vector<Shape> shapes_;
};

bool is_stream(nb::handle x) {
  const bool holds_arrays = nb::isinstance<nb::dict>(x) || nb::isinstance<nb::list>(x) ||
                            nb::isinstance<nb::tuple>(x) || nb::isinstance<nb::str>(x);
  return !holds_arrays && !is_array(x) && nb::hasattr(x, "__iter__");
}

}  // namespace

DataNames::DataNames(const Model& model)
    : inputs(model.input_names()), outputs(model.output_names()) {}

Examples examples_of(const DataNames& names, nb::handle x, nb::handle y, nb::handle sample_weight,
                     const std::string& caller) {
  return {.x = tensors_of(x, names.inputs, caller + ", x"),
          .y = tensors_of(y, names.outputs, caller + ", y"),
          .sample_weight = tensors_of(sample_weight, names.outputs, caller + ", sample_weight")};
}

DatasetHandle data_of(const DataNames& names, nb::handle x, nb::handle y, nb::handle sample_weight,
                      const std::string& caller) {
  if (!is_stream(x)) return examples_of(names, x, y, sample_weight, caller);
  if (!y.is_none() || !sample_weight.is_none()) {
    throw ConfigError(caller, "an iterable yields its labels and weights itself",
                      y.is_none() ? "the argument sample_weight" : "the argument y",
                      "let it yield (x, y) or (x, y, sample_weight)");
  }
  return std::shared_ptr<const StreamDataset>(std::make_shared<const PythonBatches>(x, names));
}

DatasetHandle validation_data_of(const DataNames& names, nb::handle data) {
  if (data.is_none()) return {};
  if (!nb::isinstance<nb::tuple>(data) && !nb::isinstance<nb::list>(data)) {
    return data_of(names, data, nb::none(), nb::none(), "fit, validation_data");
  }
  const size_t size = nb::len(data);
  if (size != 2 && size != 3) {
    throw ConfigError("fit, validation_data", "a tuple is (x, y) or (x, y, sample_weight)",
                      str(size, " values"), "put several inputs into a list of their own");
  }
  const nb::object weights = size == 3 ? nb::object(data[2]) : nb::none();
  return data_of(names, nb::object(data[0]), nb::object(data[1]), weights, "fit, validation_data");
}

}  // namespace tessera::python
