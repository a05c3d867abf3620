#pragma once

#include <cstddef>
#include <deque>
#include <functional>

#include <tessera/framework/tensor/dtensor.hpp>
#include <tessera/framework/tensor/internal/deferred_checks.hpp>

namespace tessera::detail {

/// The losses of steps on their way from GPUs to the host, so that no step waits for the one
/// before: they are read when later steps have been given to the GPU. Those of CPUs are there at
/// once.
class LossQueue {
 public:
  /// Takes a step's loss, whole; `read` gets the number in its time, in the order of the steps.
  /// With it comes what the step's checks of its data found.
  void push(const DTensor& loss, std::function<void(double)> read);
  /// Reads all but the newest `left`. Throws what a check or a reader does; the rest is dropped.
  void drain(size_t left = 0);
  /// drain(), but for the steps that a GPU may be behind.
  void drain_late() { drain(steps_behind); }
  /// Drops what no one has read.
  void clear() { entries_.clear(); }

 private:
  /// Enough for a step to be there before the one after the next is begun.
  static constexpr size_t steps_behind = 2;

  struct Entry {
    Download loss;
    DeferredChecks checks;
    std::function<void(double)> read;
  };
  std::deque<Entry> entries_;
};

}  // namespace tessera::detail
