#pragma once

#include <string>
#include <vector>

#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/ops/internal/window_axis.hpp>
#include <tessera/layers/axis_values.hpp>
#include <tessera/layers/internal/layer_config.hpp>
#include <tessera/layers/internal/replayed_layer.hpp>

// Found by argument-dependent lookup, so they are in the namespace of AxisValues.
namespace tessera {

/// Reads a list of integers, or one for all axes. Throws ConfigError naming `path`.
void json_get(const Json& json, const detail::JsonPath& path, AxisValues& out);
/// Writes Keras' list of integers.
inline Json option_json(const AxisValues& values) { return values.values; }

}  // namespace tessera

namespace tessera::detail {

/// A layer on (batch, spatial…, channels), or, with data_format "channels_first", on (batch,
/// channels, spatial…), which it transposes to channels last and back.
class SpatialLayer : public ReplayedLayer {
 public:
  /// Throws ConfigError for an unknown data_format.
  SpatialLayer(const LayerOptions& options, const std::string& class_name, int64_t spatial,
               const std::string& data_format);
  std::string class_name() const override { return class_name_; }
  Shape output_shape(const Shapes& inputs) const final;

 protected:
  /// Returns the output's shape for an input's, both with channels last; extents may be -1. Throws
  /// ShapeError.
  virtual Shape image_shape(const Shape& x) const = 0;
  /// Computes the output for an input, both with channels last.
  virtual DTensor transform(const DTensor& x, const CallContext& context) = 0;
  /// Applied last, to the output in data_format's axis order: activations along an axis, such as
  /// softmax, use the last one.
  virtual DTensor epilogue(DTensor y) { return y; }
  /// Returns the shape that epilogue() gives for a shape.
  virtual Shape epilogue_shape(const Shape& y) const { return y; }
  DTensor call(const Inputs& inputs, const CallContext& context) final;

  int64_t spatial() const { return spatial_; }
  /// Returns Keras' name of the axis order, with the default filled in.
  std::string data_format() const { return channels_first_ ? "channels_first" : "channels_last"; }
  /// Transposes a tensor from data_format's axis order to channels last, and back.
  DTensor to_channels_last(const DTensor& x) const;
  DTensor to_data_format(const DTensor& y) const;
  /// Returns the input's shape with channels last. Throws ShapeError for another rank.
  Shape channels_last_shape(const Shapes& inputs) const;
  /// Returns the channels of x. Throws ShapeError unless they are known and as many as when built.
  int64_t channels_of(const Shape& x) const;
  /// Returns the layer's name in errors.
  std::string where() const { return class_name_ + " " + path(); }
  /// Expands `values` to one per spatial axis, each at least `minimum`. Throws ConfigError naming
  /// the argument.
  std::vector<int64_t> each(const AxisValues& values, const std::string& argument,
                            int64_t minimum = 1) const;
  /// Throws ConfigError unless `value` is at least 1.
  void check_positive(int64_t value, const std::string& argument) const;
  /// Throws ConfigError unless `padding` is in `known`.
  void check_padding(const std::string& padding, const std::vector<std::string>& known) const;
  /// Returns how windows of these sizes move over x, with padding "valid", "same" or "causal".
  /// Throws ShapeError if one does not fit into x. Axes of unknown extent get no padding.
  std::vector<WindowAxis> windows(const Shape& x, const std::vector<int64_t>& sizes,
                                  const std::vector<int64_t>& strides,
                                  const std::vector<int64_t>& dilations,
                                  const std::string& padding) const;
  /// Returns extent · factor. Throws ShapeError for 2^62 and more, so that subsequent window
  /// arithmetic stays within 64 bits.
  int64_t times(int64_t extent, int64_t factor) const;
  /// Returns the number of windows along each spatial axis of x; -1 where its extent is unknown.
  static std::vector<int64_t> outputs(const Shape& x, const std::vector<WindowAxis>& axes);
  /// Returns (batch, extents…, channels).
  static Shape shape_of(int64_t batch, const std::vector<int64_t>& extents, int64_t channels);

 private:
  std::string class_name_;
  int64_t spatial_;
  bool channels_first_;
};

}  // namespace tessera::detail
