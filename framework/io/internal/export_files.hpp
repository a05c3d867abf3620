#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/io/export.hpp>

namespace tessera::detail {

/// Names of an export's files besides its manifest; all other files are the text layer's assets.
namespace export_file {
inline constexpr const char* config = "config.json";
inline constexpr const char* weights = "weights.safetensors";
inline constexpr const char* sample = "sample.safetensors";
inline constexpr const char* text = "text.json";
}  // namespace export_file

/// Maximum rows of one call of the model.
inline constexpr int64_t export_batch_rows = 256;

inline constexpr const char* export_format = "tessera export";
inline constexpr int64_t export_format_version = 1;

/// Describes what outputs depend on numerically: the mesh, the processor's vector instructions and
/// the number of threads.
std::string computed_on(const LayoutMap& layouts);

/// Returns the dtypes that the model's input may have.
const std::vector<at::ScalarType>& export_dtypes();

/// Returns a shape with its first extent set to -1, unknown.
Shape with_unknown_rows(Shape shape);

/// Returns whether `labels` is empty, or has one label for each class of outputs of this shape.
bool labels_fit(const std::vector<std::string>& labels, const Shape& output);

/// Returns whether rows of this shape fit an input, whose number of rows is unknown.
bool fits_shape(const Shape& expected, const Shape& shape);

std::vector<std::string> names_of_tensors(const std::vector<ExportedTensor>& tensors);

/// Returns the inputs of a built model, with dtype float32.
std::vector<ExportedTensor> export_inputs(const Model& model, bool takes_text);

/// Returns the outputs of a model that has returned these values.
std::vector<ExportedTensor> export_outputs(const Model& model,
                                           const std::vector<at::Tensor>& values);

/// Writes the sample's rows (none for texts) and its outputs, as float64: "input", "input_1", …,
/// "output", "output_1", ….
void write_sample(const std::string& path, const std::vector<at::Tensor>& rows,
                  const std::vector<at::Tensor>& outputs);
/// Returns the name of the sample's input or output of this index.
std::string sample_name(const std::string& kind, size_t index);

/// Returns the manifest of an export, including the sample's texts.
Json export_manifest(const ExportedModel& exported, const std::vector<std::string>& texts);

}  // namespace tessera::detail
