#pragma once

#include <memory>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// The operands of a DTensor that is computed when it is first read.
struct DeferredValue {
  virtual ~DeferredValue() = default;
  virtual DTensor compute() const = 0;
  /// Whether tapes know the value under its own id, rather than that of what compute() returns.
  virtual bool keeps_id() const { return false; }

  /// Returns a value of this shape and dtype that is computed when anything else of it is first
  /// read: its layout, its elements, or by an operation.
  static DTensor make(const Shape& shape, at::ScalarType dtype, const Mesh& mesh,
                      std::shared_ptr<const DeferredValue> value);
  /// Returns a value of this sharding that is computed when anything else is first read.
  static DTensor make(const ShardingPtr& sharding, std::shared_ptr<const DeferredValue> value);
  /// Returns what the value will be computed from; null for one that is computed.
  static const DeferredValue* of(const DTensor& value) { return shared(value).get(); }
  static std::shared_ptr<const DeferredValue> shared(const DTensor& value);
  /// Whether no other handle of the value exists.
  static bool is_only_handle(const DTensor& value) { return value.state_.use_count() == 1; }
  /// Computes the value if it is deferred, in all its handles.
  static void compute_now(const DTensor& value);
};

}  // namespace tessera::detail
