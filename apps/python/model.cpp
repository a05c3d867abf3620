#include "apps/python/model.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/io/keras/compile_config.hpp>
#include <tessera/framework/io/load_model.hpp>
#include <tessera/framework/model/config.hpp>
#include <tessera/framework/model/summary.hpp>
#include <tessera/tessera.hpp>

#include "apps/python/arrays.hpp"
#include "apps/python/callbacks.hpp"
#include "apps/python/data.hpp"
#include "apps/python/interruptible.hpp"
#include "apps/python/layouts.hpp"

namespace tessera::python {

using namespace detail;

namespace {

using Self = nb::handle_t<PythonModel>;

PythonModel& model_of(Self self) { return nb::cast<PythonModel&>(self); }

int verbosity_of(nb::handle verbose) {
  if (nb::isinstance<nb::str>(verbose) && nb::cast<std::string>(verbose) == "auto") return 1;
  int level = -1;
  if (nb::isinstance<bool>(verbose)) level = verbose.is(Py_True) ? 1 : 0;
  if (level >= 0 || nb::try_cast(nb::borrow(verbose), level)) return level;
  throw nb::type_error(
      "[verbose] 0, 1, 2 or \"auto\". Received: another value. To fix: write one of these.");
}

nb::object arrays_of(const std::vector<at::Tensor>& tensors) {
  if (tensors.size() == 1) return array_of(tensors[0]);
  nb::list arrays;
  for (const at::Tensor& tensor : tensors) arrays.append(array_of(tensor));
  return arrays;
}

/// Returns what Keras' evaluate and train_on_batch do: a dict, or the loss and then the metrics in
/// a list, or a single value.
nb::object values_of(const Logs& logs, bool return_dict) {
  if (return_dict) return dict_of(logs);
  nb::list values;
  if (const auto loss = find_value(logs, "loss")) values.append(*loss);
  for (const auto& [name, value] : logs) {
    if (name != "loss") values.append(value);
  }
  if (nb::len(values) == 1) return nb::object(values[0]);
  return values;
}

ValidationFreq validation_freq_of(nb::handle freq) {
  if (nb::isinstance<nb::list>(freq) || nb::isinstance<nb::tuple>(freq)) {
    return nb::cast<std::vector<int64_t>>(freq);
  }
  return nb::cast<int64_t>(freq);
}

/// Returns a shape, in which None is an unknown extent.
Shape shape_of(nb::handle shape) {
  Shape read;
  for (const nb::handle extent : shape) {
    read.push_back(extent.is_none() ? -1 : nb::cast<int64_t>(extent));
  }
  return read;
}

nb::tuple tuple_of(const Shape& shape) {
  nb::list extents;
  for (const int64_t extent : shape) {
    extents.append(extent < 0 ? nb::none() : nb::object(nb::int_(extent)));
  }
  return nb::tuple(extents);
}

void compile(PythonModel& model, nb::handle optimizer, nb::handle loss, nb::handle loss_weights,
             nb::handle metrics, nb::handle weighted_metrics, bool run_eagerly,
             bool auto_scale_loss, nb::handle layouts, nb::handle mesh, bool world_size_invariant) {
  nb::dict arguments;
  arguments["optimizer"] = optimizer;
  arguments["loss"] = loss;
  arguments["loss_weights"] = loss_weights;
  arguments["metrics"] = metrics;
  arguments["weighted_metrics"] = weighted_metrics;
  const Json config = json_of(arguments, "compile");
  CompileOptions options = compile_options_from_config(config, JsonPath("compile"));
  options.run_eagerly = run_eagerly;
  options.auto_scale_loss = auto_scale_loss;
  options.world_size_invariant = world_size_invariant;
  LayoutMap given = layouts_of(layouts, mesh);
  if (given.defined()) model.layouts = std::move(given);
  options.layouts = model.layouts;
  const nb::gil_scoped_release released;
  model.handle.compile(options);
}

History fit(Self self, nb::handle x, nb::handle y, std::optional<int64_t> batch_size,
            int64_t epochs, nb::handle verbose, nb::handle callbacks, double validation_split,
            nb::handle validation_data, bool shuffle,
            const std::optional<ClassWeight>& class_weight, nb::handle sample_weight,
            int64_t initial_epoch, std::optional<int64_t> steps_per_epoch,
            std::optional<int64_t> validation_steps, std::optional<int64_t> validation_batch_size,
            nb::handle validation_freq, double memory_limit, std::optional<double> peak_flops) {
  const PythonModel& model = model_of(self);
  const DatasetHandle data = data_of(model.names(), x, y, sample_weight, "fit");
  const FitOptions options{.batch_size = batch_size.value_or(32),
                           .epochs = epochs,
                           .verbose = verbosity_of(verbose),
                           .callbacks = callbacks_of(callbacks, self),
                           .validation_split = validation_split,
                           .validation_data = validation_data_of(model.names(), validation_data),
                           .shuffle = shuffle,
                           .class_weight = class_weight.value_or(ClassWeight()),
                           .initial_epoch = initial_epoch,
                           .steps_per_epoch = steps_per_epoch,
                           .validation_steps = validation_steps,
                           .validation_batch_size = validation_batch_size,
                           .validation_freq = validation_freq_of(validation_freq),
                           .memory_limit = memory_limit,
                           .peak_flops = peak_flops};
  return run_released([&] { return model.handle.fit(data, options); });
}

nb::object evaluate(Self self, nb::handle x, nb::handle y, std::optional<int64_t> batch_size,
                    nb::handle verbose, nb::handle sample_weight, std::optional<int64_t> steps,
                    nb::handle callbacks, bool return_dict) {
  const PythonModel& model = model_of(self);
  const DatasetHandle data = data_of(model.names(), x, y, sample_weight, "evaluate");
  const EvaluateOptions options{.batch_size = batch_size.value_or(32),
                                .verbose = verbosity_of(verbose),
                                .steps = steps,
                                .callbacks = callbacks_of(callbacks, self)};
  return values_of(run_released([&] { return model.handle.evaluate(data, options); }), return_dict);
}

nb::object predict(Self self, nb::handle x, std::optional<int64_t> batch_size, nb::handle verbose,
                   std::optional<int64_t> steps, nb::handle callbacks) {
  const PythonModel& model = model_of(self);
  const DatasetHandle data = data_of(model.names(), x, nb::none(), nb::none(), "predict");
  const PredictOptions options{.batch_size = batch_size.value_or(32),
                               .verbose = verbosity_of(verbose),
                               .steps = steps,
                               .callbacks = callbacks_of(callbacks, self)};
  return arrays_of(run_released([&] { return model.handle.predict_all(data, options); }));
}

Examples batch_of(const PythonModel& model, nb::handle x, nb::handle y, nb::handle sample_weight,
                  const char* caller) {
  return examples_of(model.names(), x, y, sample_weight, caller);
}

StepPlan plan(const PythonModel& model, nb::handle x, nb::handle y,
              std::optional<int64_t> batch_size, double memory_limit) {
  const DatasetHandle data = data_of(model.names(), x, y, nb::none(), "plan");
  const nb::gil_scoped_release released;
  return model.handle.plan(data,
                           {.batch_size = batch_size.value_or(32), .memory_limit = memory_limit});
}

/// Returns the weight at a path. Throws ConfigError naming the nearest one.
Variable weight_at(const PythonModel& model, const std::string& path) {
  std::vector<std::string> paths;
  for (const Variable& weight : model.handle.weights()) {
    if (weight.path() == path) return weight;
    paths.push_back(weight.path());
  }
  throw ConfigError("weight", "the model has a weight of this path", in_quotes(path),
                    paths.empty() ? "build the model first" : suggestion(path, paths));
}

nb::object array_of_weight(const Variable& weight) {
  at::Tensor value;
  {
    const nb::gil_scoped_release released;
    value = weight.value().full().clone();
  }
  return array_of(value);
}

void assign(Variable weight, nb::handle value) {
  const at::Tensor tensor = tensor_of(value, weight.path());
  if (tensor.sizes() != at::IntArrayRef(weight.shape())) {
    throw ShapeError(weight.path(), "the value must have shape " + to_string(weight.shape()),
                     to_string(tensor.sizes().vec()), "pass an array of that shape");
  }
  const nb::gil_scoped_release released;
  weight.assign(pack(tensor, weight.layout()));
}

void summary(const PythonModel& model, std::optional<int64_t> line_length, nb::handle positions,
             nb::handle print_fn, bool expand_nested, bool show_trainable, nb::handle layer_range,
             bool show_layout, const std::optional<StepPlan>& of_step) {
  SummaryOptions options{.line_length = line_length,
                         .expand_nested = expand_nested,
                         .show_trainable = show_trainable,
                         .show_layout = show_layout,
                         .plan = of_step};
  if (!positions.is_none()) options.positions = nb::cast<std::vector<double>>(positions);
  if (!layer_range.is_none()) {
    options.layer_range = nb::cast<std::vector<std::string>>(layer_range);
  }
  std::string text = summary_text(model.handle.model(), options, standard_terminal());
  if (text.ends_with('\n')) text.pop_back();
  // By Python's print, whose output notebooks show.
  const nb::object print =
      print_fn.is_none() ? nb::module_::import_("builtins").attr("print") : nb::borrow(print_fn);
  print(text);
}

void bind_results(nb::module_& module) {
  nb::class_<History>(module, "History", "Values of a fit (keras.callbacks.History).")
      .def_prop_ro(
          "history",
          [](const History& history) {
            nb::dict values;
            for (const auto& [name, of_epochs] : history.history) values[name.c_str()] = of_epochs;
            return values;
          },
          "Each value over the epochs: {\"loss\": [...], \"val_loss\": [...]}.")
      .def_prop_ro(
          "epoch", [](const History& history) { return history.epoch; },
          "Epochs that were run, counted from 0.")
      .def_prop_ro(
          "steps", [](const History& history) { return history.steps; },
          "The loss of every step, before its update.")
      .def("__repr__", [](const History& history) {
        return str("History(", history.epoch.size(), " epochs)");
      });

  nb::class_<StepPlan>(module, "StepPlan",
                       "Memory and collectives of a training step, found without allocating any of "
                       "it; its text is two tables.")
      .def_ro("flops", &StepPlan::flops,
              "Floating-point operations of a step, of all devices together.")
      .def_prop_ro(
          "peak_bytes",
          [](const StepPlan& plan) {
            std::vector<double> bytes;
            for (const StepPlan::Peak& peak : plan.peaks) bytes.push_back(peak.total());
            return bytes;
          },
          "The most that each device holds at once, in bytes.")
      .def(
          "to_dict", [](const StepPlan& plan) { return value_of(plan.to_json()); },
          "Returns layers, peaks and collectives as a dict.")
      .def("__str__", &StepPlan::to_string);

  nb::class_<OptimizerHandle>(module, "Optimizer", "The optimizer of a compiled model.")
      .def_prop_ro("name", [](const OptimizerHandle& optimizer) { return optimizer->name(); })
      .def_prop_rw(
          "learning_rate",
          [](const OptimizerHandle& optimizer) { return optimizer->learning_rate(); },
          [](const OptimizerHandle& optimizer, nb::handle rate) {
            optimizer->set_learning_rate(nb::cast<double>(nb::float_(rate)));
          },
          "Rate of the next update. Setting it raises StateError if there is a schedule.")
      .def_prop_ro(
          "iterations", [](const OptimizerHandle& optimizer) { return optimizer->iterations(); },
          "Number of updates.")
      .def(
          "get_config",
          [](const OptimizerHandle& optimizer) { return value_of(optimizer->config()); },
          "Returns the options by Keras' keys.");

  nb::class_<Variable>(module, "Variable", "A weight of a model, sharded by its layout.")
      .def_prop_ro("path", &Variable::path, "Its name with those of the layers around it.")
      .def_prop_ro("shape", [](const Variable& weight) { return tuple_of(weight.shape()); })
      .def_prop_ro("dtype", [](const Variable& weight) { return dtype_name(weight.dtype()); })
      .def_prop_ro("trainable", &Variable::trainable)
      .def_prop_ro(
          "layout", [](const Variable& weight) { return to_string(weight.layout().spec()); },
          "The mesh dimension that shards each axis.")
      .def("numpy", &array_of_weight, "Returns the full value. Collective.")
      .def("assign", &assign, nb::arg("value"), "Sets the full value. Collective.")
      .def("__repr__", [](const Variable& weight) {
        return str("Variable(", weight.path(), ", shape=", to_string(weight.shape()), ")");
      });
}

void bind_model(nb::module_& module) {
  nb::class_<PythonModel>(
      module, "Model", nb::is_weak_referenceable(),
      "A model to train, evaluate and ask, on one device or a mesh (keras.Model). "
      "load_model() and model_from_json() make it.")
      .def(
          "compile",
          [](PythonModel& model, nb::handle optimizer, nb::handle loss, nb::handle loss_weights,
             nb::handle metrics, nb::handle weighted_metrics, bool run_eagerly,
             nb::handle /*steps_per_execution*/, nb::handle /*jit_compile*/, bool auto_scale_loss,
             nb::handle layouts, nb::handle mesh, bool world_size_invariant) {
            compile(model, optimizer, loss, loss_weights, metrics, weighted_metrics, run_eagerly,
                    auto_scale_loss, layouts, mesh, world_size_invariant);
          },
          nb::arg("optimizer") = "rmsprop", nb::arg("loss") = nb::none(),
          nb::arg("loss_weights") = nb::none(), nb::arg("metrics") = nb::none(),
          nb::arg("weighted_metrics") = nb::none(), nb::arg("run_eagerly") = false,
          nb::arg("steps_per_execution") = 1, nb::arg("jit_compile") = "auto",
          nb::arg("auto_scale_loss") = true, nb::kw_only(), nb::arg("layouts") = nb::none(),
          nb::arg("mesh") = nb::none(), nb::arg("world_size_invariant") = false,
          "Configures training (keras.Model.compile). Optimizers, losses and metrics are names, "
          "objects of Keras or their configurations. steps_per_execution and jit_compile have no "
          "effect on results and are ignored. `layouts` is the path of a layouts file, its content "
          "as a "
          "dict, or a LayoutMap; without it and `mesh`, the layouts stay as they are.")
      .def(
          "fit", &fit, nb::arg("x") = nb::none(), nb::arg("y") = nb::none(),
          nb::arg("batch_size") = nb::none(), nb::arg("epochs") = 1, nb::arg("verbose") = "auto",
          nb::arg("callbacks") = nb::none(), nb::arg("validation_split") = 0.0,
          nb::arg("validation_data") = nb::none(), nb::arg("shuffle") = true,
          nb::arg("class_weight") = nb::none(), nb::arg("sample_weight") = nb::none(),
          nb::arg("initial_epoch") = 0, nb::arg("steps_per_epoch") = nb::none(),
          nb::arg("validation_steps") = nb::none(), nb::arg("validation_batch_size") = nb::none(),
          nb::arg("validation_freq") = 1, nb::kw_only(), nb::arg("memory_limit") = 0.0,
          nb::arg("peak_flops") = nb::none(),
          "Trains (keras.Model.fit). `x` is an array, a list or a dict of arrays by the names of "
          "inputs, or an iterable of batches (x, y) or (x, y, sample_weight), such as a generator, "
          "a keras.utils.PyDataset or a torch DataLoader. Arrays of NumPy and of DLPack are not "
          "copied. Ctrl-C ends it after a step. `memory_limit`: bytes of a device that a step may "
          "need; `peak_flops`: adds rates to the logs, as in C++. Collective.")
      .def("evaluate", &evaluate, nb::arg("x") = nb::none(), nb::arg("y") = nb::none(),
           nb::arg("batch_size") = nb::none(), nb::arg("verbose") = "auto",
           nb::arg("sample_weight") = nb::none(), nb::arg("steps") = nb::none(),
           nb::arg("callbacks") = nb::none(), nb::arg("return_dict") = false,
           "Returns loss and metrics over data (keras.Model.evaluate), data as in fit. Collective.")
      .def("predict", &predict, nb::arg("x").none(), nb::arg("batch_size") = nb::none(),
           nb::arg("verbose") = "auto", nb::arg("steps") = nb::none(),
           nb::arg("callbacks") = nb::none(),
           "Returns the output for every row (keras.Model.predict), a list for several outputs. "
           "Collective.")
      .def(
          "train_on_batch",
          [](const PythonModel& model, nb::handle x, nb::handle y, nb::handle sample_weight,
             bool return_dict) {
            const Examples batch = batch_of(model, x, y, sample_weight, "train_on_batch");
            return values_of(run_released([&] { return model.handle.train_on_batch(batch); }),
                             return_dict);
          },
          nb::arg("x").none(), nb::arg("y") = nb::none(), nb::arg("sample_weight") = nb::none(),
          nb::kw_only(), nb::arg("return_dict") = false,
          "Runs one training step; returns loss and metrics of this batch. Collective.")
      .def(
          "test_on_batch",
          [](const PythonModel& model, nb::handle x, nb::handle y, nb::handle sample_weight,
             bool return_dict) {
            const Examples batch = batch_of(model, x, y, sample_weight, "test_on_batch");
            return values_of(run_released([&] { return model.handle.test_on_batch(batch); }),
                             return_dict);
          },
          nb::arg("x").none(), nb::arg("y") = nb::none(), nb::arg("sample_weight") = nb::none(),
          nb::kw_only(), nb::arg("return_dict") = false,
          "Returns loss and metrics of this batch. Collective.")
      .def(
          "predict_on_batch",
          [](const PythonModel& model, nb::handle x) {
            const Examples batch = batch_of(model, x, nb::none(), nb::none(), "predict_on_batch");
            return arrays_of(run_released([&] { return model.handle.predict_on_batch(batch); }));
          },
          nb::arg("x").none(), "Returns the outputs for one batch. Collective.")
      .def("plan", &plan, nb::arg("x").none(), nb::arg("y") = nb::none(),
           nb::arg("batch_size") = nb::none(), nb::arg("memory_limit") = 0.0,
           "Returns the memory that a training step on such batches needs on every device, and its "
           "collectives. Nothing is allocated.")
      .def("summary", &summary, nb::arg("line_length") = nb::none(),
           nb::arg("positions") = nb::none(), nb::arg("print_fn") = nb::none(),
           nb::arg("expand_nested") = false, nb::arg("show_trainable") = false,
           nb::arg("layer_range") = nb::none(), nb::kw_only(), nb::arg("show_layout") = false,
           nb::arg("plan") = nb::none(),
           "Prints the table of layers, as Keras does; with show_layout also the layouts of "
           "weights.")
      .def(
          "build",
          [](const PythonModel& model, nb::handle input_shape) {
            model.handle.build(shape_of(input_shape));
          },
          nb::arg("input_shape"), "Creates the weights for inputs of this shape, (None, 20).");
}

void bind_files(nb::module_& module) {
  auto type = nb::borrow<nb::class_<PythonModel>>(module.attr("Model"));
  type.def(
          "save",
          [](const PythonModel& model, nb::handle filepath, bool overwrite,
             std::optional<bool> zipped, bool include_optimizer) {
            const std::string path = path_of(filepath);
            const nb::gil_scoped_release released;
            model.handle.save(path, {.overwrite = overwrite,
                                     .include_optimizer = include_optimizer,
                                     .zipped = zipped.value_or(true)});
          },
          nb::arg("filepath"), nb::arg("overwrite") = true, nb::arg("zipped") = nb::none(),
          nb::kw_only(), nb::arg("include_optimizer") = true,
          "Saves the complete model for Keras and load_model(): \"model.keras\". Collective.")
      .def(
          "save_weights",
          [](const PythonModel& model, nb::handle filepath, bool overwrite,
             std::optional<double> max_shard_size) {
            const std::string path = path_of(filepath);
            const nb::gil_scoped_release released;
            model.handle.save_weights(path,
                                      {.overwrite = overwrite, .max_shard_size = max_shard_size});
          },
          nb::arg("filepath"), nb::arg("overwrite") = true, nb::arg("max_shard_size") = nb::none(),
          "Saves the weights: Keras' \".weights.h5\" or \".weights.json\", or safetensors for any "
          "other extension. Collective.")
      .def(
          "load_weights",
          [](const PythonModel& model, nb::handle filepath, bool skip_mismatch, bool by_name,
             bool cast) {
            const std::string path = path_of(filepath);
            const nb::gil_scoped_release released;
            model.handle.load_weights(
                path, {.skip_mismatch = skip_mismatch, .by_name = by_name, .cast = cast});
          },
          nb::arg("filepath"), nb::arg("skip_mismatch") = false, nb::kw_only(),
          nb::arg("by_name") = false, nb::arg("cast") = false,
          "Loads weights that save_weights() or Keras wrote, directly into their shards. `cast`: "
          "converts those of a safetensors file to the weights' dtypes. Collective.")
      .def(
          "to_json", [](const PythonModel& model) { return model.handle.to_json(-1); },
          "Returns the configuration as JSON that Keras also reads.");

  module.def(
      "load_model",
      [](nb::handle filepath, bool compile, nb::handle layouts, nb::handle mesh) {
        const std::string path = path_of(filepath);
        const LayoutMap map = layouts_of(layouts, mesh);
        const nb::gil_scoped_release released;
        return PythonModel{load_model(path, {.layouts = map, .compile = compile}), map};
      },
      nb::arg("filepath"), nb::arg("compile") = true, nb::kw_only(),
      nb::arg("layouts") = nb::none(), nb::arg("mesh") = nb::none(),
      "Loads a model that Keras or Model.save() wrote (keras.saving.load_model), each process only "
      "its "
      "shards, with the optimizer's variables if `compile`. `layouts` is the path of a layouts "
      "file, "
      "its content as a dict, or a LayoutMap; a dict without \"mesh\" needs `mesh`. Nothing that "
      "the "
      "file names is run. Collective.");
  module.def(
      "model_from_json",
      [](const std::string& json_string) { return PythonModel{model_from_json(json_string)}; },
      nb::arg("json_string"),
      "Makes a model with new weights from the JSON of Model.to_json(), here or in Keras "
      "(keras.models.model_from_json).");
}

void bind_weights(nb::module_& module) {
  auto type = nb::borrow<nb::class_<PythonModel>>(module.attr("Model"));
  type.def_prop_ro("name", [](const PythonModel& model) { return model.handle->name(); })
      .def_prop_ro(
          "weights", [](const PythonModel& model) { return model.handle.weights(); },
          "All weights, as Variables.")
      .def_prop_ro("trainable_weights",
                   [](const PythonModel& model) { return model.handle.trainable_weights(); })
      .def_prop_rw(
          "trainable", [](const PythonModel& model) { return model.handle.trainable(); },
          [](const PythonModel& model, bool trainable) { model.handle.set_trainable(trainable); },
          "Whether the weights are trained; call compile() after a change.")
      .def(
          "get_weights",
          [](const PythonModel& model) {
            std::vector<at::Tensor> values;
            {
              const nb::gil_scoped_release released;
              values = model.handle.get_weights();
            }
            nb::list arrays;
            for (const at::Tensor& value : values) arrays.append(array_of(value));
            return arrays;
          },
          "Returns copies of all weights, in the order of `weights`. Collective.")
      .def(
          "set_weights",
          [](const PythonModel& model, nb::handle weights) {
            std::vector<at::Tensor> values;
            for (const nb::handle array : weights) {
              values.push_back(tensor_of(array, "set_weights"));
            }
            const nb::gil_scoped_release released;
            model.handle.set_weights(values);
          },
          nb::arg("weights"), "Sets all weights, in the order of `weights`. Collective.")
      .def(
          "get_weight",
          [](const PythonModel& model, const std::string& path) {
            return array_of_weight(weight_at(model, path));
          },
          nb::arg("path"), "Returns a copy of the weight at a path: \"hidden/kernel\". Collective.")
      .def(
          "set_weight",
          [](const PythonModel& model, const std::string& path, nb::handle value) {
            assign(weight_at(model, path), value);
          },
          nb::arg("path"), nb::arg("value"), "Sets the weight at a path. Collective.")
      .def(
          "count_params", [](const PythonModel& model) { return model.handle.count_params(); },
          "Returns the number of elements of all weights.")
      .def_prop_ro(
          "optimizer",
          [](const PythonModel& model) -> nb::object {
            if (!model.handle->compiled() || !model.handle->optimizer()) return nb::none();
            return nb::cast(model.handle->optimizer());
          },
          "The optimizer; None before compile() with one.")
      .def_prop_rw(
          "stop_training", [](const PythonModel& model) { return model.handle->stop_training(); },
          [](const PythonModel& model, bool stop) { model.handle->set_stop_training(stop); },
          "Whether fit ends after the current step. Callbacks set it.")
      .def_prop_ro("metrics_names",
                   [](const PythonModel& model) { return model.handle->metrics_names(); })
      .def_prop_ro("input_names",
                   [](const PythonModel& model) { return model.handle->input_names(); })
      .def_prop_ro("output_names",
                   [](const PythonModel& model) { return model.handle->output_names(); });
}

}  // namespace

void bind_models(nb::module_& module) {
  bind_results(module);
  bind_model(module);
  bind_files(module);
  bind_weights(module);
}

}  // namespace tessera::python
