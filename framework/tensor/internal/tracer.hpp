#pragma once

#include <span>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/tensor/internal/op_listener.hpp>

namespace tessera::detail {

/// The listener that hears everything this thread computes, so that it can be done again; null for
/// none.
OpListener* tracer();

/// Makes a listener this thread's tracer while alive; null: nobody hears it.
class TracerScope {
 public:
  explicit TracerScope(OpListener* tracer);
  /// The tracer before.
  OpListener* former() const { return scoped_.former(); }

 private:
  ScopedValue<OpListener*> scoped_;
};

/// Runs the action, telling the tracer about it and not about what it does inside.
void traced(std::span<const DTensor> in, const TracedAction& run);
/// Tells the tracer that this cannot be done again.
void stop_tracing(const char* why);

}  // namespace tessera::detail
