#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// What has come in of one gradient. What is complete and what is pending are added apart: where a
/// residual's gradient meets those of a layer that is cut, their sum would reduce what is pending
/// then and there, and what comes in behind it again.
class Contributions {
 public:
  void add(const Contributions& others);
  void add(const DTensor& gradient);
  /// All of it, in the layout of the gradient's value.
  DTensor total(const Layout& layout) const;
  /// All of it; of a parameter as it was left, maybe pending.
  DTensor total_as_left() const;

 private:
  DTensor complete_, pending_;
};

}  // namespace tessera::detail
