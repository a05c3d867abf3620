#pragma once

#include <cstdint>

namespace tessera::test {

/// From its construction on, counts the floating-point operations of ATen's products of matrices
/// in this process: what was computed, whatever was planned.
class ProductFlops {
 public:
  ProductFlops();
  ProductFlops(const ProductFlops&) = delete;
  ProductFlops& operator=(const ProductFlops&) = delete;
  ~ProductFlops();
  /// Returns the operations so far.
  int64_t count() const;

 private:
  uint64_t callback_;
};

}  // namespace tessera::test
