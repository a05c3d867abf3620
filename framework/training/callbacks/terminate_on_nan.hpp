#pragma once

#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera {

/// The options of TerminateOnNaN.
struct TerminateOnNaNOptions {
  /// Whether to throw instead of ending training normally.
  bool raise_error = false;
};

/// Ends training when the loss is not finite, instead of having fit throw
/// (keras.callbacks.TerminateOnNaN).
class TerminateOnNaN : public CallbackHandle {
 public:
  explicit TerminateOnNaN(const TerminateOnNaNOptions& options = {});
};

}  // namespace tessera
