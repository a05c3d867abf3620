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

/// The sample input that verifies an export when it is loaded: texts for a model with a text layer,
/// otherwise a tensor [rows, ...] for each input, in their order or by their names. Its dtypes are
/// those of the exported inputs: float32, float64, int32, int64, uint8 or bool.
class ExportSample {
 public:
  ExportSample() = default;
  ExportSample(std::vector<std::string> texts) : texts_(std::move(texts)) {}  // NOLINT
  ExportSample(std::initializer_list<const char*> texts) : texts_(texts.begin(), texts.end()) {}
  ExportSample(const at::Tensor& rows) : rows_{{"", rows}} {}  // NOLINT: reads as data
  ExportSample(std::initializer_list<at::Tensor> inputs) {
    for (const at::Tensor& rows : inputs) rows_.emplace_back("", rows);
  }
  ExportSample(NamedArrays inputs) : rows_(std::move(inputs)) {}  // NOLINT: reads as data
  ExportSample(std::initializer_list<NamedArrays::value_type> inputs) : rows_(inputs) {}
  const std::vector<std::string>& texts() const { return texts_; }
  /// Returns the rows of each input; all names are empty if they are in the inputs' order.
  const NamedArrays& rows() const { return rows_; }

 private:
  std::vector<std::string> texts_;
  NamedArrays rows_;
};

/// The options of export_model().
struct ExportOptions {
  std::shared_ptr<TextLayer> text = nullptr;  ///< turns texts into the model's input
  ExportSample sample = {};                   ///< required
  /// Names of the classes, in order; for a model with one output.
  std::vector<std::string> labels = {};
  /// Activation that turns the model's output into probabilities: "softmax" over the last axis,
  /// "sigmoid", or "linear" if it already is. "linear" for a model with several outputs.
  std::string activation = "linear";
  int64_t step = 0;  ///< training steps so far, for information only
};

/// Writes a model as a new version in `folder`: "folder/000001" with its configuration, weights,
/// the text layer with its vocabulary, and the sample with the model's outputs for it. A version
/// appears atomically, complete and on disk; previous versions stay. Collective; the first process
/// of the mesh writes. Returns the version number there and 0 on the others. Throws StateError for
/// a model that is not built or a text layer without a vocabulary, ConfigError for invalid options,
/// FileError if writing fails.
int64_t export_model(const ModelHandle& model, const std::string& folder,
                     const ExportOptions& options);

/// An input or output of an exported model.
struct ExportedTensor {
  /// The model's own name for it; of a model without names, "input", "input_1", ...,
  /// "predictions", or "output_0", "output_1", .... "text" for the input of a text layer.
  std::string name;
  Shape shape = {};  ///< with -1 for the unknown number of rows
  at::ScalarType dtype = at::kFloat;
};

/// A model that load_export() read. Copies share the model.
struct ExportedModel {
  ModelHandle model;
  std::shared_ptr<TextLayer> text;  ///< null: the model takes tensors
  std::vector<std::string> labels;
  std::string activation;
  std::vector<ExportedTensor> inputs;  ///< one with a text layer, which takes texts
  std::vector<ExportedTensor> outputs;
  int64_t version = 0;
  int64_t step = 0;
  LayoutMap layouts;

  /// Returns the output after the activation, [texts, ...], unsharded, on the host. Collective.
  /// Throws ConfigError for a model that takes tensors or has several outputs, or for no texts.
  at::Tensor predict(std::span<const std::string_view> texts) const;
  at::Tensor predict(const std::vector<std::string>& texts) const;
  at::Tensor predict(std::initializer_list<const char*> texts) const;
  /// Returns the output for rows of the only input. Throws ConfigError for a model that takes
  /// texts, or has several inputs or outputs, ShapeError for rows that do not fit.
  at::Tensor predict(const at::Tensor& rows) const;
  /// Returns the output for rows of each input, by the names of `inputs`. Throws ConfigError, also
  /// for an unknown, missing or repeated name, and ShapeError.
  at::Tensor predict(const NamedArrays& rows) const;
  /// Returns all outputs, in the order of `outputs`. Throws like predict().
  std::vector<at::Tensor> predict_all(std::span<const std::string_view> texts) const;
  std::vector<at::Tensor> predict_all(const NamedArrays& rows) const;
  /// Returns all outputs for rows of each input, in the order of `inputs`.
  std::vector<at::Tensor> predict_all(const std::vector<at::Tensor>& rows) const;

  /// Returns the predicted label of each row of outputs [rows, classes] or [rows, 1] with its
  /// probability: the most probable class, or for a single output p the second label if p > 0.5.
  /// Empty without labels.
  std::vector<std::pair<std::string, double>> decide(const at::Tensor& values) const;
};

/// The options of load_export().
struct LoadExportOptions {
  LayoutMap layouts = {};  ///< default: unsharded, on one device
  /// Version to load (default: the newest).
  std::optional<int64_t> version = std::nullopt;
  /// Maximum activation memory of one call in bytes, checked before the sample is computed
  /// (default: half of the memory that is available to this process).
  std::optional<int64_t> max_activation_bytes = std::nullopt;
};

/// Loads an exported model onto any mesh. `folder` holds the versions or is one of them. Verifies
/// the checksum of every file, and that the model's outputs for the sample agree with the exported
/// ones within 1e-6 of their scale, or 1e-5 on another mesh, kind of processor or number of
/// threads. Only layers that layer_from_config() knows are created, nothing that a file names is
/// opened, and a model whose sample would exceed the memory limit is refused before it allocates.
/// Throws FileError naming the file, LayoutError for a layout map that does not fit.
ExportedModel load_export(const std::string& folder, const LoadExportOptions& options = {});

}  // namespace tessera
