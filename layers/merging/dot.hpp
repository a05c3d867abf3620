#pragma once

#include <vector>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The axis that Dot sums over: of both inputs, or one of each.
class DotAxes {
 public:
  DotAxes(int64_t axis) : of_{axis, axis} {}                    // NOLINT: reads as data
  DotAxes(int64_t first, int64_t second) : of_{first, second} {}  // NOLINT
  int64_t operator[](size_t input) const { return of_[input]; }

 private:
  int64_t of_[2];
};

struct DotOptions {
  bool normalize = false;
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// Products of two tensors summed over an axis of each, row by row; with `normalize` of vectors
/// brought to length 1 first, so cosines (keras.layers.Dot). Shape: the first's axes but the summed
/// one, then the second's but that and the batch; (n, 1) of two matrices. A mesh dimension that
/// cuts the summed axis of both leaves a sum pending, other axes keep their sharding.
class DotLayer final : public Layer {
 public:
  DotLayer(DotAxes axes, const DotOptions& options)
      : Layer({options.name, options.dtype, options.trainable}), axes_(axes),
        normalize_(options.normalize) {}
  std::string class_name() const override { return "Dot"; }
  Json config() const override;
  /// Throws ShapeError unless there are two inputs of equal batches whose axes have equal extents.
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return true; }

 protected:
  DTensor call(const Inputs& inputs, const CallContext& context) override;
  std::vector<DTensor> masks(const Inputs&, size_t) override { return {}; }

 private:
  /// The summed axis of an input, from 1 on.
  int64_t axis_of(size_t input, int64_t rank) const;

  DotAxes axes_;
  bool normalize_;
};

class Dot : public LayerHandle {
 public:
  /// Dot(2), Dot({2, 1}).
  explicit Dot(DotAxes axes, const DotOptions& options = {})
      : LayerHandle(std::make_shared<DotLayer>(axes, options)) {}
  static Dot from_config(JsonObject& config);
};

}  // namespace tessera
