#include <tessera/framework/io/export.hpp>

#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/io/format/safetensors.hpp>
#include <tessera/framework/io/format/versioned_directory.hpp>
#include <tessera/framework/io/internal/export_files.hpp>
#include <tessera/framework/io/weights_file.hpp>
#include <tessera/framework/model/config.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/training/options.hpp>

namespace tessera {

using namespace detail;

namespace {

std::vector<std::string_view> views(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

/// Throws ConfigError unless the sample has rows of a known dtype.
void check_sample_rows(const at::Tensor& rows) {
  if (!rows.defined() || rows.dim() == 0 || rows.size(0) == 0) {
    throw ConfigError("export_model", "sample has a tensor of rows for each input", "none",
                      "pass a sample to verify the export with");
  }
  const std::vector<at::ScalarType>& dtypes = export_dtypes();
  if (std::find(dtypes.begin(), dtypes.end(), rows.scalar_type()) != dtypes.end()) return;
  throw ConfigError("export_model",
                    "sample has dtype float32, float64, int32, int64, uint8 or bool",
                    dtype_name(rows.scalar_type()), "convert it, and the model's inputs");
}

void check_options(const Model& model, const ExportOptions& options) {
  if (!model.built()) {
    throw StateError("export_model", "the model is built", "a model whose weights are not known",
                     "train it, or call build() with an input shape first");
  }
  const size_t inputs = model.input_shapes().size();
  if (options.text && inputs != 1) {
    throw ConfigError("export_model", "a model with a text layer has one input",
                      str(inputs, " inputs"), "export it without the text layer");
  }
  if (options.text && !options.text->ready()) {
    throw StateError("export_model", "the text layer has a vocabulary",
                     options.text->class_name() + " without one", "call adapt() first");
  }
  const NamedArrays& rows = options.sample.rows();
  if (options.text ? options.sample.texts().empty() : rows.size() != inputs) {
    throw ConfigError(
        "export_model",
        str("sample is ", options.text ? "a list of texts" : "a tensor of rows for each input"),
        rows.empty() ? "none" : str(rows.size(), " for ", inputs, " inputs"),
        "pass a sample to verify the export with");
  }
  if (!options.text) {
    for (const auto& [name, tensor] : rows) check_sample_rows(tensor);
  }
  const std::vector<std::string> known{"linear", "softmax", "sigmoid"};
  if (std::find(known.begin(), known.end(), options.activation) == known.end()) {
    throw ConfigError("export_model", "unknown activation", in_quotes(options.activation),
                      suggestion(options.activation, known));
  }
}

/// Returns arrays in the order of the names. `arrays` may be in that order already, without names.
std::vector<at::Tensor> rows_in_order(const NamedArrays& arrays,
                                      const std::vector<ExportedTensor>& inputs,
                                      const std::string& where) {
  const std::vector<std::string> names = names_of_tensors(inputs);
  std::vector<at::Tensor> ordered(names.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    const auto& [name, array] = arrays[i];
    const auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end() && !(name.empty() && i < names.size())) {
      throw ConfigError(where, "the model has the inputs " + quoted_list(names), in_quotes(name),
                        suggestion(name, names));
    }
    const size_t index = name.empty() ? i : static_cast<size_t>(known - names.begin());
    if (ordered[index].defined()) {
      throw ConfigError(where, "each input appears once", in_quotes(name) + " twice",
                        "leave one out");
    }
    ordered[index] = array;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (ordered[i].defined()) continue;
    throw ConfigError(where, "each input has a tensor", in_quotes(names[i]) + " without one",
                      "pass one");
  }
  return ordered;
}

/// Throws ConfigError for non-finite outputs, which load_export() would refuse.
void check_finite(const std::vector<at::Tensor>& outputs) {
  const auto finite = [](const at::Tensor& output) {
    return at::isfinite(output).all().item<bool>();
  };
  if (std::all_of(outputs.begin(), outputs.end(), finite)) return;
  throw ConfigError("export_model", "the model's outputs for the sample are finite",
                    "NaN or infinity", "check the weights and the sample");
}

/// Throws ConfigError if the number of labels is not the number of classes, or if a model with
/// several outputs has labels or an activation.
void check_classes(const std::vector<ExportedTensor>& outputs, const ExportOptions& options) {
  const std::vector<std::string>& labels = options.labels;
  if (outputs.size() > 1 && (!labels.empty() || options.activation != "linear")) {
    throw ConfigError("export_model", "labels and an activation belong to a model with one output",
                      str(outputs.size(), " outputs"),
                      "leave them out, or export a submodel with one output");
  }
  const Shape& output = outputs[0].shape;
  if (labels_fit(labels, output)) return;
  throw ConfigError("export_model",
                    str("there is a label for each class of outputs ", to_string(output)),
                    quoted_list(labels), "pass one label for each class, or none");
}

at::Tensor activated(const at::Tensor& outputs, const std::string& activation) {
  if (activation == "softmax") return at::softmax(outputs, -1);
  return activation == "sigmoid" ? at::sigmoid(outputs) : outputs;
}

/// Returns the outputs for a batch, unsharded.
std::vector<at::Tensor> outputs_of(const ModelHandle& model, std::vector<DTensor> x) {
  const DefaultMeshScope mesh(x[0].mesh());
  model->clear_losses();
  Batch batch;
  batch.x = std::move(x);
  std::vector<at::Tensor> outputs;
  for (const DTensor& output : model->predict_step(batch)) outputs.push_back(output.full());
  return outputs;
}

/// Collects the outputs of successive batches of one call.
class OutputBatches {
 public:
  void add(std::vector<at::Tensor> outputs) {
    batches_.resize(std::max(batches_.size(), outputs.size()));
    for (size_t i = 0; i < outputs.size(); ++i) batches_[i].push_back(std::move(outputs[i]));
  }
  /// Returns the outputs of all rows, the first after the activation.
  std::vector<at::Tensor> all(const std::string& activation) const {
    std::vector<at::Tensor> outputs;
    for (const std::vector<at::Tensor>& parts : batches_) {
      outputs.push_back(parts.size() == 1 ? parts[0] : at::cat(parts));
    }
    outputs[0] = activated(outputs[0], activation);
    return outputs;
  }

 private:
  std::vector<std::vector<at::Tensor>> batches_;  ///< by output
};

at::Tensor only_output(const std::vector<at::Tensor>& outputs) {
  if (outputs.size() == 1) return outputs[0];
  throw ConfigError("predict", "the model has one output", str(outputs.size(), " outputs"),
                    "use predict_all()");
}

/// Throws ShapeError for rows that do not fit an input.
void check_row_shape(const ExportedTensor& input, const at::Tensor& rows, int64_t count) {
  const Shape shape = rows.sizes().vec();
  if (fits_shape(input.shape, shape) && rows.numel() > 0 && shape[0] == count) return;
  throw ShapeError("predict, " + input.name, "rows have the shape " + to_string(input.shape),
                   to_string(shape),
                   "pass rows of that shape, one or more, the same number for "
                   "each input");
}

/// Returns a layout map on the mesh that the weights are used on.
LayoutMap layouts_of(const Model& model) {
  const std::vector<Variable> weights = model.weights();
  if (weights.empty()) return LayoutMap(default_mesh());
  const Placement& placement = weights[0].placement();
  return LayoutMap(placement.use.value_or(placement.layout).mesh());
}

void write_text_layer(NewVersion& version, const TextLayer& text) {
  write_file_atomically(version.file(export_file::text), to_json_text(serialize_layer(text)));
  for (const auto& [name, bytes] : text.assets()) {
    write_file_atomically(version.file(name), bytes);
  }
}

}  // namespace

int64_t export_model(const ModelHandle& model, const std::string& folder,
                     const ExportOptions& options) {
  check_options(model.model(), options);
  ExportedModel exported{.model = model,
                         .text = options.text,
                         .labels = options.labels,
                         .activation = options.activation,
                         .inputs = export_inputs(model.model(), options.text != nullptr),
                         .outputs = {},
                         .step = options.step,
                         .layouts = layouts_of(model.model())};
  exported.layouts.set_data_names(names_of_tensors(exported.inputs), {});
  std::vector<at::Tensor> rows;
  if (!options.text) rows = rows_in_order(options.sample.rows(), exported.inputs, "export_model");
  for (size_t i = 0; i < rows.size(); ++i) exported.inputs[i].dtype = rows[i].scalar_type();
  const std::vector<at::Tensor> values = options.text
                                             ? exported.predict_all(views(options.sample.texts()))
                                             : exported.predict_all(rows);
  exported.outputs = export_outputs(model.model(), values);
  check_finite(values);
  check_classes(exported.outputs, options);
  const Mesh& mesh = exported.layouts.mesh();
  std::optional<NewVersion> version;
  collectively(mesh, folder, [&] {
    if (is_first_rank(mesh)) version.emplace(folder);
  });
  int64_t number = 0;
  collectively(mesh, folder, [&] {
    // First, since saving weights is collective.
    save_weights(model.model(), version ? version->file(export_file::weights) : folder);
    if (!version) return;
    write_file_atomically(version->file(export_file::config), model.to_json() + "\n");
    if (options.text) write_text_layer(*version, *options.text);
    write_sample(version->file(export_file::sample), rows, values);
    number = version->commit(export_manifest(exported, options.sample.texts()));
  });
  return number;
}

std::vector<at::Tensor> ExportedModel::predict_all(std::span<const std::string_view> texts) const {
  if (!text) {
    throw ConfigError("predict", "the model takes tensors", "texts", "pass a tensor of rows");
  }
  if (texts.empty()) {
    throw ConfigError("predict", "at least one text is required", "none", "pass texts");
  }
  OutputBatches batches;
  for (size_t from = 0; from < texts.size(); from += export_batch_rows) {
    const size_t left = texts.size() - from;
    const auto batch = texts.subspan(from, std::min<size_t>(export_batch_rows, left));
    const auto rank = static_cast<int64_t>(text->text_shape().size()) + 1;
    batches.add(outputs_of(model, {text->transform(batch, layouts.data_layout("x", rank))}));
  }
  return batches.all(activation);
}

std::vector<at::Tensor> ExportedModel::predict_all(const std::vector<at::Tensor>& rows) const {
  if (text) {
    throw ConfigError("predict", "the model takes texts", "a tensor", "pass texts");
  }
  if (rows.size() != inputs.size()) {
    throw ConfigError("predict", str("the model has ", inputs.size(), " inputs"), str(rows.size()),
                      "pass a tensor of rows for each");
  }
  const int64_t count = rows[0].dim() > 0 ? rows[0].size(0) : 0;
  for (size_t i = 0; i < rows.size(); ++i) check_row_shape(inputs[i], rows[i], count);
  OutputBatches batches;
  for (int64_t from = 0; from < count; from += export_batch_rows) {
    std::vector<DTensor> x;
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t size = std::min(export_batch_rows, count - from);
      x.push_back(pack(rows[i].narrow(0, from, size).to(inputs[i].dtype),
                       layouts.data_layout("x", rows[i].dim(), i)));
    }
    batches.add(outputs_of(model, std::move(x)));
  }
  return batches.all(activation);
}

std::vector<at::Tensor> ExportedModel::predict_all(const NamedArrays& rows) const {
  return predict_all(rows_in_order(rows, inputs, "predict"));
}

at::Tensor ExportedModel::predict(std::span<const std::string_view> texts) const {
  return only_output(predict_all(texts));
}

at::Tensor ExportedModel::predict(const std::vector<std::string>& texts) const {
  return predict(views(texts));
}

at::Tensor ExportedModel::predict(std::initializer_list<const char*> texts) const {
  return predict(std::vector<std::string>(texts.begin(), texts.end()));
}

at::Tensor ExportedModel::predict(const at::Tensor& rows) const {
  return only_output(predict_all(std::vector<at::Tensor>{rows}));
}

at::Tensor ExportedModel::predict(const NamedArrays& rows) const {
  return only_output(predict_all(rows));
}

std::vector<std::pair<std::string, double>> ExportedModel::decide(const at::Tensor& values) const {
  std::vector<std::pair<std::string, double>> decisions;
  if (labels.empty()) return decisions;
  const at::Tensor rows = values.to(at::kDouble).contiguous();
  const int64_t classes = rows.size(-1);
  const auto* p = rows.const_data_ptr<double>();
  for (int64_t r = 0; r < rows.size(0); ++r, p += classes) {
    if (classes == 1) {
      decisions.emplace_back(labels[p[0] > 0.5], p[0] > 0.5 ? p[0] : 1 - p[0]);
    } else {
      const auto best = static_cast<size_t>(std::max_element(p, p + classes) - p);
      decisions.emplace_back(labels[best], p[best]);
    }
  }
  return decisions;
}

}  // namespace tessera
