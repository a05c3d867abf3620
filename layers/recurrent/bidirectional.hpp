#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include <tessera/layers/recurrent/recurrent_handle.hpp>

namespace tessera {

/// How the outputs of both directions become one; none: they stay two.
enum class MergeMode : uint8_t { sum, mul, ave, concat, none };
/// Keras' names, in the order of the enumerators.
inline std::array<const char*, 5> names_of(MergeMode) {
  return {"sum", "mul", "ave", "concat", "none"};
}

/// Options of Bidirectional.
struct BidirectionalOptions {
  MergeMode merge_mode = MergeMode::concat;  ///< how the outputs of both directions become one
  std::optional<RecurrentHandle> backward_layer = std::nullopt;  ///< a copy of the other if absent
  std::string name = "";   ///< first part of the weights' paths
  std::string dtype = "";  ///< policy; the default one if empty
  bool trainable = true;   ///< whether training changes the weights
};

/// A recurrent layer forwards and another, by default equal, backwards
/// (keras.layers.Bidirectional).
///
/// Shape: (batch, time, features) -> (batch, 2 · units), or with return_sequences
/// (batch, time, 2 · units), in the order of the input's steps; units stay as many in merge modes
/// other than "concat", and "none" gives two outputs. Further inputs are the first states of the
/// forward layer and those of the backward one; further outputs, with return_state, the last ones.
/// Weights: the forward layer's, then the backward one's, at "path/forward_lstm/…" and
/// "path/backward_lstm/…" for an LSTM.
/// Communication: that of the layers.
///
///     Bidirectional(LSTM(64, {.return_sequences = true}), {.merge_mode = MergeMode::sum})
class Bidirectional : public LayerHandle {
 public:
  /// Copies the layers, without weights. Throws ConfigError for layers of one direction, or that
  /// differ in stateful, return_sequences or return_state.
  explicit Bidirectional(const RecurrentHandle& layer, const BidirectionalOptions& options = {});
  /// Forgets the states of stateful layers.
  void reset_state() const;
};

}  // namespace tessera
