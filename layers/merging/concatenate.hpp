#pragma once

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct ConcatenateOptions {
  int64_t axis = -1;
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// Tensors joined along an axis, alike in the others (keras.layers.Concatenate). The other axes
/// keep their sharding; parts that are cut along the joined one fetch what their new shards lack.
/// Where inputs have several dtypes, whole numbers become the compute dtype. Masks are joined, too;
/// all steps of an input without one count.
class ConcatenateLayer final : public Layer {
 public:
  explicit ConcatenateLayer(const ConcatenateOptions& options)
      : Layer({options.name, options.dtype, options.trainable}), axis_(options.axis) {}
  std::string class_name() const override { return "Concatenate"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;
  std::vector<DTensor> masks(const Inputs& inputs, size_t outputs) override;

 private:
  int64_t axis_;
};

class Concatenate : public LayerHandle {
 public:
  explicit Concatenate(const ConcatenateOptions& options = {})
      : LayerHandle(std::make_shared<ConcatenateLayer>(options)) {}
  static Concatenate from_config(JsonObject& config);
};

}  // namespace tessera
