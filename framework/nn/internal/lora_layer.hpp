#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// Base of layers whose kernel may have an adapter (LoRA): factors A and B, which are trained in
/// the kernel's place. Their product times alpha / rank is added to the kernel. A has the kernel's
/// first axes and `rank`, B has `rank` and the kernel's last axes.
class LoraLayer : public Layer {
 public:
  using Layer::Layer;

  bool has_adapter() const { return a_.defined(); }
  /// Rank and alpha; 0 without an adapter.
  int64_t rank() const { return rank_; }
  double alpha() const { return alpha_; }
  const Variable& a() const { return a_; }
  const Variable& b() const { return b_; }
  /// The weight that the adapter is for, also without one.
  const Variable& adapted() const { return kernel_; }
  /// The number of leading axes of the kernel that are its inputs, as a matrix (inputs, outputs); 0
  /// if it is none.
  virtual int64_t input_axes() const { return 1; }

  /// Throws as Layer::enable_lora() does, which calls make_adapter() after it.
  void check_adapter(int64_t rank, const LoraOptions& options) const;
  /// Adds A and B, placed as the kernel is, and freezes the kernel.
  void make_adapter(int64_t rank, const LoraOptions& options);
  /// Adds the product to the kernel, of which training goes on, and removes A and B.
  void merge_adapter();
  /// Makes the adapter when the layer is built, as the configuration says; rank 0: none.
  void set_adapter_when_built(int64_t rank, double alpha);
  /// Returns the weights that hold the kernel, with the values that include the adapter's product.
  std::vector<std::pair<Variable, DTensor>> merged_weights() const;

  /// The kernel stays frozen while it has an adapter.
  void set_trainable(bool trainable) override;
  /// The axes of A and B take the layout of the kernel's axes, if no rule places them.
  void place_weights(const LayoutMap& layouts) override;

 protected:
  /// An int8 kernel and its scale, or a floating one without scale.
  using KernelValues = std::pair<DTensor, DTensor>;

  /// Makes the adapter of set_adapter_when_built(); called at the end of make_weights().
  void make_configured_adapter();
  /// Returns alpha / rank, the factor of the product.
  double scale() const { return alpha_ / static_cast<double>(rank_); }
  /// Returns alpha / rank · A · B, for use in call().
  DTensor delta() const;
  /// Returns the kernel with delta(), for use in call().
  DTensor read_adapted() const;
  /// Returns alpha / rank times the einsum of x and A · B, which is "x,kernel->output", without
  /// that product where the equation allows it.
  DTensor adapter_product(const std::string& equation, const DTensor& x) const;
  /// Returns int8 values, and their scale, of the kernel with `delta` added.
  virtual KernelValues quantized_sum(const DTensor& delta) const = 0;
  /// Returns the regularizer of A and B, which is the kernel's.
  virtual RegularizerHandle kernel_regularizer() const = 0;
  /// Adds Keras' keys of the adapter to a configuration.
  Json with_adapter(Json config) const;

  Variable kernel_, kernel_scale_;  ///< kernel_scale_: of an int8 kernel

 private:
  DTensor scaled_product(const DTensor& a, const DTensor& b) const;
  void follow_kernel(Variable& factor, bool is_a) const;
  std::string where() const { return class_name() + " " + path(); }

  int64_t rank_ = 0;
  double alpha_ = 0;
  Variable a_, b_;
};

/// Freezes all weights of a model but the factors of its adapters.
void train_adapters_only(Layer& model);

}  // namespace tessera::detail
