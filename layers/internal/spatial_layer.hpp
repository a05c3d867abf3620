#pragma once

#include <string>
#include <vector>

#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/ops/internal/window_axis.hpp>
#include <tessera/layers/axis_values.hpp>
#include <tessera/layers/internal/layer_config.hpp>

// Found by their arguments, so they are where those are.
namespace tessera {

/// A list of numbers, or one number for all axes. Throws ConfigError naming the place.
void json_get(const Json& json, const detail::JsonPath& path, AxisValues& out);
/// Keras' list of numbers.
inline Json option_json(const AxisValues& values) { return values.values; }

}  // namespace tessera

namespace tessera::detail {

/// A layer on (batch, spatial…, channels), or, with data_format "channels_first", on (batch,
/// channels, spatial…), which it turns around and back.
class SpatialLayer : public Layer {
 public:
  /// Throws ConfigError for an unknown data_format.
  SpatialLayer(const std::string& class_name, int64_t spatial, const std::string& data_format,
               const LayerOptions& options);
  std::string class_name() const final { return class_name_; }
  Shape output_shape(const Shapes& inputs) const final;
  bool can_be_replayed() const override { return true; }

 protected:
  /// The output's shape for an input's, both with channels last; extents may be -1. Throws
  /// ShapeError.
  virtual Shape image_shape(const Shape& x) const = 0;
  /// The output for an input, both with channels last.
  virtual DTensor transform(const DTensor& x, const CallContext& context) = 0;
  /// What is made of the output at last, its channels where data_format has them: activations of an
  /// axis are of the last one.
  virtual DTensor epilogue(DTensor y) { return y; }
  /// The shape that epilogue() makes of a shape.
  virtual Shape finished_shape(const Shape& y) const { return y; }
  DTensor call(const Inputs& inputs, const CallContext& context) final;

  int64_t spatial() const { return spatial_; }
  /// Keras' name of the order of axes, also where none was given.
  std::string data_format() const { return channels_first_ ? "channels_first" : "channels_last"; }
  /// The input's shape with channels last. Throws ShapeError for another rank.
  Shape channels_last_shape(const Shapes& inputs) const;
  /// Throws ShapeError unless x has channels, as many as when built.
  int64_t channels_of(const Shape& x) const;
  /// The layer as errors name it.
  std::string where() const { return class_name_ + " " + path(); }
  /// One number for each spatial axis, of at least `least`. Throws ConfigError naming the argument.
  std::vector<int64_t> each(const AxisValues& values, const std::string& argument,
                            int64_t least = 1) const;
  /// Throws ConfigError unless `value` is at least 1.
  void check_positive(int64_t value, const std::string& argument) const;
  /// Throws ConfigError unless `padding` is one of those.
  void check_padding(const std::string& padding, const std::vector<std::string>& known) const;
  /// How windows of these sizes move over x, with padding "valid", "same" or "causal". Throws
  /// ShapeError where one does not fit into x. An unknown extent gives no padding.
  std::vector<WindowAxis> windows(const Shape& x, const std::vector<int64_t>& sizes,
                                  const std::vector<int64_t>& strides,
                                  const std::vector<int64_t>& dilations,
                                  const std::string& padding) const;
  /// The outputs of windows along each spatial axis of x; -1 where it is unknown.
  /// An extent so many times as long. Throws ShapeError for 2^62 and more, so that the arithmetic
  /// of windows that is left to do stays within 64 bits.
  int64_t times(int64_t extent, int64_t factor) const;
  static std::vector<int64_t> outputs(const Shape& x, const std::vector<WindowAxis>& axes);
  /// (batch, extents…, channels).
  static Shape shape_of(int64_t batch, const std::vector<int64_t>& extents, int64_t channels);

 private:
  std::string class_name_;
  int64_t spatial_;
  bool channels_first_;
};

}  // namespace tessera::detail
