#pragma once

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct EmbeddingOptions {
  InitializerHandle embeddings_initializer = "uniform";
  RegularizerHandle embeddings_regularizer = {};
  ConstraintHandle embeddings_constraint = {};
  bool mask_zero = false;  ///< number 0 is padding, which the output's mask leaves out
  LayoutSpec embeddings_layout = {};
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// A row of a table for each number (keras.layers.Embedding). Weight: embeddings
/// (input_dim, output_dim). Shape: (…) of any dtype -> (…, output_dim); floating numbers are cut
/// off to whole ones. Throws ConfigError for a number outside [0, input_dim).
/// Layouts: the output is cut as the numbers are, and on the last axis as the table is. A table cut
/// by rows costs one all-reduce of the output, and no copy of the table. config() holds no layouts.
class EmbeddingLayer final : public Layer {
 public:
  EmbeddingLayer(int64_t input_dim, int64_t output_dim, const EmbeddingOptions& options);
  std::string class_name() const override { return "Embedding"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return options_.mask_zero; }

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;
  std::vector<DTensor> masks(const Inputs& inputs, size_t outputs) override;

 private:
  int64_t input_dim_, output_dim_;
  EmbeddingOptions options_;
  Variable embeddings_;
};

class Embedding : public LayerHandle {
 public:
  /// Throws ConfigError for a dimension < 1 or an unknown name.
  Embedding(int64_t input_dim, int64_t output_dim, const EmbeddingOptions& options = {})
      : LayerHandle(std::make_shared<EmbeddingLayer>(input_dim, output_dim, options)) {}
  static Embedding from_config(JsonObject& config);
};

}  // namespace tessera
