#pragma once

#include <span>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/tensor/internal/op_listener.hpp>

namespace tessera::detail {

/// Returns the listener that records everything this thread computes for replay; null if none.
OpListener* tracer();

/// Makes a listener this thread's tracer while alive; null: nothing is recorded.
class TracerScope {
 public:
  explicit TracerScope(OpListener* tracer);
  /// Returns the previous tracer.
  OpListener* previous() const { return scoped_.previous(); }

 private:
  ScopedValue<OpListener*> scoped_;
};

/// Runs the action; the tracer records the action, not the operations inside.
void traced(std::span<const DTensor> in, const SideEffect& run,
            Changes changes = Changes::variables);
/// Runs the action of a recorded step. What changes Variables takes gradients, whose memory is
/// counted as theirs from when it was made.
void perform(std::span<const DTensor> in, const SideEffect& run, Changes changes);
/// Tells the tracer that the computation cannot be replayed.
void stop_tracing(const char* why);

}  // namespace tessera::detail
