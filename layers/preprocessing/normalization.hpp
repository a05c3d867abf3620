#pragma once

#include <tessera/framework/nn/config/array_option.hpp>
#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/dataset.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct NormalizationOptions {
  /// Axes whose every index has a mean and variance of its own; {}: one of each (Keras' None).
  std::vector<int64_t> axis = {-1};
  ArrayOption mean = {};      ///< none: learned by adapt()
  ArrayOption variance = {};  ///< none: learned by adapt()
  bool invert = false;
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// (x - mean) / max(sqrt(variance), 1e-7), or x · max(sqrt(variance), 1e-7) + mean with `invert`
/// (keras.layers.Normalization), in the compute dtype, also of whole numbers. Shape and layout
/// stay; no communication while the statistics are replicated.
/// Weights, unless given by the options: mean, variance (the extents of `axis`), 0 and 1 until
/// adapt(), and count (), int64, always 0; none trainable.
class NormalizationLayer final : public Layer {
 public:
  explicit NormalizationLayer(const NormalizationOptions& options);
  std::string class_name() const override { return "Normalization"; }
  Json config() const override;
  /// Throws ShapeError for an input that lacks an axis, does not tell its extent, or has another
  /// than when built.
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

  void adapt(const at::Tensor& data);
  void adapt(const Dataset& data);

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  void check_options() const;
  /// The kept axes from 0 on, sorted.
  std::vector<int64_t> kept_axes(int64_t rank) const;
  /// Given or learned statistics, shaped to broadcast to x.
  DTensor statistics(const ArrayOption& given, const Variable& learned, const DTensor& x) const;
  void start_adapting(Shape shape);
  void finish_adapting(const at::Tensor& mean, const at::Tensor& variance);

  NormalizationOptions options_;
  Shape built_shape_;
  Variable mean_, variance_;
};

class Normalization : public LayerHandle {
 public:
  /// Throws ConfigError unless mean and variance are given together, of one shape and no more axes
  /// than `axis`.
  explicit Normalization(const NormalizationOptions& options = {})
      : LayerHandle(std::make_shared<NormalizationLayer>(options)) {}
  static Normalization from_config(JsonObject& config);

  /// Learns mean and variance from data with a batch axis, the same on every process; builds the
  /// layer if it was not. What it learned before is forgotten. Throws ShapeError for data of
  /// another shape than it was built for, StateError if mean and variance were given, ConfigError
  /// for no rows.
  void adapt(const at::Tensor& data) const { normalization().adapt(data); }
  /// The same from the first input of a dataset.
  void adapt(const DatasetHandle& data) const { normalization().adapt(*data); }

 private:
  NormalizationLayer& normalization() const {
    return static_cast<NormalizationLayer&>(*layer());
  }
};

}  // namespace tessera
