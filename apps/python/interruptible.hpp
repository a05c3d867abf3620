#pragma once

#include <optional>

#include <nanobind/nanobind.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>

namespace tessera::python {

namespace nb = nanobind;

/// While alive on Python's main thread, the first SIGINT or SIGTERM ends a fit, evaluate or predict
/// between two steps, after the callbacks' on_interrupt(). end() then gives the signal to Python,
/// which by default raises KeyboardInterrupt or ends the process. Inside another one, on other
/// threads and if Python ignores SIGINT, it does nothing.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  /// Restores Python's handlers and delivers a signal that came meanwhile; throws what they raise.
  void end();

 private:
  void deliver();

  std::optional<StopSignals> signals_;
};

/// Runs `work` interruptibly, without the GIL.
template <class Work>
auto run_released(const Work& work) {
  // The progress bar is written by C++.
  nb::module_::import_("sys").attr("stdout").attr("flush")();
  Interruptible scope;
  const auto released = [&] {
    const nb::gil_scoped_release free;
    return work();
  };
  try {
    auto result = released();
    scope.end();
    return result;
  } catch (const Interrupted&) {
    scope.end();
    throw;
  }
}

}  // namespace tessera::python
