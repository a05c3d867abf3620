#pragma once

#include <memory>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// The operands of a DTensor that is computed when it is first read.
struct DeferredValue {
  virtual ~DeferredValue() = default;
  virtual DTensor compute() const = 0;

  /// Returns a value of this shape and dtype that is computed when anything else of it is first
  /// read: its layout, its elements, or by an operation.
  static DTensor make(const Shape& shape, at::ScalarType dtype, const Mesh& mesh,
                      std::shared_ptr<const DeferredValue> value);
  /// Returns what the value will be computed from; null for one that is computed.
  static const DeferredValue* of(const DTensor& value);
  /// Computes the value if it is deferred, in all its handles.
  static void compute_now(const DTensor& value);
};

}  // namespace tessera::detail
