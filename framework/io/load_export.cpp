#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/file.hpp>
#include <tessera/framework/base/internal/folder.hpp>
#include <tessera/framework/base/internal/out_of_memory.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/drawing/styled_table.hpp>
#include <tessera/framework/io/format/safetensors.hpp>
#include <tessera/framework/io/format/versioned_directory.hpp>
#include <tessera/framework/io/internal/export_files.hpp>
#include <tessera/framework/io/internal/export_memory.hpp>
#include <tessera/framework/io/weights_file.hpp>
#include <tessera/framework/model/config.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/training/options.hpp>

namespace tessera {

using namespace detail;

namespace {

constexpr const char* export_again = "export the model again";
constexpr double same_setup_tolerance = 1e-6;
constexpr double other_setup_tolerance = 1e-5;
// float16 and bfloat16 have 11 and 8 bits of precision.
constexpr double half_precision_tolerance = 5e-2;

/// Reads the extents after the first axis; null for unknown ones.
Shape extents_from(const Json& json, const JsonPath& path) {
  if (!json.is_array()) json_fail(json, path, "a list of extents");
  Shape shape{-1};
  for (size_t a = 0; a < json.size(); ++a) {
    const int64_t extent = json[a].is_null() ? -1 : json_as<int>(json[a], path.index(a));
    if (!json[a].is_null() && extent < 1) json_fail(json[a], path.index(a), "null, or at least 1");
    shape.push_back(extent);
  }
  return shape;
}

at::Tensor sample_tensor(const SafetensorsFile& file, const std::string& name) {
  const SafeTensor& stored = file.at(name);
  if (stored.dtype != "F64" || stored.data.empty()) {
    throw FileError(file.path(), str("tensor ", in_quotes(name), " holds F64 numbers"),
                    str(stored.dtype, " of shape ", to_string(stored.shape)), export_again);
  }
  at::Tensor tensor = at::empty(stored.shape, at::kDouble);
  std::copy(stored.data.begin(), stored.data.end(), static_cast<std::byte*>(tensor.data_ptr()));
  return tensor;
}

/// Returns the folder and the number of the version to load.
std::pair<std::string, int64_t> find_version(const std::string& folder,
                                             const std::optional<int64_t>& requested) {
  if (!requested && exists(path_in(folder, version_manifest))) {
    // With or without a trailing slash.
    const std::string path = parent_of(path_in(folder, ""));
    const std::string name = path.substr(path.rfind('/') + 1);
    const bool number = !name.empty() && name.size() < 19 &&
                        name.find_first_not_of("0123456789") == std::string::npos;
    return {folder, number ? std::stoll(name) : 0};
  }
  const std::vector<int64_t> versions = list_versions(folder);
  if (versions.empty()) {
    throw FileError(folder, "the folder holds an export", "no versions",
                    "pass a folder that export_model() wrote");
  }
  const int64_t version = requested.value_or(versions.back());
  if (std::find(versions.begin(), versions.end(), version) == versions.end()) {
    throw FileError(folder, str("the folder holds version ", version),
                    "the newest is " + std::to_string(versions.back()), "pass an existing version");
  }
  return {version_path(folder, version), version};
}

/// Reads one version; every member function reads one of its files.
class Loader {
 public:
  Loader(std::string folder, int64_t version, const LoadExportOptions& options)
      : folder_(std::move(folder)), number_(version), files_(read_version(folder_)) {
    layouts_ = options.layouts.defined() ? options.layouts
                                         : LayoutMap(create_mesh({{"batch", 1}}, virtual_cpus(1)));
    max_bytes_ = max_activation_bytes(options.max_activation_bytes, layouts_);
  }

  ExportedModel load() {
    const std::string path = file(version_manifest);
    JsonObject manifest(files_.manifest, JsonPath(path));
    check_format(manifest, path);
    ExportedModel exported = described(manifest);
    const auto texts = manifest.take_or<std::vector<std::string>>("sample_texts", {});
    const auto setup = manifest.take<std::string>("computed_on");
    manifest.finish();
    if (manifest_input_ == "text") exported.text = text_layer();
    build(exported);
    exported.outputs = export_outputs(exported.model.model(), check_sample(exported, texts, setup));
    check_outputs(exported);
    return exported;
  }

 private:
  std::string file(const std::string& name) const { return path_in(folder_, name); }

  /// Returns the path of a file. Throws FileError unless the manifest names it, since only those
  /// are verified.
  std::string verified(const std::string& name) const {
    const auto& names = files_.files;
    if (std::find(names.begin(), names.end(), name) != names.end()) return file(name);
    throw FileError(file(version_manifest), "the export has a file " + in_quotes(name),
                    quoted_list(names), export_again);
  }

  void check_format(JsonObject& manifest, const std::string& path) const {
    const auto format = manifest.take<std::string>("format");
    const auto version = manifest.take<int64_t>("format_version");
    if (format == export_format && version == export_format_version) return;
    throw FileError(path,
                    str("the format is ", in_quotes(export_format), " ", export_format_version),
                    str(in_quotes(format), " ", version), "load it with the version that wrote it");
  }

  ExportedModel described(JsonObject& manifest) {
    const JsonPath& path = manifest.path();
    manifest_input_ = manifest.take<std::string>("input");
    const Json shape = manifest.take<Json>("input_shape");
    const auto dtype = manifest.take<std::string>("input_dtype");
    std::vector<ExportedTensor> inputs{{.name = "",
                                        .shape = extents_from(shape, path.key("input_shape")),
                                        .dtype = input_dtype(dtype, path.key("input"))}};
    const Json more_inputs = manifest.take_or<Json>("more_inputs", Json::array());
    for (size_t i = 0; i < more_inputs.size(); ++i) {
      JsonObject entry(more_inputs[i], path.key("more_inputs").index(i));
      const Json extents = entry.take<Json>("shape");
      const auto name = entry.take<std::string>("dtype");
      entry.finish();
      inputs.push_back({.name = "",
                        .shape = extents_from(extents, entry.path().key("shape")),
                        .dtype = input_dtype(name, entry.path().key("dtype"))});
    }
    const Json output = manifest.take<Json>("output_shape");
    output_shapes_ = {extents_from(output, path.key("output_shape"))};
    const Json more_outputs = manifest.take_or<Json>("more_output_shapes", Json::array());
    for (size_t i = 0; i < more_outputs.size(); ++i) {
      output_shapes_.push_back(
          extents_from(more_outputs[i], path.key("more_output_shapes").index(i)));
    }
    return {.model = model(),
            .text = nullptr,
            .labels = manifest.take<std::vector<std::string>>("labels"),
            .activation = activation(manifest),
            .inputs = std::move(inputs),
            .outputs = {},
            .version = number_,
            .step = manifest.take<int64_t>("step"),
            .layouts = layouts_};
  }

  at::ScalarType input_dtype(const std::string& dtype, const JsonPath& path) const {
    const std::vector<at::ScalarType>& known = export_dtypes();
    const auto type = std::find_if(known.begin(), known.end(),
                                   [&](at::ScalarType t) { return dtype == c10::toString(t); });
    if (type != known.end() && (manifest_input_ == "text" || manifest_input_ == "tensor")) {
      return *type;
    }
    json_fail(manifest_input_ + ", " + dtype, path, "a known kind of input and its dtype");
  }

  static std::string activation(JsonObject& manifest) {
    auto name = manifest.take<std::string>("activation");
    if (name == "linear" || name == "softmax" || name == "sigmoid") return name;
    json_fail(name, manifest.path().key("activation"), "linear, softmax or sigmoid");
  }

  ModelHandle model() const {
    const std::string path = verified(export_file::config);
    return model_from_config(read_json_file(path), path);
  }

  std::shared_ptr<TextLayer> text_layer() const {
    const std::string path = verified(export_file::text);
    const LayerHandle made = layer_from_config(read_json_file(path), JsonPath(path));
    auto text = std::dynamic_pointer_cast<TextLayer>(made.layer());
    if (!text) {
      throw FileError(path, "the layer takes texts", made->class_name(), export_again);
    }
    LayerAssets assets;
    for (const std::string& name : files_.files) {
      if (!is_own(name)) assets[name] = read_file(file(name));
    }
    text->load_assets(assets);
    if (!text->ready()) throw FileError(path, "the layer has a vocabulary", "none", export_again);
    return text;
  }

  static bool is_own(const std::string& name) {
    return name == export_file::config || name == export_file::weights ||
           name == export_file::sample || name == export_file::text;
  }

  /// Compares the weights with the file before allocating memory for them.
  void build(ExportedModel& exported) const {
    if (exported.text) {
      Shape text_layer_shape = exported.text->text_shape();
      text_layer_shape.insert(text_layer_shape.begin(), -1);
      const size_t rank = exported.inputs[0].shape.size();
      if (text_layer_shape.size() != rank) {
        throw FileError(file(export_file::text),
                        str("the text layer returns tensors of rank ", rank),
                        to_string(text_layer_shape), export_again);
      }
    }
    Shapes shapes;
    for (const ExportedTensor& input : exported.inputs) shapes.push_back(input.shape);
    exported.model.model().build(shapes);
    const auto named = export_inputs(exported.model.model(), exported.text != nullptr);
    for (size_t i = 0; i < shapes.size(); ++i) exported.inputs[i].name = named.at(i).name;
    exported.layouts.set_data_names(names_of_tensors(exported.inputs), {});
    exported.model.compile({.layouts = layouts_});
    load_weights(exported.model.model(), verified(export_file::weights));
  }

  void check_outputs(const ExportedModel& exported) const {
    const std::string path = file(version_manifest);
    Shapes shapes;
    for (const ExportedTensor& output : exported.outputs) shapes.push_back(output.shape);
    if (shapes != output_shapes_) {
      throw FileError(path, "the outputs have the shape " + list_of(output_shapes_),
                      list_of(shapes), export_again);
    }
    if (shapes.size() > 1 && (!exported.labels.empty() || exported.activation != "linear")) {
      throw FileError(path, "labels and an activation belong to a model with one output",
                      str(shapes.size(), " outputs"), export_again);
    }
    if (labels_fit(exported.labels, shapes[0])) return;
    throw FileError(path, "there is a label for each class of outputs " + to_string(shapes[0]),
                    quoted_list(exported.labels), export_again);
  }

  static std::string list_of(const Shapes& shapes) {
    std::string text;
    for (const Shape& shape : shapes) text += (text.empty() ? "" : ", ") + to_string(shape);
    return text;
  }

  /// Verifies the outputs for the sample and returns them.
  std::vector<at::Tensor> check_sample(const ExportedModel& exported,
                                       const std::vector<std::string>& texts,
                                       const std::string& setup) const {
    const SafetensorsFile sample(verified(export_file::sample));
    std::vector<at::Tensor> rows;
    for (size_t i = 0; !exported.text && i < exported.inputs.size(); ++i) {
      rows.push_back(sample_tensor(sample, sample_name("input", i)));
    }
    std::vector<at::Tensor> outputs =
        exported.text ? predict_texts(exported, texts) : predict_rows(exported, rows);
    for (size_t i = 0; i < std::max(outputs.size(), output_shapes_.size()); ++i) {
      const at::Tensor expected = sample_tensor(sample, sample_name("output", i));
      if (i < outputs.size()) check_equal(sample.path(), expected, outputs[i], setup);
    }
    return outputs;
  }

  void check_equal(const std::string& path, const at::Tensor& expected, const at::Tensor& actual,
                   const std::string& setup) const {
    const at::Tensor outputs = actual.to(at::kDouble);
    const bool half = actual.is_floating_point() && actual.element_size() < 4;
    const double tolerance = half                             ? half_precision_tolerance
                             : setup == computed_on(layouts_) ? same_setup_tolerance
                                                              : other_setup_tolerance;
    const bool same_shape = outputs.sizes() == expected.sizes();
    const double scale = expected.abs().max().item<double>();
    const double difference = same_shape ? (outputs - expected).abs().max().item<double>() : 0;
    if (same_shape && difference <= tolerance * scale) return;
    throw FileError(path,
                    str("the model reproduces the stored outputs of the sample within ", tolerance,
                        " of their scale ", scale),
                    same_shape ? str("a difference of ", difference)
                               : "shape " + to_string(Shape(outputs.sizes().vec())),
                    "check that the layers are the same as when it was exported");
  }

  std::vector<at::Tensor> predict_texts(const ExportedModel& exported,
                                        const std::vector<std::string>& texts) const {
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    const Shape batch = texts.empty() ? Shape{0} : exported.text->batch_shape(views);
    const double bytes = static_cast<double>(numel(batch)) * sizeof(int64_t);
    if (bytes > max_bytes_) {
      refuse_memory(export_file::text, {bytes, exported.text->class_name(), batch});
    }
    if (!texts.empty()) check_memory(exported, {batch});
    return exported.predict_all(views);
  }

  std::vector<at::Tensor> predict_rows(const ExportedModel& exported,
                                       const std::vector<at::Tensor>& rows) const {
    Shapes shapes;
    for (const at::Tensor& tensor : rows) shapes.push_back(tensor.sizes().vec());
    check_memory(exported, shapes);
    return exported.predict_all(rows);
  }

  /// Checks memory in advance: a process killed for lack of it would take down the model being
  /// served, too.
  void check_memory(const ExportedModel& exported, const Shapes& inputs) const {
    const ActivationPeak peak = predict_peak(exported, inputs, max_bytes_);
    if (peak.bytes > max_bytes_) refuse_memory(export_file::config, peak);
  }

  [[noreturn]] void refuse_memory(const char* name, const ActivationPeak& peak) const {
    throw FileError(file(name),
                    str("activations of the sample take at most ", readable_bytes(max_bytes_),
                        " (max_activation_bytes)"),
                    peak_text(peak), "export a smaller model, or raise max_activation_bytes");
  }

  std::string folder_;
  int64_t number_;
  VersionManifest files_;
  LayoutMap layouts_;
  double max_bytes_;
  std::string manifest_input_;
  Shapes output_shapes_;  ///< from the manifest
};

}  // namespace

ExportedModel load_export(const std::string& folder, const LoadExportOptions& options) {
  const auto [path, version] = find_version(folder, options.version);
  const c10::InferenceMode inference;
  try {
    return Loader(path, version, options).load();
  } catch (const FileError&) {
    throw;
  } catch (const LayoutError&) {
    // The caller's layout map is at fault; a file names no layouts.
    throw;
  } catch (const std::exception& error) {
    if (is_out_of_memory(error)) throw;
    const std::string text = error.what();
    const std::string reason = one_line(text.substr(0, text.find('\n')), 1000);
    throw FileError(path, "the export can be loaded", reason, export_again);
  }
}

}  // namespace tessera
