#pragma once

#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera {

/// The options of SwapEMAWeights.
struct SwapEMAWeightsOptions {
  /// Whether the averages are also swapped in from the end of an epoch, where later callbacks can
  /// save them, to the beginning of the next one.
  bool swap_on_epoch = false;
};

/// Swaps weights and their moving averages, without moving either, during an evaluation or
/// prediction (keras.callbacks.SwapEMAWeights). Its hooks throw StateError unless the optimizer, or
/// one wrapped by it, has use_ema.
class SwapEMAWeights : public CallbackHandle {
 public:
  explicit SwapEMAWeights(const SwapEMAWeightsOptions& options = {});
};

}  // namespace tessera
