#pragma once

#include <cstddef>
#include <deque>
#include <functional>

#include <tessera/framework/tensor/dtensor.hpp>
#include <tessera/framework/tensor/internal/deferred_checks.hpp>

namespace tessera::detail {

/// Losses of steps on their way from GPUs to the host. They are read after later steps have been
/// launched, so that no step waits for the previous one. Losses on CPUs are available at once.
class LossQueue {
 public:
  /// Takes a step's resolved loss. Calls `read` with its value once it has arrived, in step order;
  /// errors of the step's deferred data checks are thrown first.
  void push(const DTensor& loss, std::function<void(double)> read);
  /// Reads all but the newest `left` losses, and those that are on the host already. Throws what a
  /// check or a reader throws; the rest is dropped then.
  void drain(size_t left = 0);
  /// Reads all losses but those of steps that a GPU may still be running.
  void drain_ready() { drain(readback_delay); }
  /// Drops unread losses.
  void clear() { entries_.clear(); }

 private:
  /// Steps whose losses stay unread: a loss is read once two later steps have been launched.
  static constexpr size_t readback_delay = 2;

  struct Entry {
    Download loss;
    DeferredChecks checks;
    std::function<void(double)> read;
  };
  std::deque<Entry> entries_;
};

}  // namespace tessera::detail
