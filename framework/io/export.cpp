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

void check_options(const Model& model, const ExportOptions& options) {
  if (!model.built()) {
    throw StateError("export_model", "the model is built", "a model whose weights are not known",
                     "train it, or call build() with an input shape first");
  }
  if (model.input_shapes().size() != 1 || model.output_names().size() != 1) {
    throw ConfigError(
        "export_model", "the model has one input and one output",
        str(model.input_shapes().size(), " inputs, ", model.output_names().size(), " outputs"),
        "export a submodel with one input and one output");
  }
  if (options.text && !options.text->ready()) {
    throw StateError("export_model", "the text layer has a vocabulary",
                     options.text->class_name() + " without one", "call adapt() first");
  }
  const bool fits = options.text
                        ? !options.sample.texts().empty()
                        : options.sample.rows().defined() && options.sample.rows().dim() > 0 &&
                              options.sample.rows().size(0) > 0;
  if (!fits) {
    throw ConfigError("export_model",
                      str("sample is ", options.text ? "a list of texts" : "a tensor of rows"),
                      "none", "pass a sample to verify the export with");
  }
  const at::Tensor& rows = options.sample.rows();
  const std::vector<at::ScalarType>& dtypes = export_dtypes();
  const bool can_be_read =
      options.text || std::find(dtypes.begin(), dtypes.end(), rows.scalar_type()) != dtypes.end();
  if (!can_be_read) {
    throw ConfigError("export_model", "sample has dtype float32, float64, int32 or int64",
                      dtype_name(rows.scalar_type()), "convert it, and the model's inputs");
  }
  const std::vector<std::string> known{"linear", "softmax", "sigmoid"};
  if (std::find(known.begin(), known.end(), options.activation) == known.end()) {
    throw ConfigError("export_model", "unknown activation", in_quotes(options.activation),
                      suggestion(options.activation, known));
  }
}

/// Throws ConfigError for non-finite outputs, which load_export() would refuse.
void check_output(const at::Tensor& output) {
  if (at::isfinite(output).all().item<bool>()) return;
  throw ConfigError("export_model", "the model's outputs for the sample are finite",
                    "NaN or infinity", "check the weights and the sample");
}

/// Throws ConfigError if the number of labels is not the number of classes.
void check_labels(const std::vector<std::string>& labels, const Shape& output) {
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
at::Tensor outputs_of(const ModelHandle& model, const DTensor& x) {
  const DefaultMeshScope mesh(x.mesh());
  model->clear_losses();
  Batch batch;
  batch.x = {x};
  return model->predict_step(batch).at(0).full();
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

Shape detail::with_unknown_rows(Shape shape) {
  shape.front() = -1;
  return shape;
}

bool detail::labels_fit(const std::vector<std::string>& labels, const Shape& output) {
  const int64_t classes = output.back() == 1 ? 2 : output.back();
  const bool one_each = output.size() == 2 && static_cast<int64_t>(labels.size()) == classes;
  return labels.empty() || one_each;
}

int64_t export_model(const ModelHandle& model, const std::string& folder,
                     const ExportOptions& options) {
  const c10::InferenceMode inference;
  check_options(model.model(), options);
  ExportedModel exported{.model = model,
                         .text = options.text,
                         .labels = options.labels,
                         .activation = options.activation,
                         .input_shape = with_unknown_rows(model->input_shapes()[0]),
                         .input_dtype = at::kFloat,
                         .output_shape = {},
                         .step = options.step,
                         .layouts = layouts_of(model.model())};
  const at::Tensor& rows = options.sample.rows();
  if (!options.text) exported.input_dtype = rows.scalar_type();
  const at::Tensor output =
      options.text ? exported.predict(options.sample.texts()) : exported.predict(rows);
  exported.output_shape = with_unknown_rows(output.sizes().vec());
  check_output(output);
  check_labels(options.labels, exported.output_shape);
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
    write_sample(version->file(export_file::sample), rows, output);
    number = version->commit(export_manifest(exported, options.sample.texts()));
  });
  return number;
}

at::Tensor ExportedModel::predict(std::span<const std::string_view> texts) const {
  if (!text) {
    throw ConfigError("predict", "the model takes tensors", "texts", "pass a tensor of rows");
  }
  if (texts.empty()) {
    throw ConfigError("predict", "at least one text is required", "none", "pass texts");
  }
  const c10::InferenceMode inference;
  std::vector<at::Tensor> outputs;
  for (size_t from = 0; from < texts.size(); from += export_batch_rows) {
    const size_t left = texts.size() - from;
    const auto batch = texts.subspan(from, std::min<size_t>(export_batch_rows, left));
    const auto rank = static_cast<int64_t>(text->text_shape().size()) + 1;
    outputs.push_back(outputs_of(model, text->transform(batch, layouts.data_layout("x", rank))));
  }
  return activated(at::cat(outputs), activation);
}

at::Tensor ExportedModel::predict(const std::vector<std::string>& texts) const {
  return predict(views(texts));
}

at::Tensor ExportedModel::predict(std::initializer_list<const char*> texts) const {
  return predict(std::vector<std::string>(texts.begin(), texts.end()));
}

at::Tensor ExportedModel::predict(const at::Tensor& rows) const {
  if (text) {
    throw ConfigError("predict", "the model takes texts", "a tensor", "pass texts");
  }
  const Shape shape = rows.sizes().vec();
  bool fits = shape.size() == input_shape.size() && rows.numel() > 0;
  for (size_t a = 1; fits && a < shape.size(); ++a) {
    fits = input_shape[a] < 0 || input_shape[a] == shape[a];
  }
  if (!fits) {
    throw ShapeError("predict", "rows have the shape " + to_string(input_shape), to_string(shape),
                     "pass rows of that shape, one or more");
  }
  const c10::InferenceMode inference;
  const at::Tensor input = rows.to(input_dtype);
  std::vector<at::Tensor> outputs;
  for (const at::Tensor& batch : input.split(export_batch_rows)) {
    outputs.push_back(outputs_of(model, pack(batch, layouts.data_layout("x", batch.dim()))));
  }
  return activated(at::cat(outputs), activation);
}

std::vector<std::pair<std::string, double>> ExportedModel::decide(const at::Tensor& outputs) const {
  std::vector<std::pair<std::string, double>> decisions;
  if (labels.empty()) return decisions;
  const at::Tensor rows = outputs.to(at::kDouble).contiguous();
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
