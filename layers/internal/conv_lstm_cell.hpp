#pragma once

#include <string>
#include <vector>

#include <tessera/layers/internal/spatial_layer.hpp>
#include <tessera/layers/recurrent/conv_lstm.hpp>

namespace tessera::detail {

struct ConvLSTMArguments : ConvLSTMOptions {
  int64_t filters = 0;
  AxisValues kernel_size = 0;
};

/// The weights and the step of ConvLSTM1D to 3D. As a layer it maps a step's inputs to its part of
/// the gates' sums, without the states' part.
class ConvLSTMCell final : public SpatialLayer {
 public:
  /// Throws ConfigError for incompatible arguments; `layer` is the layer's class name.
  ConvLSTMCell(const std::string& layer, int64_t spatial, const ConvLSTMArguments& arguments);
  std::string class_name() const override { return "ConvLSTMCell"; }
  /// The arguments, with one value for each axis.
  const ConvLSTMArguments& arguments() const { return arguments_; }
  /// Returns the shape of an output and of each state for that of a step. Throws ShapeError.
  Shape state_shape(const Shape& step) const { return output_shape({step}); }

  /// Factors of dropout, 0 or 1 / (1 - rate), by gate; empty without dropout.
  struct Dropped {
    std::vector<DTensor> inputs, states;
  };
  Dropped draw(const Shape& step, const CallContext& context) const;
  /// Returns output and carry of a step.
  std::vector<DTensor> next_states(const DTensor& x, const std::vector<DTensor>& states,
                                   const Dropped& dropped);

 protected:
  Shape image_shape(const Shape& x) const override;
  void make_weights(const Shapes& inputs) override;
  DTensor transform(const DTensor& x, const CallContext& context) override;

 private:
  std::vector<WindowAxis> input_windows(const Shape& x) const;
  std::vector<WindowAxis> state_windows(const Shape& x) const;
  /// Convolves x with the kernel, or each gate's x · factor with the gate's part of it.
  DTensor convolved(const DTensor& x, const DTensor& kernel, const std::vector<DTensor>& factors,
                    const std::vector<WindowAxis>& axes) const;

  ConvLSTMArguments arguments_;
  Variable kernel_, recurrent_kernel_, bias_;
};

}  // namespace tessera::detail
