#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/model/model.hpp>
#include <tessera/framework/nn/text_layer.hpp>

namespace tessera {

/// The input that an export is tried with when it is loaded: texts for a model with a text layer,
/// else a tensor [rows, ...].
class ExportSample {
 public:
  ExportSample() = default;
  ExportSample(std::vector<std::string> texts) : texts_(std::move(texts)) {}  // NOLINT
  ExportSample(std::initializer_list<const char*> texts) : texts_(texts.begin(), texts.end()) {}
  ExportSample(at::Tensor rows) : rows_(std::move(rows)) {}  // NOLINT: reads as data
  const std::vector<std::string>& texts() const { return texts_; }
  const at::Tensor& rows() const { return rows_; }

 private:
  std::vector<std::string> texts_;
  at::Tensor rows_;
};

/// The options of Export.
struct ExportOptions {
  std::shared_ptr<TextLayer> text = nullptr;  ///< makes the model's input of texts
  ExportSample sample = {};                   ///< required
  std::vector<std::string> labels = {};       ///< names of the classes, in order
  /// What turns the model's outputs into probabilities: "linear" where they are, else "softmax"
  /// over the last axis or "sigmoid".
  std::string activation = "linear";
  int64_t step = 0;  ///< training steps behind it, for the record
};

/// Writes a model of one input and one output as a new version of the exports in `folder`:
/// "folder/000001" with its configuration, weights, the text layer with its vocabulary, and the
/// sample with what the model makes of it. A version appears in one step, whole and on disk; former
/// ones stay. Collective; the first process of the mesh writes. Returns the version's number there,
/// 0 on the others. Throws StateError for a model that is not built or a text layer without a
/// vocabulary, ConfigError for options, FileError.
int64_t export_model(const ModelHandle& model, const std::string& folder,
                     const ExportOptions& options);

/// A model that load_export() read. Copies share the model.
struct ExportedModel {
  ModelHandle model;
  std::shared_ptr<TextLayer> text;  ///< null: the model takes tensors
  std::vector<std::string> labels;
  std::string activation;
  Shape input_shape;  ///< what the model takes; -1 for the rows, which are not known
  at::ScalarType input_dtype;
  Shape output_shape;  ///< what the model gives; -1 for the rows, which are not known
  int64_t version = 0;
  int64_t step = 0;
  LayoutMap layouts;

  /// Outputs after the activation, [texts, ...], whole, on the host. Collective. Throws ConfigError
  /// for a model that takes tensors, or no texts.
  at::Tensor predict(std::span<const std::string_view> texts) const;
  at::Tensor predict(const std::vector<std::string>& texts) const;
  at::Tensor predict(std::initializer_list<const char*> texts) const;
  /// The outputs for rows. Throws ConfigError for a model that takes texts, ShapeError for rows
  /// that do not fit.
  at::Tensor predict(const at::Tensor& rows) const;

  /// Names of the classes that outputs [rows, classes] or [rows, 1] decide for, with their
  /// probabilities: the greatest, or of a single output p the second label if p > 0.5. Empty
  /// without labels.
  std::vector<std::pair<std::string, double>> decide(const at::Tensor& outputs) const;
};

/// The options of LoadExport.
struct LoadExportOptions {
  LayoutMap layouts = {};  ///< undefined: whole on one device
  /// The version to load; absent: the newest.
  std::optional<int64_t> version = std::nullopt;
  /// Bytes that the values of a call of the model may hold at one time, which is found out before
  /// the sample is computed. Absent: half of the memory that is available to this process.
  std::optional<int64_t> max_activation_bytes = std::nullopt;
};

/// Loads what export_model() wrote, from the folder of the versions or that of one version, onto
/// any mesh. Verifies the checksum of every file, and that the model makes of the sample what it
/// made when it was exported: within 1e-6 of the outputs' scale, 1e-5 on another mesh or kind of
/// processor. Only layers that layer_from_config() knows are made; nothing named in a file is
/// opened, and a model whose sample takes more memory than there is to give is refused before it
/// takes any. Throws FileError naming the file, LayoutError for a layout map that does not fit.
ExportedModel load_export(const std::string& folder, const LoadExportOptions& options = {});

}  // namespace tessera
