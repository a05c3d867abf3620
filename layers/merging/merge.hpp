#pragma once

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// An elementwise function of several tensors (keras.layers.Add and its kin). The axes after the
/// batch broadcast as in NumPy, also where ranks differ; batches must be equal. Where inputs have
/// several dtypes, whole numbers become the compute dtype. A mesh dimension that cuts an axis of
/// one input cuts it in the output; two that are cut differently cost a relayout of one. Sums that
/// are pending over the same dimensions in all inputs stay pending through Add and Subtract.
/// Where all inputs have masks the output's leaves out what each of them does; products and
/// extremes pass over what an input's mask leaves out.
class MergeLayer final : public Layer {
 public:
  /// Of inputs of one rank and dtype.
  using Function = DTensor (*)(const Inputs& inputs, at::ScalarType compute);
  /// `inputs`: how many it takes; 0: any number from 1 on.
  MergeLayer(std::string class_name, Function function, size_t inputs, const LayerOptions& options)
      : Layer(options), class_name_(std::move(class_name)), function_(function), inputs_(inputs) {}
  std::string class_name() const override { return class_name_; }
  /// Throws ShapeError for inputs that do not broadcast or are too many or few.
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;
  std::vector<DTensor> masks(const Inputs& inputs, size_t outputs) override;

 private:
  std::string class_name_;
  Function function_;
  size_t inputs_;
};

/// Sum of all inputs (keras.layers.Add).
class Add : public LayerHandle {
 public:
  explicit Add(const LayerOptions& options = {});
};

/// First input minus the second (keras.layers.Subtract).
class Subtract : public LayerHandle {
 public:
  explicit Subtract(const LayerOptions& options = {});
};

/// Product of all inputs (keras.layers.Multiply).
class Multiply : public LayerHandle {
 public:
  explicit Multiply(const LayerOptions& options = {});
};

/// Mean of all inputs (keras.layers.Average), in the compute dtype.
class Average : public LayerHandle {
 public:
  explicit Average(const LayerOptions& options = {});
};

/// Largest of all inputs (keras.layers.Maximum).
class Maximum : public LayerHandle {
 public:
  explicit Maximum(const LayerOptions& options = {});
};

/// Smallest of all inputs (keras.layers.Minimum).
class Minimum : public LayerHandle {
 public:
  explicit Minimum(const LayerOptions& options = {});
};

/// The inputs in one dtype: the compute dtype if any is floating, else the widest.
Inputs with_one_dtype(Inputs inputs, at::ScalarType compute);

}  // namespace tessera
