#pragma once

#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera {

/// The options of SwapEMAWeights.
struct SwapEMAWeightsOptions {
  /// Whether the means are the weights from the end of an epoch, where callbacks named later save
  /// them, to the begin of the next one too.
  bool swap_on_epoch = false;
};

/// Exchanges weights and their moving averages for the time of an evaluation or prediction, where
/// they lie (keras.callbacks.SwapEMAWeights); for an optimizer that has use_ema, or one inside that
/// has. Its hooks throw StateError for others.
class SwapEMAWeights : public CallbackHandle {
 public:
  explicit SwapEMAWeights(const SwapEMAWeightsOptions& options = {});
};

}  // namespace tessera
