#include <tessera/framework/io/internal/export_files.hpp>

#include <cstddef>
#include <map>
#include <span>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Version.h>

#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/io/format/safetensors.hpp>
#include <tessera/framework/model/sequential.hpp>

namespace tessera {

using namespace detail;

namespace {

Json extents_json(const Shape& shape) {
  Json list = Json::array();
  for (size_t a = 1; a < shape.size(); ++a) list.push_back(shape[a] < 0 ? Json() : Json(shape[a]));
  return list;
}

SafeTensor doubles(const std::string& name, const at::Tensor& tensor) {
  const auto* bytes = static_cast<const std::byte*>(tensor.const_data_ptr());
  return {name, "F64", tensor.sizes().vec(), {bytes, static_cast<size_t>(tensor.nbytes())}};
}

/// Makes names unique, as outputs of one layer have the same.
std::vector<std::string> unique_names(std::vector<std::string> names) {
  std::map<std::string, int> counts;
  for (std::string& name : names) {
    const int count = counts[name]++;
    if (count > 0) name += str('_', count);
  }
  return names;
}

}  // namespace

std::string detail::computed_on(const LayoutMap& layouts) {
  const int threads = at::get_num_threads();
  return str(layouts.mesh().describe(), ", ", at::get_cpu_capability(), ", ", threads,
             threads == 1 ? " thread" : " threads");
}

Shape detail::with_unknown_rows(Shape shape) {
  shape.front() = -1;
  return shape;
}

bool detail::fits_shape(const Shape& expected, const Shape& shape) {
  bool fits = shape.size() == expected.size();
  for (size_t a = 1; fits && a < shape.size(); ++a) {
    fits = expected[a] < 0 || expected[a] == shape[a];
  }
  return fits;
}

std::vector<std::string> detail::names_of_tensors(const std::vector<ExportedTensor>& tensors) {
  std::vector<std::string> names;
  for (const ExportedTensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

std::vector<ExportedTensor> detail::export_inputs(const Model& model, bool takes_text) {
  const Shapes shapes = model.input_shapes();
  std::vector<std::string> names = model.input_names();
  const auto* const chain = dynamic_cast<const SequentialModel*>(&model);
  if (takes_text) {
    names = {"text"};
  } else if (names.empty() && chain != nullptr && !chain->batch_shape().empty()) {
    names = {chain->symbolic_inputs()[0].node()->layer->name()};
  }
  while (names.size() < shapes.size()) names.push_back("input");
  names = unique_names(std::move(names));
  std::vector<ExportedTensor> inputs;
  for (size_t i = 0; i < shapes.size(); ++i) {
    inputs.push_back({.name = names[i], .shape = with_unknown_rows(shapes[i])});
  }
  return inputs;
}

std::vector<ExportedTensor> detail::export_outputs(const Model& model,
                                                   const std::vector<at::Tensor>& values) {
  std::vector<std::string> names = unique_names(model.output_names());
  // Only a graph has names of its own for outputs.
  if (model.input_names().empty() || names.size() != values.size()) {
    names.clear();
    for (size_t i = 0; i < values.size(); ++i) names.push_back(str("output_", i));
    if (values.size() == 1) names = {"predictions"};
  }
  std::vector<ExportedTensor> outputs;
  for (size_t i = 0; i < values.size(); ++i) {
    outputs.push_back({.name = names[i],
                       .shape = with_unknown_rows(values[i].sizes().vec()),
                       .dtype = values[i].scalar_type()});
  }
  return outputs;
}

bool detail::labels_fit(const std::vector<std::string>& labels, const Shape& output) {
  const int64_t classes = output.back() == 1 ? 2 : output.back();
  const bool one_each = output.size() == 2 && static_cast<int64_t>(labels.size()) == classes;
  return labels.empty() || one_each;
}

const std::vector<at::ScalarType>& detail::export_dtypes() {
  static const std::vector<at::ScalarType> dtypes{at::kFloat, at::kDouble, at::kLong,
                                                  at::kInt,   at::kByte,   at::kBool};
  return dtypes;
}

std::string detail::sample_name(const std::string& kind, size_t index) {
  return index == 0 ? kind : str(kind, '_', index);
}

void detail::write_sample(const std::string& path, const std::vector<at::Tensor>& rows,
                          const std::vector<at::Tensor>& outputs) {
  std::vector<SafeTensor> tensors;
  std::vector<at::Tensor> held;
  const auto add = [&](const char* kind, const std::vector<at::Tensor>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      held.push_back(values[i].to(at::kDouble).contiguous());
      tensors.push_back(doubles(sample_name(kind, i), held.back()));
    }
  };
  add("output", outputs);
  add("input", rows);
  write_safetensors(path, tensors);
}

Json detail::export_manifest(const ExportedModel& exported, const std::vector<std::string>& texts) {
  Json manifest = {{"format", export_format},
                   {"format_version", export_format_version},
                   {"input", exported.text ? "text" : "tensor"},
                   {"input_shape", extents_json(exported.inputs[0].shape)},
                   {"input_dtype", c10::toString(exported.inputs[0].dtype)},
                   {"output_shape", extents_json(exported.outputs[0].shape)},
                   {"labels", exported.labels},
                   {"activation", exported.activation},
                   {"step", exported.step},
                   {"computed_on", computed_on(exported.layouts)}};
  if (exported.text) manifest["sample_texts"] = texts;
  // Releases up to 0.1.0 read models with one input and output only.
  Json inputs = Json::array(), outputs = Json::array();
  for (size_t i = 1; i < exported.inputs.size(); ++i) {
    inputs.push_back({{"shape", extents_json(exported.inputs[i].shape)},
                      {"dtype", c10::toString(exported.inputs[i].dtype)}});
  }
  for (size_t i = 1; i < exported.outputs.size(); ++i) {
    outputs.push_back(extents_json(exported.outputs[i].shape));
  }
  if (!inputs.empty()) manifest["more_inputs"] = std::move(inputs);
  if (!outputs.empty()) manifest["more_output_shapes"] = std::move(outputs);
  return manifest;
}

}  // namespace tessera
