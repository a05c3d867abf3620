#pragma once

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

/// Returns the dtypes that the model's input may have.
const std::vector<at::ScalarType>& export_dtypes();

/// Returns a shape with its first extent set to -1, unknown.
Shape with_unknown_rows(Shape shape);

/// Returns whether `labels` is empty, or has one label for each class of outputs of this shape.
bool labels_fit(const std::vector<std::string>& labels, const Shape& output);

/// Writes the sample's rows (undefined for texts) and its outputs, both as float64.
void write_sample(const std::string& path, const at::Tensor& rows, const at::Tensor& output);

/// Returns the manifest of an export, including the sample's texts.
Json export_manifest(const ExportedModel& exported, const std::vector<std::string>& texts);

}  // namespace tessera::detail
