#pragma once

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct SoftmaxOptions {
  std::vector<int64_t> axis = {-1};  ///< several: over all their elements together
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// exp(x) / sum(exp(x)) over axes (keras.layers.Softmax). A second input, or else the mask of the
/// first, says which elements take part: bool, or numbers above 1/2; it broadcasts to x. Others
/// give 0, and -1e9 stands for them in the sums. Shape, layout and mask stay; over a sharded axis a
/// max and a sum are reduced.
class SoftmaxLayer final : public Layer {
 public:
  explicit SoftmaxLayer(const SoftmaxOptions& options);
  std::string class_name() const override { return "Softmax"; }
  Json config() const override;
  /// Throws ShapeError for an axis that the input has not, and for a mask that does not broadcast.
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  void check_mask(const Shape& mask, const Shape& input) const;

  std::vector<int64_t> axis_;
};

class Softmax : public LayerHandle {
 public:
  /// Throws ConfigError for no axes.
  explicit Softmax(const SoftmaxOptions& options = {})
      : LayerHandle(std::make_shared<SoftmaxLayer>(options)) {}
  static Softmax from_config(JsonObject& config);
};

}  // namespace tessera
