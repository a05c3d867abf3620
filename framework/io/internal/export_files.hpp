#pragma once

#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/io/export.hpp>

namespace tessera::detail {

/// Names of an export's files beside its manifest; all others are the text layer's assets.
namespace export_file {
inline constexpr const char* config = "config.json";
inline constexpr const char* weights = "weights.safetensors";
inline constexpr const char* sample = "sample.safetensors";
inline constexpr const char* text = "text.json";
}  // namespace export_file

/// Rows of one call of the model.
inline constexpr int64_t export_batch_rows = 256;

/// What the model's inputs may be of.
const std::vector<at::ScalarType>& export_dtypes();

/// A shape with its first extent unknown: -1.
Shape with_unknown_rows(Shape shape);

/// Whether there are no labels, or one for each class of outputs of this shape.
bool labels_fit(const std::vector<std::string>& labels, const Shape& output);

/// Writes the sample's rows, undefined for texts, and the outputs, both as float64.
void write_sample(const std::string& path, const at::Tensor& rows, const at::Tensor& output);

/// What the manifest says of an export, its sample's texts included.
Json export_manifest(const ExportedModel& exported, const std::vector<std::string>& texts);

}  // namespace tessera::detail
