#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include <tessera/layers/recurrent/recurrent_handle.hpp>

namespace tessera {

/// How the outputs of both directions are merged; none: two outputs.
enum class MergeMode : uint8_t { sum, mul, ave, concat, none };
/// Returns Keras' names in the order of the enumerators.
inline std::array<const char*, 5> names_of(MergeMode) {
  return {"sum", "mul", "ave", "concat", "none"};
}

/// Options of Bidirectional.
struct BidirectionalOptions {
  MergeMode merge_mode = MergeMode::concat;  ///< how the outputs of both directions are merged
  std::optional<RecurrentHandle> backward_layer = std::nullopt;  ///< default: a copy of `layer`
  std::string name = "";   ///< first component of the weights' paths
  std::string dtype = "";  ///< dtype policy (default: the global policy)
  bool trainable = true;   ///< whether training changes the weights
};

/// Runs a recurrent layer over the sequence and a second one, by default its copy, over the
/// reversed sequence (keras.layers.Bidirectional).
///
/// Shape: (batch, time, features) -> (batch, 2 · units), or with return_sequences
/// (batch, time, 2 · units), in the order of the input's steps. Merge modes other than "concat"
/// give `units` features, and "none" gives two outputs. Further inputs are the initial states of
/// the forward layer, then of the backward one; with return_state, further outputs are the final
/// states.
/// Weights: the forward layer's, then the backward one's, at "path/forward_lstm/…" and
/// "path/backward_lstm/…" for an LSTM.
/// Communication: that of both layers.
///
///     Bidirectional(LSTM(64, {.return_sequences = true}), {.merge_mode = MergeMode::sum})
class Bidirectional : public LayerHandle {
 public:
  /// Copies the layers without weights. Throws ConfigError for layers that run in the same
  /// direction or differ in stateful, return_sequences or return_state.
  explicit Bidirectional(const RecurrentHandle& layer, const BidirectionalOptions& options = {});
  /// Resets the states of stateful layers.
  void reset_state() const;
};

}  // namespace tessera
