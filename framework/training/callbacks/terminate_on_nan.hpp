#pragma once

#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera {

/// The options of TerminateOnNaN.
struct TerminateOnNaNOptions {
  /// Throw instead of ending training as usual.
  bool raise_error = false;
};

/// Ends training when the loss is not finite, where fit would throw
/// (keras.callbacks.TerminateOnNaN).
class TerminateOnNaN : public CallbackHandle {
 public:
  explicit TerminateOnNaN(const TerminateOnNaNOptions& options = {});
};

}  // namespace tessera
