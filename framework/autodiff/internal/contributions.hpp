#pragma once

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// The accumulated contributions to one gradient. Complete and pending ones are summed separately:
/// adding a residual's complete gradient to the pending one of a sharded layer would reduce the
/// latter at once, and each later pending contribution again.
class Contributions {
 public:
  void add(const Contributions& others);
  void add(const DTensor& gradient);
  /// Returns the sum of all contributions in this layout.
  DTensor total(const Layout& layout) const;
  /// Returns the sum of all contributions as it is, possibly pending (for parameters).
  DTensor unresolved_total() const;

 private:
  DTensor complete_, pending_;
};

}  // namespace tessera::detail
