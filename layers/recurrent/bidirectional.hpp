#pragma once

#include <array>

#include <tessera/layers/recurrent/recurrent.hpp>
#include <tessera/layers/recurrent/wrapper.hpp>

namespace tessera {

/// How the outputs of both directions become one; none: they stay two.
enum class MergeMode : uint8_t { sum, mul, ave, concat, none };
/// Keras' names, in the order of the enumerators.
inline std::array<const char*, 5> names_of(MergeMode) {
  return {"sum", "mul", "ave", "concat", "none"};
}

struct BidirectionalOptions {
  MergeMode merge_mode = MergeMode::concat;
  std::optional<RecurrentHandle> backward_layer = std::nullopt;
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// A recurrent layer forwards and another, by default equal, backwards
/// (keras.layers.Bidirectional). Inputs: x (batch, time, features), then the first states of the
/// forward layer and those of the backward one. Outputs: the merged output, in the order of the
/// steps, two without merging; with return_state then the states of both. Weights: the forward
/// layer's, then the backward one's. Layouts as the layers.
class BidirectionalLayer final : public WrapperLayer {
 public:
  BidirectionalLayer(const RecurrentHandle& layer, const BidirectionalOptions& options);
  std::string class_name() const override { return "Bidirectional"; }
  Json config() const override;
  Shape output_shape(const Shapes& inputs) const override { return output_shapes(inputs)[0]; }
  /// Throws ShapeError for inputs that the layers do not take.
  Shapes output_shapes(const Shapes& inputs) const override;
  /// Forgets the states of stateful layers.
  void reset_state();

 protected:
  void make_weights(const Shapes& inputs) override;
  std::vector<DTensor> call_all(const Inputs& inputs, const CallContext& context) override;
  std::vector<DTensor> masks(const Inputs& inputs, size_t outputs) override;

 private:
  const RecurrentLayer& direction(size_t i) const;
  DTensor merged(const DTensor& forward, const DTensor& backward) const;

  MergeMode merge_mode_;
};

class Bidirectional : public LayerHandle {
 public:
  /// The layers are copied, without weights. Throws ConfigError for layers of one direction, or
  /// that differ in stateful, return_sequences or return_state.
  explicit Bidirectional(const RecurrentHandle& layer, const BidirectionalOptions& options = {})
      : LayerHandle(std::make_shared<BidirectionalLayer>(layer, options)) {}
  void reset_state() const { static_cast<BidirectionalLayer&>(*layer()).reset_state(); }
  static Bidirectional from_config(JsonObject& config);
};

}  // namespace tessera
